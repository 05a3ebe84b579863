"""The asset `arxiv_changes`: what arXiv changed since the last harvest, and the months that are due by now."""

from dataclasses import asdict
from typing import Any

import dagster as dg

from pipeline.corpus.dump.catalogue import months_in_dump
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError
from pipeline.index import close_indexes
from pipeline.ops.refresh.plan import Found, find_changes
from pipeline.ops.refresh.stages import take_baseline
from pipeline.wikipedia.root import refuse_arxiv


@dg.asset(
    group_name="operations",
    kinds={"arxiv"},
    pool="arxiv_api",
    description="What arXiv changed since the last harvest (OAI-PMH), and the months whose pages, metadata, settings "
    "or code are other than their tables were made with. It keeps how these months stand, so that what their runs "
    "change can be told.",
)
def arxiv_changes(
    context: dg.AssetExecutionContext, workspace: dg.ResourceParam[Workspace]
) -> dg.MaterializeResult[None]:
    """A run, not the tick of a schedule, which Dagster ends after a minute: a harvest may take a quarter of an hour."""
    try:
        refuse_arxiv(workspace)
        months = months_in_dump(workspace.settings)
        found = find_changes(workspace, months, ask_arxiv=workspace.settings.refresh_harvest)
        take_baseline(workspace, found.months)
    except CiteloomError as error:
        raise dg.Failure(description=str(error), allow_retries=False) from error
    finally:
        close_indexes()  # asking how months stand has opened it, and other processes may want it
    if found.harvest_failure:
        context.log.warning(f"{found.harvest_failure}\nGoing on with what changed here.")
    return dg.MaterializeResult(metadata=_told(found))


def _told(found: Found) -> dict[str, Any]:
    told: dict[str, Any] = {"months": dg.MetadataValue.json(list(found.months)), "months_due": len(found.months)}
    if found.harvest is not None:
        counts = {name: value for name, value in asdict(found.harvest).items() if isinstance(value, int)}
        told |= {f"harvest/{name}": value for name, value in counts.items()}
        told["harvest/until"] = found.harvest.until
    if found.harvest_failure:
        told["harvest_failure"] = found.harvest_failure
    return told
