"""All stages as assets, in the order in which they run."""

from __future__ import annotations

from assets.answers import ANSWERING
from assets.corpus import CORPUS
from assets.evaluation import EVALUATION
from assets.operations import OPERATIONS
from assets.related_work import RELATED_WORK
from assets.search import SEARCH

STAGE_ASSETS = (*CORPUS, *SEARCH, *RELATED_WORK, *EVALUATION, *ANSWERING, *OPERATIONS)
