"""Search, read, ask and write over a corpus that `citeloom run` made.

    >>> import citeloom
    >>> corpus = citeloom.open_corpus()
    >>> for paper in corpus.search("how related work is summarized", limit=3):
    ...     print(paper.title, paper.url)

docs/how-to/python.md is the guide.
"""

from citeloom.corpus import Corpus, open_corpus
from pipeline.errors import (
    CiteloomError,
    MissingInput,
    PermanentFailure,
    SettingError,
    TransientFailure,
)

__all__ = [
    "CiteloomError",
    "Corpus",
    "MissingInput",
    "PermanentFailure",
    "SettingError",
    "TransientFailure",
    "open_corpus",
]
