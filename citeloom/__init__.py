"""Search, read, ask and write over a corpus that `citeloom run` made.

    >>> import citeloom
    >>> corpus = citeloom.open_corpus()
    >>> for hit in corpus.search("how related work is summarized", limit=3):
    ...     print(hit.paper.title, hit.paper.url)

docs/how-to/python.md is the guide.
"""

from citeloom.corpus import Corpus, as_bibtex, as_json, as_markdown, open_corpus
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
    "as_bibtex",
    "as_json",
    "as_markdown",
    "open_corpus",
]
