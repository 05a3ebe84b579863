#!/usr/bin/env bash
# Run all months on a Slurm cluster: the metadata, which takes minutes, then an array of jobs, each one part of the months
# up to the embeddings, then one job for the rest. From the checkout, with the settings (CITELOOM_DATA and others) exported:
#
#     deploy/slurm.sh 16                     # 16 parts
#     deploy/slurm.sh 16 --gres=gpu:1        # what follows is given to sbatch for the array
#
# A part that is lost is done by the others, or by the same command again. Each part has its locks and caches on its node's
# disk, in a folder below SCRATCH that is removed at its end. Not tried: no Slurm was at hand.
set -euo pipefail
cd "$(dirname "$0")/.."

parts=${1:?"usage: deploy/slurm.sh PARTS [options of sbatch]"}
shift
scratch=${SCRATCH:-/tmp}

metadata=$(sbatch --parsable --job-name citeloom-metadata --wrap \
  ".venv/bin/citeloom run --months all --until metadata")
array=$(sbatch --parsable --job-name citeloom-parts --dependency "afterany:$metadata" --array "1-$parts" "$@" --wrap \
  "export CITELOOM_LOCAL=\$(mktemp -d $scratch/citeloom.XXXXXX); trap 'rm -rf \$CITELOOM_LOCAL' EXIT
.venv/bin/citeloom run --months all --part \$SLURM_ARRAY_TASK_ID/$parts --until embeddings")
sbatch --job-name citeloom-rest --dependency "afterany:$array" --wrap ".venv/bin/citeloom run --months all"
