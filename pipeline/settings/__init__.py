"""Every setting of citeloom, once: typed, documented, read from `CITELOOM_*` and `.env`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, get_args

from platformdirs import user_state_path
from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict
from upath import UPath

from pipeline.arxiv.categories import spelt
from pipeline.arxiv.identifiers import normalise
from pipeline.errors import SettingError
from pipeline.storage.store import Place, StorePath

PROJECT = Path(__file__).resolve().parents[2]
SAMPLE_DUMP = PROJECT / "examples" / "dump"
SAMPLE_SNAPSHOT = PROJECT / "examples" / "metadata.jsonl"
SAMPLE_QUESTIONS = PROJECT / "examples" / "questions.jsonl"

SUBSETS = ("no_problem", "warning", "error", "unrated")
# What a model of 135 M weights on two cores does in minutes: about 600 tokens read and 150 written in a second. They
# stand in for the defaults below where no endpoint is set.
EMBEDDED_LLM = {
    "llm_context": 4096,
    "chatcite_samples": 2,
    "chatcite_votes": 3,
    "chatcite_kept": 1,
    "draft_tokens": 128,
    "vote_tokens": 48,
    "element_tokens": 48,
    "max_tasks": 1,
    "outside_references": "drop",
    "judge_repeats": 1,
    "judge_alone": False,
    "support_citations": 4,
    "support_passages": 1,
    "max_questions": 1,
    "answer_systems": ("arxivbot", "direct"),
    "answer_tokens": 128,
}

# user:password@ before the host of an address.
_WITH_PASSWORD = re.compile(r"\s*[A-Za-z][\w+.-]*://[^/?#\s]*@")
# The same, or what follows a question mark, in which some services take keys.
_MAY_TELL = re.compile(rf"{_WITH_PASSWORD.pattern}|[^?]*://[^?]*\?")
# Which numbers a field may hold, Dagster says.
_CRON = re.compile(r"@(?:hourly|daily|weekly|monthly|yearly)|[\w*/,#-]+(?: +[\w*/,#-]+){4}")

CommaSeparated = Annotated[tuple[str, ...], NoDecode]


class Settings(BaseSettings):
    """What a run may be told. Every field is the environment variable `CITELOOM_` + its name in capitals."""

    model_config = SettingsConfigDict(env_prefix="CITELOOM_", env_file=".env", extra="ignore", frozen=True)

    dump_dir: Path | UPath = Field(
        SAMPLE_DUMP, description="Folder of the ar5iv zips and loose pages, or its address (s3://…)."
    )
    subsets: CommaSeparated = Field(
        SUBSETS, description="Severities of the dump to read, of no_problem, warning, error, unrated; commas between."
    )
    metadata_snapshot: Path | None = Field(
        SAMPLE_SNAPSHOT, description="arXiv metadata snapshot, JSON lines, plain or .gz; empty for none."
    )
    data: Path | UPath | None = Field(
        None, description="Data root: every table, reports; a folder, or an object store's address (s3://…)."
    )
    local: Path | None = Field(
        None,
        description="Folder on this machine for the embedded index, caches, locks, Dagster's state; empty: the data "
        "root, where that is a folder.",
    )
    categories: CommaSeparated = Field(
        ("cs",), description="Archives (cs) or categories (cs.CL) whose papers are kept, with commas between."
    )
    category_match: Literal["any", "primary"] = Field(
        "any", description="Whether any category of a paper may match, or its primary one alone."
    )
    arxiv_api: bool = Field(True, description="Ask the arXiv API for papers that the snapshot lacks.")
    arxiv_api_url: str = Field(
        "https://export.arxiv.org/api/query", description="Base URL of the arXiv API; another one only in tests."
    )
    oai_url: str = Field(
        "https://oaipmh.arxiv.org/oai", description="Base URL of arXiv's OAI-PMH interface; another one only in tests."
    )
    fetch_html: bool = Field(
        False, description="Whether citeloom fetch-html may ask arXiv for pages: arXiv's terms are accepted."
    )
    html_url: str = Field("https://arxiv.org/html", description="Address below which arXiv's pages lie, by identifier.")
    arxiv_user_agent: str = Field(
        "citeloom (set CITELOOM_ARXIV_USER_AGENT to your contact)", description="User-Agent sent to arXiv."
    )
    parser: Literal["fast", "reference"] = Field(
        "fast", description="HTML parser: fast, or the arXivBot report's way (BeautifulSoup, mwparserfromhtml)."
    )
    page_errors: Literal["keep", "drop_paragraphs", "drop_page"] = Field(
        "keep", description="Text that LaTeXML marked as broken: keep it, drop such paragraphs, or drop the page."
    )
    page_seconds: float = Field(10.0, gt=0, description="Processor time that one page may take to parse.")
    workers: int = Field(0, ge=0, description="Worker processes of papers and passages; 0 for one on each core.")
    embedded_form: Literal["passage", "title", "sections"] = Field(
        "sections", description="What is embedded: the passage alone, title and passage, or title, sections, passage."
    )
    embedder: Literal["minilm", "bge-m3"] = Field("minilm", description="Embedding model.")
    embedder_path: str = Field(
        "BAAI/bge-m3", description="BGE-M3's folder or hub name; read where CITELOOM_EMBEDDER is bge-m3."
    )
    embedder_device: str = Field(
        "auto", description="auto or cuda (every GPU), cpu, or devices such as cuda:1, with commas between."
    )
    embedder_precision: Literal["auto", "fp32", "bf16", "fp16"] = Field(
        "auto", description="Of the embedder's matrix products; auto: fp16 for BGE-M3 on a GPU, else fp32."
    )
    embedder_tokens: int = Field(
        0, ge=0, description="Tokens that the embedder computes together; 0 for 1,024 on a CPU, 32,768 on a GPU."
    )
    embedder_colbert: bool = Field(False, description="Also keep BGE-M3's ColBERT vectors.")
    qdrant_url: str | None = Field(None, description="Qdrant server; empty for Qdrant Edge in the data root.")
    qdrant_api_key: SecretStr | None = Field(None, description="API key of the Qdrant server.")
    qdrant_private_network: bool = Field(
        False, description="Let a Qdrant server on another host be asked without a key, or with one over plain http."
    )
    qdrant_grpc_port: int | None = Field(
        None, description="gRPC port of the Qdrant server; empty for 6334 where the URL's port is 6333, else HTTP."
    )
    qdrant_collection: str = Field("citeloom", description="Name (alias) of the collection that searches ask.")
    qdrant_quantization: Literal["int8", "binary", "none"] = Field(
        "int8", description="How dense vectors are compressed for searching; the best are scored again as they are."
    )
    qdrant_on_disk: bool = Field(
        False, description="Whether whole vectors stay on disk, compressed ones alone in memory; for a new collection."
    )
    qdrant_shards: int = Field(1, ge=1, description="Shards of a new collection on a server.")
    qdrant_replicas: int = Field(1, ge=1, description="Copies of each shard of a new collection on a cluster.")
    reranker: str = Field(
        "", description="Cross-encoder (folder or hub name) that a search may rank again with; empty for none."
    )
    retrieval_queries: int = Field(
        1000, ge=0, description="Citing sentences of one month that retrieval is scored on, at most; 0 for none."
    )
    retrieval_pool: int = Field(
        20_000, ge=100, description="Passages that retrieval is scored over, at most: the cited papers' and others'."
    )
    llm_url: str | None = Field(None, description="OpenAI-compatible endpoint (…/v1); empty for the embedded SmolLM2.")
    llm_model: str = Field("smollm2-135m-instruct", description="Model name that the endpoint knows.")
    llm_api_key: SecretStr | None = Field(None, description="API key of the LLM endpoint.")
    llm_context: int = Field(8192, ge=512, description="Tokens that the model can read and write in one call.")
    llm_concurrency: int = Field(4, ge=1, description="LLM calls in flight at once.")
    llm_timeout: float = Field(300.0, gt=0, description="Seconds that one LLM call may take.")
    llm_budget_calls: int = Field(0, ge=0, description="LLM calls (answers) that one run may pay for; 0 for no limit.")
    llm_budget_tokens: int = Field(
        0, ge=0, description="Tokens, read and written, that one run may pay for; 0 for no limit."
    )
    llm_budget_money: float = Field(
        0.0, ge=0, description="Money that one run may cost, by the prices; 0 for no limit."
    )
    llm_budget_name: str = Field(
        "", description="Name of a budget that several runs share, such as 2026-11; empty for one of each run's own."
    )
    llm_price_read: float = Field(0.0, ge=0, description="Price of a million tokens that the LLM reads; 0 for none.")
    llm_price_written: float = Field(
        0.0, ge=0, description="Price of a million tokens that the LLM writes; 0 for none."
    )
    systems: CommaSeparated = Field(
        ("chatcite", "zero_shot"), description="Related-work systems to run, with commas between."
    )
    chatcite_samples: int = Field(3, ge=1, description="n_s: drafts sampled from every kept draft.")
    chatcite_votes: int = Field(5, ge=1, description="n_v: votes of the reflective evaluator per step.")
    chatcite_kept: int = Field(2, ge=1, description="n_c: drafts kept after every step.")
    chatcite_examples: int = Field(0, ge=0, description="Examples of style shown with every draft of ChatCite.")
    guidelines: str = Field("", description="Guidelines for ChatCite's writer, in place of the prompt's own.")
    few_shot_examples: int = Field(2, ge=1, description="Examples of style that few_shot shows.")
    temperature: float = Field(0.7, ge=0, le=2, description="Sampling temperature of drafts and summaries.")
    vote_temperature: float = Field(0.7, ge=0, le=2, description="Sampling temperature of votes.")
    draft_tokens: int = Field(
        512, ge=16, description="Longest draft, in tokens; of a task of many references, 24 for each of them."
    )
    element_tokens: int = Field(96, ge=16, description="Longest of the seven key-element answers, in tokens.")
    vote_tokens: int = Field(256, ge=16, description="Longest vote, in tokens.")
    judge_url: str | None = Field(
        None, description="OpenAI-compatible endpoint of the judge; empty for that of CITELOOM_LLM_URL."
    )
    judge_model: str = Field("", description="Model that judges; empty for CITELOOM_LLM_MODEL, which judges itself.")
    judge_api_key: SecretStr | None = Field(None, description="API key of the judge's endpoint.")
    judge_context: int = Field(
        0, ge=0, description="Tokens that a judge can read and write in one call; 0 for the LLM's."
    )
    judge_price_read: float = Field(
        0.0, ge=0, description="Price of a million tokens that the judge reads, where a judge is named."
    )
    judge_price_written: float = Field(
        0.0, ge=0, description="Price of a million tokens that the judge writes, where a judge is named."
    )
    second_judge_url: str | None = Field(None, description="Endpoint of a second judge; empty for CITELOOM_LLM_URL.")
    second_judge_model: str = Field("", description="Model of a second judge; empty for none.")
    second_judge_api_key: SecretStr | None = Field(None, description="API key of the second judge's endpoint.")
    second_judge_price_read: float = Field(
        0.0, ge=0, description="Price of a million tokens that the second judge reads."
    )
    second_judge_price_written: float = Field(
        0.0, ge=0, description="Price of a million tokens that the second judge writes."
    )
    judge_repeats: int = Field(
        3, ge=1, description="Times that each judge marks a task's systems together, each time in another order."
    )
    judge_alone: bool = Field(True, description="Also have each section marked by itself.")
    support_passages: int = Field(3, ge=1, description="Passages of a cited work that a judge of a citation is shown.")
    support_citations: int = Field(
        1000, ge=0, description="Citations of one section that are judged at most; the rest is counted; 0 for none."
    )
    stability_tasks: int = Field(0, ge=0, description="Tasks of a month on which stability is measured; 0 for none.")
    stability_repeats: int = Field(
        5, ge=2, description="Times that each of these is written anew, with other samples and in other orders."
    )
    min_references: int = Field(
        2, ge=1, description="References resolved to papers of the corpus that make a paper a related-work task."
    )
    outside_references: Literal["item", "abstract", "drop"] = Field(
        "item",
        description="Cited works outside the corpus: all, with abstract or else the item; those with one; or none.",
    )
    tasks_dir: Path | None = Field(
        None,
        description="Folder of related-work tasks as JSON files, which join those of their months; empty for none.",
    )
    max_references: int = Field(100, ge=1, description="References of one task at most; the rest is in the ledger.")
    max_tasks: int = Field(1000, ge=0, description="Related-work tasks of one month at most.")
    questions: Path | None = Field(
        None, description="Question set, JSON lines or YAML; empty for the sample's with the sample corpus, else none."
    )
    max_questions: int = Field(1000, ge=0, description="Questions of one month that are asked at most; 0 for none.")
    draft_questions: int = Field(
        0, ge=0, description="Papers of one month for which the LLM drafts questions, evenly chosen; 0 for none."
    )
    draft_papers: CommaSeparated = Field(
        (), description="arXiv ids of papers for which it drafts questions besides, with commas between."
    )
    answer_systems: CommaSeparated = Field(
        ("arxivbot", "direct", "wikichat"), description="Systems that answer the questions, with commas between."
    )
    imported_answers: Path | None = Field(
        None, description="CSV file of answers made elsewhere, which are graded beside ours; empty for none."
    )
    llm_cutoff: str = Field(
        "", description="Knowledge cut-off of the LLM (YYYY-MM): questions on later papers are recent; empty for none."
    )
    grade_controls: int = Field(
        0, ge=0, description="Questions of a month on which the judge is tried by answers whose grade is known."
    )
    answer_candidates: int = Field(
        20, ge=1, description="Passages that the search for an answer finds; the LLM ranks them."
    )
    answer_passages: int = Field(3, ge=1, description="Best of these passages, which the LLM reads in each hop.")
    answer_claims: int = Field(3, ge=1, description="Claims that arXivBot keeps of the passages of one hop, at most.")
    answer_hops: int = Field(2, ge=1, description="Searches of arXivBot for one question, at most.")
    answer_evidence: int = Field(2, ge=1, description="Passages that WikiChat checks each claim of the LLM by.")
    answer_tokens: int = Field(512, ge=32, description="Longest answer to a question, in tokens.")

    otel_endpoint: str | None = Field(
        None, description="OpenTelemetry collector, OTLP over HTTP (http://localhost:4318); empty to send nothing."
    )

    dagster_pg_url: SecretStr | None = Field(
        None, description="Postgres for Dagster's runs (postgresql://user:password@host/database); empty for SQLite."
    )

    executor: Literal["in_process", "ray", "k8s"] = Field(
        "in_process",
        description="Where steps work: in_process in the run's own process, ray as jobs of a Ray cluster, k8s as pods.",
    )
    ray_address: str = Field(
        "http://127.0.0.1:8265", description="Job server of the Ray cluster (the head's dashboard port)."
    )
    step_cpus: float = Field(
        1.0,
        gt=0,
        description="Processors of a node that one step takes on a cluster; papers and passages use them all.",
    )
    embedding_gpus: float = Field(0.0, ge=0, description="GPUs of a node that the step embeddings takes on a cluster.")

    refresh_cron: str = Field(
        "0 4 3 * *", description="When the schedule refreshes the corpus, as cron writes it, in UTC."
    )
    refresh_harvest: bool = Field(
        True, description="Whether a refresh asks arXiv over OAI-PMH what changed; false where new snapshots tell it."
    )
    refresh_llm_tokens: int = Field(
        0, ge=0, description="Tokens that a refresh may pay for where LLM tables are out of date; 0 leaves them so."
    )

    fresh_days: int = Field(
        0, ge=0, description="Days after a month's end by which papers and the index must hold it; 0: none is expected."
    )
    webhook_url: SecretStr | None = Field(
        None, description="Address that takes a message for each failed run, as Slack's webhooks do; empty for none."
    )

    @model_validator(mode="before")
    @classmethod
    def _suit_the_embedded_model(cls, given: Mapping[str, object]) -> Mapping[str, object]:
        return given if given.get("llm_url") else {**EMBEDDED_LLM, **given}

    @field_validator("data")
    @classmethod
    def _place_to_keep(cls, value: Path | UPath | None) -> Path | UPath | None:
        if value is None or isinstance(value, Path):
            return value
        if value.protocol == "memory":
            raise ValueError("would be gone with the process")
        if not value.path.strip("/") or re.search(r"::|[?#]", str(value)):
            raise ValueError("must be an address such as s3://bucket/corpus, and no more than that")
        return value

    @field_validator("dump_dir", "data", mode="before")
    @classmethod
    def _path_or_address(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        if "://" not in value:
            return Path(value)
        address = UPath(value)
        return Path(address.path) if address.protocol in ("file", "local") else address

    @field_validator("subsets", "categories", "systems", "answer_systems", "draft_papers", mode="before")
    @classmethod
    def _split_commas(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("categories", "systems", "answer_systems")
    @classmethod
    def _some(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("must name at least one")
        return value

    @field_validator("categories")
    @classmethod
    def _spelt_categories(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        wrong = [category for category in value if spelt(category) is None]
        if wrong:
            raise ValueError(f"must be archives or categories such as cs or cs.CL, not {', '.join(wrong)}")
        return tuple(dict.fromkeys(spelt(category) or "" for category in value))

    @field_validator("draft_papers")
    @classmethod
    def _arxiv_ids(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        wrong = [each for each in value if normalise(each) is None]
        if wrong:
            raise ValueError(f"must be arXiv ids such as 2403.02574 or cs/0112017, not {', '.join(wrong)}")
        return tuple(dict.fromkeys(normalise(each) or "" for each in value))

    @field_validator("refresh_cron")
    @classmethod
    def _five_fields(cls, value: str) -> str:
        if not _CRON.fullmatch(value.strip()):
            raise ValueError("must be five fields of cron, such as 0 4 3 * *, or one of @daily, @weekly, @monthly")
        return value.strip()

    @field_validator("llm_cutoff")
    @classmethod
    def _month_or_day(cls, value: str) -> str:
        try:
            date.fromisoformat(f"{value}-01" if len(value) == len("2023-12") else value or "2023-12-31")
        except ValueError:
            raise ValueError("must be a month or a day, such as 2023-12") from None
        return value

    @field_validator("webhook_url")
    @classmethod
    def _web_address(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not value.get_secret_value().startswith(("https://", "http://")):
            raise ValueError("must begin with https:// or http://")
        return value

    @field_validator("subsets")
    @classmethod
    def _known_subsets(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        unknown = sorted(set(value) - set(SUBSETS))
        if unknown or not value:
            raise ValueError(f"must name some of {', '.join(SUBSETS)}, not {', '.join(unknown) or 'nothing'}")
        return value

    @field_validator(
        "metadata_snapshot",
        "data",
        "local",
        "qdrant_url",
        "qdrant_api_key",
        "qdrant_grpc_port",
        "llm_url",
        "llm_api_key",
        "judge_url",
        "judge_api_key",
        "second_judge_url",
        "second_judge_api_key",
        "tasks_dir",
        "questions",
        "imported_answers",
        "otel_endpoint",
        "dagster_pg_url",
        "webhook_url",
        mode="before",
    )
    @classmethod
    def _empty_is_none(cls, value: object) -> object:
        return None if value == "" else value

    # The last one, which therefore sees each value first, as it was written.
    @field_validator("*", mode="before")
    @classmethod
    def _no_password_in_an_address(cls, value: object, info: ValidationInfo) -> object:
        """An address goes into messages, tables and Dagster's stores; what is secret has a setting of its own."""
        if isinstance(value, str) and _WITH_PASSWORD.match(value) and not is_secret(info.field_name or ""):
            raise ValueError("holds a name or password, which messages would show: leave it out of the address")
        return value

    @property
    def on_cluster(self) -> bool:
        """Whether steps run on other machines than the run that they belong to."""
        return self.executor != "in_process"

    @property
    def question_set(self) -> Path | None:
        """The file of questions; those of the sample corpus belong to no other."""
        return self.questions or (SAMPLE_QUESTIONS if self.dump_dir == SAMPLE_DUMP else None)

    @cached_property
    def data_root(self) -> Place:
        """Absolute data root. The sample corpus and a real dump never share one by default."""
        return self._data_folder or StorePath(str(self.data).rstrip("/"), self.local_root)

    @cached_property
    def local_root(self) -> Path:
        """Absolute folder on this machine's disk for what need not be seen from others: locks, what can be made again,
        the embedded index, Dagster's state. Its default is the data root, where that is a folder, and else one that is
        this user's and the address's own."""
        if self.local is not None:
            return self.local.resolve()
        name = hashlib.sha256(str(self.data).rstrip("/").encode()).hexdigest()[:16]
        return self._data_folder or user_state_path("citeloom") / name

    @property
    def _data_folder(self) -> Path | None:
        """The data root, where it is a folder on a disk."""
        if self.data is None:
            return (Path("data") / ("demo" if self.dump_dir == SAMPLE_DUMP else "corpus")).resolve()
        return self.data.resolve() if isinstance(self.data, Path) else None


def load_settings(**overrides: object) -> Settings:
    """Settings from overrides, the environment and `.env`, in this order of precedence.

    Raises SettingError with one line for every setting that is wrong.
    """
    try:
        return Settings(**overrides)  # type: ignore[arg-type]
    except UnicodeDecodeError as error:
        raise SettingError(f".env is not UTF-8 text ({error}): write it anew") from error
    except ValidationError as error:
        lines = [_explain(detail["loc"], detail["msg"], detail["input"]) for detail in error.errors()]
        raise SettingError("\n".join(lines)) from None


def is_secret(field: str) -> bool:
    """Whether a setting is read as a secret, which no message shows."""
    known = Settings.model_fields.get(field)
    return known is not None and SecretStr in (known.annotation, *get_args(known.annotation))


def _explain(location: tuple[int | str, ...], message: str, value: object) -> str:
    field = str(location[0]) if location else "*"
    hidden = is_secret(field) or _MAY_TELL.match(str(value))
    shown = "" if hidden else f" (it is {str(value)!r})"
    return f"CITELOOM_{field.upper()}: {message.removeprefix('Value error, ')}{shown}"
