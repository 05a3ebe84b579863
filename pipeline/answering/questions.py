"""Question sets: questions on papers with their gold claims, read from a file or the table
`questions` and validated, and the passages that hold the claims.

docs/methods/questions.md describes the formats. A question's month is that of its newest paper.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from pipeline import tables
from pipeline.corpus.parse.policies import without_markers
from pipeline.errors import SettingError
from pipeline.identity.identifiers import month_of, months_of, normalize_arxiv_id
from pipeline.index.papers import rows_of_papers
from pipeline.settings import Settings
from pipeline.storage.csv_reader import read_content
from pipeline.storage.data_root import DataRoot
from pipeline.storage.json_reader import parse_json
from pipeline.storage.writing import Row
from pipeline.text import one_line

Kind = Literal["author", "dataset", "summary", "limitation", "comparison"]
KINDS: tuple[Kind, ...] = get_args(Kind)

# A shorter phrase occurs in many passages, a longer one is broken by the next citation or formula.
FEWEST_WORDS, MOST_WORDS = 4, 20
_MOST_BYTES = 50_000_000
# Faults of a file that one message reports.
_MOST_FAULTS = 5
# After so many, the rest of the file is not read.
_MOST_COUNTED = 1_000
_FORMAT = "docs/methods/questions.md describes the format"
# Characters that a keyboard lacks → what people type for them; bars separate the cells of a table.
_PLAIN = str.maketrans(
    {"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "−": "-", "\xad": None, "|": " "}
)


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _paper(value: Any) -> str:
    if isinstance(value, float):
        raise ValueError(f"{value} is a number: put quotes around the id, else it loses zeros")
    arxiv_id = normalize_arxiv_id(value) if isinstance(value, str) else None
    if arxiv_id is None:
        raise ValueError(f"{value!r} is not an arXiv id: write it as '2403.02574' or 'cs/0112017'")
    return arxiv_id


def _phrase(value: str) -> str:
    words = len(plain(value).split())
    if not FEWEST_WORDS <= words <= MOST_WORDS:
        raise ValueError(
            f"{value!r} has {words} words: copy a phrase of {FEWEST_WORDS} to {MOST_WORDS} from the"
            " page"
        )
    return one_line(value)


def _day(value: Any) -> Any:
    # YAML reads a date without quotes as one.
    text = value.isoformat() if isinstance(value, date) else value
    if isinstance(text, str):
        try:
            date.fromisoformat(text)
        except ValueError:
            raise ValueError(f"{text!r} is not a day: write it as YYYY-MM-DD") from None
    return text


_Words = Annotated[
    str, AfterValidator(one_line), Field(min_length=1, max_length=2_000, pattern=r"\S")
]
_PaperId = Annotated[str, BeforeValidator(_paper)]
_Phrase = Annotated[str, AfterValidator(_phrase)]


class GoldClaim(BaseModel):
    """A fact that a full answer holds. evidence: phrases of its paper, each of which states it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    claim: _Words
    paper: _PaperId
    evidence: Annotated[
        tuple[_Phrase, ...],
        BeforeValidator(_as_list),
    ] = ()


class Question(BaseModel):
    """A question on one or several papers. date: YYYY-MM-DD of the newest's first version."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
    question: _Words
    kind: Kind
    papers: Annotated[tuple[_PaperId, ...], Field(min_length=1)]
    claims: Annotated[tuple[GoldClaim, ...], Field(min_length=1)]
    # Earlier versions asked only questions that a person had accepted.
    reviewed: Literal[True] = True
    date: Annotated[str | None, BeforeValidator(_day)] = None

    @property
    def month(self) -> str:
        """The month of the newest of its papers, YYYY-MM: no earlier month can answer in full."""
        return max(month for paper in self.papers if (month := month_of(paper)))

    @model_validator(mode="after")
    def _fits_together(self) -> Question:
        for paper, count in Counter(self.papers).items():
            if count > 1:
                raise ValueError(f"papers has {paper} {count} times: name each paper once")
        for text, count in Counter(claim.claim for claim in self.claims).items():
            if count > 1:
                raise ValueError(f"the claim {text!r} occurs {count} times: remove the others")
        for place, claim in enumerate(self.claims):
            if claim.paper not in self.papers:
                raise ValueError(
                    f"claims.{place} is of {claim.paper}, which is not among papers: add it there"
                )
        return self


def read_questions(file: Path) -> tuple[Question, ...]:
    """The questions of a file, in its order: JSON lines, or in `.yaml` and `.yml` a YAML list.

    Raises SettingError that names file, line, question and field, for the first five faults at
    once, where the file cannot be read, holds no question, or two questions have one id.
    """
    content = read_content(file, "the path of a question set", _MOST_BYTES)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingError(f"{file} is not UTF-8 (byte {error.start}): save it as UTF-8") from error
    if file.suffix.lower() in (".yaml", ".yml"):
        return _validate(file, _yaml_entries(file, text))
    return _validate(file, _json_entries(file, text))


def _json_entries(file: Path, text: str) -> Iterator[tuple[int, Any]]:
    # Not `splitlines`, which also splits at characters that JSON allows inside a text.
    for line, entry in enumerate(text.split("\n"), start=1):
        if entry.strip():
            try:
                yield line, parse_json(entry)
            except ValueError as error:
                raise SettingError(
                    f"{file}, line {line} is not a JSON object ({one_line(str(error))}):"
                    " write one question on each line, or a YAML list into a file that ends in"
                    f" .yaml; {_FORMAT}"
                ) from None


def _yaml_entries(file: Path, text: str) -> Iterator[tuple[int, Any]]:
    import yaml

    from pipeline.yaml_loader import PlainLoader

    loader = PlainLoader(text)
    try:
        node = loader.get_single_node()
        if node is not None and not isinstance(node, yaml.SequenceNode):
            raise SettingError(
                f"{file} is not a list: begin each question with `- id: …`; {_FORMAT}"
            )
        for entry in node.value if node else ():
            yield entry.start_mark.line + 1, loader.construct_document(entry)
    # ValueError: a date that does not exist
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingError(f"{file} is not YAML: {one_line(str(error))}; {_FORMAT}") from None
    finally:
        loader.dispose()


def _validate(file: Path, entries: Iterable[tuple[int, Any]]) -> tuple[Question, ...]:
    questions: list[Question] = []
    faults: list[str] = []
    lines: dict[str, int] = {}
    for line, entry in entries:
        if len(faults) > _MOST_COUNTED:
            break
        if not isinstance(entry, Mapping):
            faults.append(f"line {line}: is not an object with the fields of a question")
            continue
        try:
            question = Question.model_validate(entry)
        except ValidationError as error:
            named = f" ({entry['id']})" if entry.get("id") else ""
            for fault in error.errors():
                field = ".".join(map(str, fault["loc"])) or "question"
                faults.append(
                    f"line {line}{named}, {field}: {fault['msg'].removeprefix('Value error, ')}"
                )
            continue
        if question.id in lines:
            faults.append(
                f"line {line}: id {question.id} is also that of line {lines[question.id]}: give it"
                " another"
            )
        lines.setdefault(question.id, line)
        questions.append(question)
    if faults:
        more = f"; and {len(faults) - _MOST_FAULTS} more" if len(faults) > _MOST_FAULTS else ""
        raise SettingError(f"{file}: {'; '.join(faults[:_MOST_FAULTS])}{more}. {_FORMAT}")
    if not questions:
        raise SettingError(f"{file} holds no question: write one on each line; {_FORMAT}")
    return tuple(questions)


def gold_passages(
    question: Question, passages: Mapping[str, Sequence[Mapping[str, Any]]]
) -> dict[int, tuple[str, ...]]:
    """For each claim, by its place from 0, the ids of its paper's passages with one of its phrases.

    passages: arXiv id → rows of the table `passages` (`passage_id` and `text` are read), whose
    order the ids keep. White space, case, citation markers, the bars of tables and the form of
    quotes and dashes make no difference; a phrase begins and ends at the boundary of a word. Empty
    where no passage holds a phrase.
    """
    return {
        place: tuple(
            str(row["passage_id"])
            for row in passages.get(claim.paper, ())
            if any(holds_phrase(row["text"], phrase) for phrase in claim.evidence)
        )
        for place, claim in enumerate(question.claims)
    }


def holds_phrase(text: str, phrase: str) -> bool:
    """Whether a text holds a phrase, compared as `gold_passages` says."""
    return re.search(rf"(?<!\w){re.escape(plain(phrase))}(?!\w)", plain(text)) is not None


def plain(text: str) -> str:
    """A text as `gold_passages` compares phrases, and in which their words are counted."""
    return one_line(without_markers(text).translate(_PLAIN)).casefold()


@dataclass(frozen=True, slots=True)
class PosedQuestion:
    """A question of the table `questions`.

    gold_passages: place of a gold claim, from 0 → ids of the passages that hold it.
    """

    question: Question
    gold_passages: Mapping[int, tuple[str, ...]]


def paper_months(questions: Iterable[Question]) -> list[str]:
    """The months of all papers of some questions, oldest first."""
    return months_of(paper for question in questions for paper in question.papers)


def passages_of_papers(root: DataRoot, questions: Iterable[Question]) -> dict[str, list[Row]]:
    """Rows of `passages` (id, paper, text) by paper, of the papers of these questions."""
    papers = {paper for question in questions for paper in question.papers}
    passages: dict[str, list[Row]] = defaultdict(list)
    for row in rows_of_papers(root, tables.PASSAGES, papers, ["passage_id", "arxiv_id", "text"]):
        passages[row["arxiv_id"]].append(row)
    return passages


def read_posed_questions(rows: Iterable[Row]) -> list[PosedQuestion]:
    """Questions from rows of the table `questions`."""
    posed = []
    for row in rows:
        # Without validation, since the date may be a month.
        claims = [
            GoldClaim.model_construct(
                claim=item["claim"], paper=item["arxiv_id"], evidence=tuple(item["evidence"])
            )
            for item in row["claims"]
        ]
        question = Question.model_construct(
            id=row["question_id"],
            question=row["question"],
            kind=row["kind"],
            papers=tuple(row["papers"]),
            claims=tuple(claims),
            date=row["date"],
        )
        gold = {place: tuple(item["passages"]) for place, item in enumerate(row["claims"])}
        posed.append(PosedQuestion(question, gold))
    return posed


def read_question_set(settings: Settings) -> tuple[Question, ...]:
    """All questions of the set, if there is one. Raises SettingError as `read_questions` does."""
    return read_questions(settings.question_set) if settings.question_set else ()


def claim_rows(question: Question, gold: Mapping[int, Sequence[str]]) -> list[dict[str, Any]]:
    """The column `claims` of a question; gold: as `gold_passages` gives it."""
    return [
        {
            "claim": claim.claim,
            "arxiv_id": claim.paper,
            "evidence": list(claim.evidence),
            "passages": list(gold[place]),
        }
        for place, claim in enumerate(question.claims)
    ]
