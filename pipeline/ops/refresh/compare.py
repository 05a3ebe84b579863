"""Comparison of a month's papers before and after a refresh, paper by paper."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass

from pipeline.storage.writing import Row

# 96 bits of a SHA-256: two of 1,000,000 passages share them by chance once in 10^17 months.
DIGEST_BYTES = 12


@dataclass(frozen=True, slots=True)
class PaperState:
    """A paper of the corpus. `passages` and `texts` hold DIGEST_BYTES for each passage, in one order: the digest of
    its id and text, and that of its text alone."""

    version: int | None
    html_sha256: str
    metadata_sha256: str
    passages: bytes
    texts: bytes


@dataclass(slots=True)
class Counts:
    """What changed in a month. `papers_changed` counts those of another version, page, metadata or text."""

    papers_new: int = 0
    papers_changed: int = 0
    papers_withdrawn: int = 0
    papers_removed: int = 0
    papers_kept: int = 0
    new_versions: int = 0
    passages_added: int = 0
    passages_removed: int = 0
    passages_kept: int = 0
    vectors_reused: int = 0
    vectors_made: int = 0

    def add(self, row: Row) -> None:
        """Count one row of `changes`."""
        name = f"papers_{row['change']}"
        setattr(self, name, getattr(self, name) + 1)
        self.new_versions += "version" in row["what"]
        self.passages_added += row["passages_added"]
        self.passages_removed += row["passages_removed"]
        self.passages_kept += row["passages_kept"]
        self.vectors_reused += row["vectors_reused"]
        self.vectors_made += row["passages_added"] + row["passages_kept"] - row["vectors_reused"]

    @property
    def any_change(self) -> bool:
        """Whether any paper or vector changed."""
        unchanged = ("papers_kept", "passages_kept", "vectors_reused")
        return any(count for name, count in asdict(self).items() if name not in unchanged)


def compare(
    before: Mapping[str, PaperState],
    now: Mapping[str, PaperState],
    withdrawn: Collection[str],
    *,
    same_model: bool,
) -> Iterator[Row]:
    """A row of `changes` for each paper of before or now, in the order of identifiers.

    withdrawn: papers that arXiv's metadata calls withdrawn. same_model: whether vectors are made as before, so that the
    vector of an unchanged text is reused, whichever passage of the month the text belonged to.
    """
    reusable = {text for paper in before.values() for text in _split(paper.texts)} if same_model else set()
    for arxiv_id in sorted(before.keys() | now.keys()):
        old, new = before.get(arxiv_id), now.get(arxiv_id)
        what = _differences(old, new)
        yield {
            "arxiv_id": arxiv_id,
            "change": _change(old, new, what, arxiv_id in withdrawn),
            "what": what,
            "version_before": old.version if old else None,
            "version": new.version if new else None,
            **_passage_counts(_split(old.passages if old else b""), _split(new.passages if new else b"")),
            "vectors_reused": sum(text in reusable for text in _split(new.texts)) if new else 0,
            "html_sha256": new.html_sha256 if new else None,
            "metadata_sha256": new.metadata_sha256 if new else None,
            "passages_sha256": new.passages if new else None,
            "texts_sha256": new.texts if new else None,
        }


def _change(old: PaperState | None, new: PaperState | None, what: list[str], is_withdrawn: bool) -> str:
    if new is None:
        return "withdrawn" if is_withdrawn else "removed"
    if old is None:
        return "new"
    return "changed" if what else "kept"


def _differences(old: PaperState | None, new: PaperState | None) -> list[str]:
    if old is None or new is None:
        return []
    pairs = {
        "version": (old.version, new.version),
        "page": (old.html_sha256, new.html_sha256),
        "metadata": (old.metadata_sha256, new.metadata_sha256),
        "text": (old.passages, new.passages),
    }
    return [name for name, (before, after) in pairs.items() if before != after]


def _passage_counts(old: list[bytes], new: list[bytes]) -> dict[str, int]:
    """Counts of added, removed and kept passages; their ids differ, so the lists hold no duplicates."""
    common = len(set(old) & set(new))
    return {
        "passages_added": len(new) - common, "passages_removed": len(old) - common, "passages_kept": common,
    }  # fmt: skip


def _split(digests: bytes) -> list[bytes]:
    return [digests[start : start + DIGEST_BYTES] for start in range(0, len(digests), DIGEST_BYTES)]
