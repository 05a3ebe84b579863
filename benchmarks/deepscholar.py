"""DeepScholar-Bench as tasks: 63 arXiv papers of 2025 with their published related-work sections,
and the works that these cite.

    python -m benchmarks.deepscholar FOLDER OUTPUT [--month 2024-03]

FOLDER holds `targets.jsonl.gz` {arxiv, title, abstract, related_work_latex, cites{key: id}} and
`cited.jsonl.gz` {id, title, abstract, arxiv, authors, year}. OUTPUT receives task files for
CITELOOM_TASKS_DIR and `citeloom relate --task`. The targets are known by title and abstract; of 889
of the 1,539 cited works there is an abstract, of the others the bibliography item alone.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.retrieval import read_rows
from drafts.latex_text import plain_field
from pipeline.corpus.citation_formats import author_names
from pipeline.identity.identifiers import normalize_arxiv_id
from pipeline.identity.people import parse_name
from pipeline.related_work.importers import ImportedTask, item_text, make_imported_task
from pipeline.related_work.task import FileReference, write_task_file
from pipeline.text import one_line


def import_deepscholar(folder: Path, month: str | None = None) -> list[ImportedTask]:
    """The tasks of the data set, in its order."""
    works = {work["id"]: _reference(work) for work in read_rows(folder / "cited.jsonl.gz")}
    return [_task(target, works, month) for target in read_rows(folder / "targets.jsonl.gz")]


def _task(
    target: Mapping[str, Any], works: Mapping[str, FileReference], month: str | None
) -> ImportedTask:
    cites: Mapping[str, str] = target["cites"]
    cited = list(dict.fromkeys(cites.values()))
    marks = {key: f"[Work {cited.index(identifier)}]" for key, identifier in cites.items()}
    names = {key: author_names(works[identifier].authors) for key, identifier in cites.items()}
    title, abstract = one_line(target["title"]), one_line(target["abstract"])
    return make_imported_task(
        f"deepscholar-{target['arxiv']}",
        month,
        title,
        f"# {title}\n\n## Abstract\n\n{abstract}" if abstract else f"# {title}",
        latex_text(target["related_work_latex"], marks, names),
        [works[identifier] for identifier in cited],
        arxiv_id=normalize_arxiv_id(target["arxiv"]),
    )


def _reference(work: Mapping[str, Any]) -> FileReference:
    title = _field_text(work["title"])
    names = one_line(work["authors"] or "").split(" and ")
    authors = tuple(str(parse_name(_field_text(name))) for name in names if name.strip())
    year = int(work["year"]) if str(work["year"]).isdigit() else None
    abstract = one_line(work["abstract"] or "")
    return FileReference(
        title=title,
        authors=authors,
        year=year if year and 1000 <= year <= 2999 else None,
        arxiv_id=normalize_arxiv_id(work["arxiv"]) if work["arxiv"] else None,
        source="abstract" if abstract else "item",
        text=abstract or item_text(authors, year, title),
    )


_DROPPED = (
    re.compile(r"(?<!\\)%.*"),
    re.compile(r"\\iffalse\b.*?(?:\\fi\b|\Z)", re.DOTALL),
    re.compile(
        r"\\begin\{(table\*?|figure\*?|equation\*?|align\*?|gather\*?|algorithm\*?|tabular\*?)\}.*?\\end\{\1\}",
        re.DOTALL,
    ),
    re.compile(r"\\(?:begin|end)\{[^{}]*\}(?:\[[^\]]*\])?"),
)
_CITE = re.compile(
    r"(?:(?<![~\s])[~\s]++)?\\(?P<command>[a-zA-Z]*[Cc]ite[a-zA-Z]*+)\*?\s*+(?:\[[^\]]{0,199}\]\s*+){0,9}"
    r"\{(?P<keys>[^{}]*+)\}"
)
# Citations that are part of the sentence print the authors' names, as natbib and biblatex do.
_NAMING = frozenset({"citet", "Citet", "citealt", "textcite", "Textcite"})
# Macros that go with their argument: places in the paper, footnotes, spacing.
_GONE = re.compile(
    r"(?:(?<![~\s])[~\s]++)?\\(?:footnote|footnotetext|label|ref|cref|Cref|autoref|eqref|vspace|hspace|input|url|ding|lblsec)\*?"
    r"(?:\[[^\]]{0,199}\])?\{(?:[^{}]|\{[^{}]*\})*\}"
)
_HEADING = re.compile(r"\\(?:sub)*section\*?\{(?:[^{}]|\{[^{}]*\})*\}")
_COLOURED = re.compile(r"\\(?:textcolor|href)\s*\{[^{}]*\}")
_MATH = re.compile(r"\$\$?(?:\\.|[^$\\])*\$\$?", re.DOTALL)
_KEYWORDS = {r"\eg": "e.g.", r"\ie": "i.e.", r"\etal": "et al.", r"\ldots": "...", r"\dots": "..."}
_SPACING = re.compile(
    r"\\(?:noindent|par|item|smallskip|medskip|bigskip|centering|small|footnotesize|bf|em|it)\b\*?"
)
_MACRO = re.compile(r"\\([a-zA-Z]+)\*?(?:\[[^\]]*\])?")
_AMPERSAND = re.compile(r"(?<!\\)&")
_ESCAPED = re.compile(r"\\([%&$#_{}])")


def latex_text(latex: str, marks: Mapping[str, str], names: Mapping[str, str]) -> str:
    """The running text, a blank line between paragraphs; without headings, tables, formulas,
    footnotes and comments.

    marks: citation key → what stands for it; a key that is not there is dropped. names: key → the
    authors as a text names them, for citations that are part of a sentence ("Liu et al. (2019)
    show"). A macro that is not known leaves its name where it has no argument (authors name their
    system by one), else its argument.
    """
    for pattern in _DROPPED:
        latex = pattern.sub("", latex)
    latex = _CITE.sub(lambda match: _cited(match["command"], match["keys"], marks, names), latex)
    latex = _HEADING.sub("\n\n", _GONE.sub("", latex))
    latex = _MATH.sub(" ", _COLOURED.sub("", latex))
    for macro, words in _KEYWORDS.items():
        latex = re.sub(re.escape(macro) + r"(?![a-zA-Z])\.?", words, latex)
    latex = _SPACING.sub(" ", latex)
    latex = _MACRO.sub(
        lambda match: "" if latex[match.end() : match.end() + 1] == "{" else match[1], latex
    )
    text = _ESCAPED.sub(r"\1", latex.replace("\\\\", " ")).replace("~", " ")
    text = text.replace("---", "—").replace("--", "–").replace("``", "“").replace("''", "”")
    paragraphs = (one_line(re.sub(r"[{}\\]", "", part)) for part in re.split(r"\n\s*\n", text))
    return "\n\n".join(re.sub(r" +([.,;:)])", r"\1", part) for part in paragraphs if part)


def _cited(command: str, keys: str, marks: Mapping[str, str], names: Mapping[str, str]) -> str:
    known = {
        marks[key]: key
        for key in reversed([key.strip() for key in keys.split(",")])
        if key in marks
    }
    if command in _NAMING:
        return " " + ", ".join(
            f"{names.get(key, '')} {mark}".strip() for mark, key in reversed(known.items())
        )
    return "".join(f" {mark}" for mark in reversed(known))


def _field_text(text: str) -> str:
    """A field of BibTeX as text. An ampersand is kept even where the field does not escape it."""
    return plain_field(_AMPERSAND.sub(r"\\&", text))


def main() -> None:
    """Write the tasks as task files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--month", help="of the dump, to run the tasks with")
    options = parser.parse_args()
    for imported in import_deepscholar(options.folder, options.month):
        print(write_task_file(imported.task, options.output))


if __name__ == "__main__":
    main()
