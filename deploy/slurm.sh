#!/usr/bin/env bash
# Run all months on a Slurm cluster: an array of jobs, each one part of the months up to the embeddings, then one job for
# the rest. From the checkout, with the settings (CITELOOM_DATA and others) exported:
#
#     deploy/slurm.sh 16                     # 16 parts
#     deploy/slurm.sh 16 --gres=gpu:1        # what follows is given to sbatch for the array
#
# A part that is lost is done by the others, or by the same command again.
set -euo pipefail
cd "$(dirname "$0")/.."

parts=${1:?"usage: deploy/slurm.sh PARTS [options of sbatch]"}
shift

array=$(sbatch --parsable --job-name citeloom-parts --array "1-$parts" "$@" --wrap \
  ".venv/bin/citeloom run --months all --part \$SLURM_ARRAY_TASK_ID/$parts --until embeddings")
sbatch --job-name citeloom-rest --dependency "afterany:$array" --wrap ".venv/bin/citeloom run --months all"
