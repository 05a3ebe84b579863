"""A dump and a metadata snapshot of many months, made from the pages of the sample corpus.

Each paper is a page of the sample under another id, and all months are of the same pages: the title
carries the paper's number, each of its paragraphs begins with words of its own, and it cites five
older papers of the corpus, one by its arXiv id and the others by author, title and year. So titles,
passages and the citation graph differ from paper to paper, while markup and lengths are those of
the sample. Never text that was written for a paper, and no figure or claim.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.embedding.choice import make_embedder
from pipeline.embedding.embedder import EngineFacts, SparseRows, VectorBatch
from pipeline.embedding.minilm import MiniLM
from pipeline.settings import PROJECT, Settings

SAMPLE = PROJECT / "examples"
LAST_MONTH = (2026, 10)
# Texts encoded at once; the perturbed vectors of a batch take 1.5 MB.
BATCH = 1_000
# Length of the noise that is added to a vector of length 1: its cosine with the real one is 0.89.
NOISE = 0.5
CITED = 5

_TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
_PARAGRAPH = re.compile(r'(<p [^>]*class="ltx_p"[^>]*>)')
_RELATED_WORK = re.compile(
    r"<h2[^>]*>(?:(?!</h2>).)*(?:Related Works?|Literature Review|Prior Work)", re.DOTALL
)
_END_OF_LIST = re.compile(r"</ul>\s*</section>")
_OLD_IDS_END = "2007-03"
_OTHER_ARCHIVES = (
    "math", "hep-th", "hep-ph", "hep-ex", "astro-ph", "cond-mat", "gr-qc", "quant-ph",
)  # fmt: skip
MOST_OTHERS = 1_000 * len(_OTHER_ARCHIVES)


@dataclass(frozen=True, slots=True)
class SyntheticPaper:
    """One paper. number: its place in the corpus, from 0. source: id of the sample's paper."""

    number: int
    month: str
    arxiv_id: str
    title: str
    author: str
    source: str

    @property
    def file_name(self) -> str:
        """Name of its page in the dump."""
        return f"{self.month[2:4]}{self.month[5:]}/{self.arxiv_id.replace('/', '')}.html"


def months_until(count: int, last: tuple[int, int] = LAST_MONTH) -> list[str]:
    """The last `count` months, oldest first."""
    end = last[0] * 12 + last[1] - 1
    return [f"{n // 12}-{n % 12 + 1:02d}" for n in range(end - count + 1, end + 1)]


@dataclass
class SyntheticCorpus:
    """Months of equally many papers. Equal arguments give equal files."""

    months: Sequence[str]
    papers_per_month: int
    _pages: dict[str, str] = field(init=False, default_factory=dict)
    _records: dict[str, dict[str, Any]] = field(init=False, default_factory=dict)
    _sources: list[str] = field(init=False)

    def __post_init__(self) -> None:
        for archive in sorted((SAMPLE / "dump").glob("*.zip")):
            with zipfile.ZipFile(archive) as pages:
                for name in pages.namelist():
                    if name.endswith(".html"):
                        self._pages[Path(name).stem] = pages.read(name).decode()
        for line in (SAMPLE / "metadata.jsonl").read_text().splitlines():
            record = json.loads(line)
            self._records[record["id"]] = record
        self._sources = sorted(self._pages.keys() & self._records.keys())

    def papers(self, months: Sequence[str]) -> Iterator[SyntheticPaper]:
        """The papers of some of the months, in order."""
        for month in months:
            first = self.months.index(month) * self.papers_per_month
            for number in range(first, first + self.papers_per_month):
                yield self.paper(number)

    def paper(self, number: int) -> SyntheticPaper:
        """The paper with this number."""
        month = self.months[number // self.papers_per_month]
        place = number % self.papers_per_month
        source = self._sources[place * len(self._sources) // self.papers_per_month]
        record = self._records[source]
        name, colon, rest = record["title"].partition(":")
        return SyntheticPaper(
            number,
            month,
            _arxiv_id(month, place + 1),
            f"{name} {number}{colon}{rest}",
            " ".join(reversed(record["authors_parsed"][0][:2])),
            source,
        )

    def write_month(self, dump: Path, month: str) -> None:
        """Write the month's pages into a zip of their own."""
        file = dump / f"ar5iv-{month}-no-problem.zip"
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for paper in self.papers([month]):
                archive.writestr(f"no-problem/{paper.file_name}", self._page(paper))

    def write_snapshot(self, file: Path, other_records: int = 0) -> None:
        """Write the metadata of all papers, and so many records of other archives' papers: at most
        8,000 a month, above which ids would repeat (ValueError).
        """
        most = MOST_OTHERS * len(self.months)
        if other_records > most:
            raise ValueError(f"{len(self.months)} months hold at most {most} other records")
        with file.open("w") as lines:
            for paper in self.papers(self.months):
                lines.write(json.dumps(self._record(paper)) + "\n")
            for number in range(other_records):
                lines.write(json.dumps(self._other_record(number)) + "\n")

    def _other_record(self, number: int) -> Mapping[str, Any]:
        """A record that is no computer science. number: its place among these, from 0."""
        place, month = divmod(number, len(self.months))
        record = self._records[self._sources[number % len(self._sources)]]
        return record | {
            "id": _other_id(self.months[month], place),
            "title": f"{record['title']} {number}",
            "doi": None,
            "categories": "math.AG",
        }

    def _page(self, paper: SyntheticPaper) -> str:
        page = self._pages[paper.source]
        title = _TITLE.search(page)
        assert title is not None, paper.source
        page = page.replace(title[1], paper.title)
        cited = self._cited(paper)
        marks = "".join(
            f'<cite class="ltx_cite ltx_citemacro_cite">[<a href="#bib.bibS{n}"'
            f' class="ltx_ref">S{n}</a>]</cite> '
            for n in range(len(cited))
        )
        paragraphs = _PARAGRAPH.split(page)
        # Its related work, else its second paragraph after the abstract, cites the older papers.
        related = [n for n, text in enumerate(paragraphs) if _RELATED_WORK.search(text)]
        citing = related[0] + 2 if related else 6
        for place in range(2, len(paragraphs), 2):
            words = f"In part {place // 2} of study {paper.number}: "
            paragraphs[place] = words + marks * (place == citing) + paragraphs[place]
        page = "".join(paragraphs)
        items = "".join(map(_item, range(len(cited)), cited))
        return _END_OF_LIST.sub(lambda match: items + match[0], page, count=1)

    def _cited(self, paper: SyntheticPaper) -> list[SyntheticPaper]:
        """At most five older papers: one of any age, the others of the last twelve months."""
        if not paper.number:
            return []
        draw = random.Random(paper.number)
        last_year = max(0, paper.number - 12 * self.papers_per_month)
        numbers = {
            draw.randrange(oldest, paper.number) for oldest in [0, *[last_year] * (CITED - 1)]
        }
        return [self.paper(number) for number in sorted(numbers)]

    def _record(self, paper: SyntheticPaper) -> Mapping[str, Any]:
        year, month = paper.month.split("-")
        created = f"Mon, 4 {_MONTH_NAMES[int(month) - 1]} {year} 12:00:00 GMT"
        return self._records[paper.source] | {
            "id": paper.arxiv_id,
            "title": paper.title,
            "doi": None,
            "versions": [{"version": "v1", "created": created}],
            "update_date": f"{paper.month}-04",
        }


_MONTH_NAMES = (
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
)  # fmt: skip


def _arxiv_id(month: str, number: int, archive: str = "cs") -> str:
    """The id of a month's paper, in the form that arXiv used then. number: below 1,000 for the ids
    with an archive, else below 10,000.
    """
    stem = f"{month[2:4]}{month[5:]}"
    if month <= _OLD_IDS_END:
        return f"{archive}/{stem}{number:03d}"
    return f"{stem}.{number:05d}" if month >= "2015-01" else f"{stem}.{number:04d}"


def _other_id(month: str, place: int) -> str:
    """The id of a paper of another archive; place: among those of its month, from 0."""
    if month <= _OLD_IDS_END:
        archive, number = divmod(place, 1_000)
        return _arxiv_id(month, number, _OTHER_ARCHIVES[archive])
    # The first thousand are computer science.
    return _arxiv_id(month, 1_000 + place)


def _item(number: int, cited: SyntheticPaper) -> str:
    place = f"arXiv:{cited.arxiv_id}" if number == 0 else "In Proceedings"
    return (
        f'<li id="bib.bibS{number}" class="ltx_bibitem">\n'
        f'<span class="ltx_tag ltx_tag_bibitem">[S{number}]</span>\n'
        f'<span class="ltx_bibblock"> {cited.author}. {cited.title}. {place},'
        f" {cited.month[:4]}.\n\n</span>\n</li>\n"
    )


class PerturbedEmbedder:
    """MiniLM's vectors of the sample's passages, each with noise drawn from the text's hash.

    It takes the place of MiniLM in the stage `embeddings`, which calls `encode_stream` alone, so
    that the index meets vectors with the structure of real ones and no model runs.
    """

    name = MiniLM.name
    dimensions = MiniLM.dimensions
    max_tokens = MiniLM.max_tokens
    has_sparse = False
    last_facts: EngineFacts | None = None

    def __init__(self, settings: Settings, texts: Sequence[str]) -> None:
        """texts: those whose real vectors the noise is added to."""
        real = make_embedder(settings).encode_queries(list(texts))
        self._real: NDArray[np.float32] = np.stack([vectors.dense for vectors in real])

    def encode_stream(self, texts: Iterable[str]) -> Iterator[VectorBatch]:
        """Vectors of texts in their order, 1,000 at a time."""
        batch: list[str] = []
        for text in texts:
            batch.append(text)
            if len(batch) == BATCH:
                yield self._batch(batch)
                batch = []
        if batch:
            yield self._batch(batch)

    def _batch(self, texts: Sequence[str]) -> VectorBatch:
        rows = []
        for text in texts:
            # Copies of a paragraph of the sample, which end alike, share the real vector.
            real = self._real[_number_of(text[-100:]) % len(self._real)]
            draw = np.random.default_rng(_number_of(text))
            noise = draw.normal(size=self.dimensions) * NOISE / np.sqrt(self.dimensions)
            rows.append(real + noise)
        dense = np.stack(rows)
        dense /= np.linalg.norm(dense, axis=1, keepdims=True)
        return VectorBatch(
            dense.astype(np.float16),
            SparseRows.nothing(len(texts)),
            np.zeros(len(texts), np.bool_),
            tokens=0,
        )


def _number_of(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def sample_texts() -> list[str]:
    """Paragraphs of the sample's papers, as their sources have them."""
    texts = []
    for file in sorted((SAMPLE / "papers").glob("*/paper.tex")):
        paragraphs = file.read_text().split("\n\n")
        texts += [text for text in paragraphs if len(text.split()) > 20]
    return texts
