"""The monthly schedule. Not here: what a refresh does."""

import dagster as dg

from pipeline.corpus.dump.catalogue import months_in_dump
from pipeline.errors import CiteloomError
from pipeline.jobs import refresh_corpus
from pipeline.stages import Workspace


# On the third day arXiv's metadata snapshot holds the month that has just ended.
@dg.schedule(job=refresh_corpus, cron_schedule="0 4 3 * *")
def newest_month(
    context: dg.ScheduleEvaluationContext, workspace: dg.ResourceParam[Workspace]
) -> dg.RunRequest | dg.SkipReason:
    """Refreshes the newest month that the dump holds."""
    try:
        months = months_in_dump(workspace.settings)
    except CiteloomError as error:
        return dg.SkipReason(str(error))
    day = context.scheduled_execution_time.strftime("%Y-%m-%d")
    return dg.RunRequest(run_key=f"{months[-1]}-{day}", partition_key=months[-1])
