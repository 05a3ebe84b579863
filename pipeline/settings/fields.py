"""The settings in their groups: name, type, default and description of each.

`Settings` (in `pipeline.settings.settings`) is made of these classes, and
docs/reference/settings.md is generated from them. A group's docstring is its heading there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, SecretStr
from pydantic_settings import NoDecode

from pipeline.settings.validators import (
    SUBSETS,
    check_categories,
    check_cron,
    check_data_root,
    check_embedder,
    check_judges,
    check_month_or_day,
    check_price,
    check_profile,
    check_subsets,
    check_web_address,
    parse_candidate_sets,
    parse_location,
    require_some,
    split_commas,
)
from pipeline.system_names import present_names

# Holds the sample corpus, workspace.yaml and dagster.yaml: the checkout, or the files of it that a
# wheel brings.
_PACKAGES = Path(__file__).resolve().parents[2]
PROJECT = (
    _PACKAGES
    if (_PACKAGES / "workspace.yaml").is_file()
    else _PACKAGES / "pipeline" / "project_files"
)
SAMPLE_DUMP = PROJECT / "examples" / "dump"
SAMPLE_SNAPSHOT = PROJECT / "examples" / "metadata.jsonl"
SAMPLE_QUESTIONS = PROJECT / "examples" / "questions.jsonl"

CommaSeparated = Annotated[tuple[str, ...], NoDecode, BeforeValidator(split_commas)]


class ProfileSettings(BaseModel):
    """Profile"""

    profile: Annotated[str, AfterValidator(check_profile)] = Field(
        "",
        description=(
            "Settings of a paper's tables (systems, models, numbers) in one word, such as"
            " chatcite-paper (docs/how-to/language-model.md); other settings override it. Empty for"
            " none."
        ),
    )


class CorpusSettings(BaseModel):
    """Corpus"""

    dump_dir: Annotated[Path | str, BeforeValidator(parse_location)] = Field(
        SAMPLE_DUMP,
        description=(
            "Folder of the ar5iv zips and of loose pages, or its address (s3://bucket/folder)."
        ),
    )
    subsets: Annotated[CommaSeparated, AfterValidator(check_subsets)] = Field(
        SUBSETS,
        description=(
            "Conversion severities to read: no_problem, warning, error, unrated; separated by"
            " commas."
        ),
    )
    sources: Path | None = Field(
        None,
        description=(
            "Folder of arXiv's source tars, of e-prints, or of folders with TeX files, to be"
            " converted into pages; empty for none."
        ),
    )
    bindings: Path | None = Field(
        None,
        description=(
            "Folder of ar5iv's LaTeXML bindings, by which sources are converted; empty for none."
        ),
    )
    convert_unsafe: bool = Field(
        False,
        description=(
            "Convert sources without a sandbox: papers can then read your files into their pages."
        ),
    )
    metadata_snapshot: Path | None = Field(
        SAMPLE_SNAPSHOT,
        description="arXiv metadata snapshot, JSON lines, plain or .gz; empty for none.",
    )
    retractions: Path | None = Field(
        None,
        description=(
            "CSV file of Retraction Watch (https://gitlab.com/crossref/retraction-watch-data), by"
            " which citeloom check marks retracted works; empty for none."
        ),
    )
    data: Annotated[
        Path | str | None, BeforeValidator(parse_location), AfterValidator(check_data_root)
    ] = Field(
        None,
        description=(
            "Data root, which holds every table and the reports: a folder, or an address on an"
            " object store (s3://bucket/folder); empty for data/demo with the sample corpus,"
            " data/corpus with any other."
        ),
    )
    local: Path | None = Field(
        None,
        description=(
            "Folder on this machine for the in-process index, caches, locks and Dagster's state;"
            " empty for the data root if that is a folder."
        ),
    )
    categories: Annotated[
        CommaSeparated, AfterValidator(require_some), AfterValidator(check_categories)
    ] = Field(
        ("cs",),
        description=(
            "Archives (cs) or categories (cs.CL) whose papers are kept; separated by commas."
        ),
    )
    category_match: Literal["any", "primary"] = Field(
        "any",
        description="Which of a paper's categories must be among them: any, or the primary one.",
    )
    parser: Literal["fast", "reference"] = Field(
        "fast",
        description=(
            "HTML parser: fast, or reference (BeautifulSoup, mwparserfromhtml; the arXivBot"
            " report's; words of each section alone)."
        ),
    )
    workers: int = Field(
        0,
        ge=0,
        description=(
            "Worker processes of the stages papers and passages; 0 for one on each core. Also the"
            " processors that a step asks of a cluster's node, where 0 asks for one."
        ),
    )


class ArxivSettings(BaseModel):
    """arXiv"""

    arxiv_api: bool = Field(
        True, description="Ask the arXiv API for papers that the snapshot lacks."
    )
    arxiv_user_agent: str = Field(
        "citeloom (set CITELOOM_ARXIV_USER_AGENT to your contact)",
        description="User-Agent header sent to arXiv.",
    )
    arxiv_api_url: str = Field(
        "https://export.arxiv.org/api/query",
        description="Address of the arXiv API; others only in tests.",
    )
    oai_url: str = Field(
        "https://oaipmh.arxiv.org/oai",
        description="Address of arXiv's OAI-PMH interface; others only in tests.",
    )
    html_url: str = Field(
        "https://arxiv.org/html", description="Address of the folder of arXiv's HTML pages."
    )


class EmbeddingSettings(BaseModel):
    """Embedding"""

    embedder: Annotated[
        Literal["auto", "minilm", "bge-m3", "sentence-transformers"],
        BeforeValidator(check_embedder),
    ] = Field(
        "auto",
        description=(
            "Embedding model: minilm, bge-m3, or the folder or hub name of a sentence-transformers"
            " model, such as BAAI/bge-small-en-v1.5. auto: that of the data root's vectors; for a"
            " new data root bge-m3 where a GPU and its weights are, else minilm."
        ),
    )
    embedder_engine: Literal["citeloom", "flagembedding"] = Field(
        "citeloom",
        description=(
            "What computes BGE-M3's vectors: citeloom, or FlagEmbedding's BGEM3FlagModel; both give"
            " the same vectors, but for rounding."
        ),
    )
    embedder_path: str = Field(
        "BAAI/bge-m3",
        description=(
            "Folder or hub name of BGE-M3, where CITELOOM_EMBEDDER is bge-m3; another"
            " model's goes into CITELOOM_EMBEDDER itself."
        ),
    )
    embedder_device: str = Field(
        "auto",
        description="auto or cuda (all GPUs), cpu, or devices such as cuda:1, separated by commas.",
    )
    embedder_precision: Literal["auto", "fp32", "bf16", "fp16", "fp8", "int8"] = Field(
        "auto",
        description=(
            "Numbers that the embedder multiplies. auto: for MiniLM int8 where the processor has"
            " instructions for it; for BGE-M3 fp16 on a GPU, bf16 where the processor has it; for"
            " other models fp16 on a GPU; else fp32. fp8 needs a GPU from Hopper on. int8 and fp8"
            " are part of BGE-M3's name."
        ),
    )
    embedder_tokens: int = Field(
        0,
        ge=0,
        description=(
            "Tokens in one batch of the embedder; 0 for 1,024 on a CPU (256 in int8), 65,536 on a"
            " GPU."
        ),
    )


class IndexSettings(BaseModel):
    """Index"""

    qdrant_url: str | None = Field(
        None, description="Address of the Qdrant server; empty for the in-process Qdrant Edge."
    )
    qdrant_api_key: SecretStr | None = Field(None, description="API key of the Qdrant server.")
    qdrant_private_network: bool = Field(
        False,
        description=(
            "Allow a Qdrant server on another host without a key, or with a key over plain http."
        ),
    )
    qdrant_grpc_port: int | None = Field(
        None,
        description=(
            "gRPC port of the Qdrant server; empty for 6334 if the address has port 6333, else no"
            " gRPC."
        ),
    )
    qdrant_collection: str = Field(
        "citeloom", description="Name (alias) of the collection that is searched."
    )
    qdrant_quantization: Literal["auto", "turbo4", "turbo2", "int8", "none"] = Field(
        "auto",
        description=(
            "Compression of dense vectors for searching; the best hits are scored again"
            " uncompressed. turbo4 and turbo2 (TurboQuant, 4 and 2 bits a number; 2 for large"
            " corpora) need Qdrant 1.18 or newer on a server. auto: as the index has it; for a new"
            " one, turbo4 in Qdrant Edge and int8 on a server."
        ),
    )
    qdrant_on_disk: bool = Field(
        False,
        description=(
            "Keep uncompressed vectors on disk, on a server the graph and indexes of filters too;"
            " only compressed vectors are in memory then. For a new collection."
        ),
    )
    qdrant_shards: int = Field(1, ge=1, description="Shards of a new collection on a server.")
    qdrant_replicas: int = Field(
        1, ge=1, description="Copies of each shard of a new collection on a cluster."
    )
    qdrant_parallel_upserts: int = Field(
        4, ge=1, description="Requests at once that load points into a server."
    )


class LanguageModelSettings(BaseModel):
    """Language model"""

    models: Path | None = Field(
        None,
        description=(
            "TOML file of language models, a table for each with url, api_key_env, context,"
            " concurrency, price, cutoff, max_tokens; empty for the one model of the settings"
            " below."
        ),
    )
    llm_url: str | None = Field(
        None,
        description=(
            "OpenAI-compatible endpoint (https://host/v1) of the default model; empty for a model"
            " of CITELOOM_MODELS, without that for the bundled SmolLM2."
        ),
    )
    llm_model: str = Field(
        "smollm2-135m-instruct",
        description=(
            "Name of the default model: at CITELOOM_LLM_URL, which needs it, or in CITELOOM_MODELS,"
            " whose first model is the default otherwise."
        ),
    )
    llm_api_key: SecretStr | None = Field(None, description="API key of CITELOOM_LLM_URL.")
    llm_context: int = Field(
        8192, ge=512, description="Tokens that the model can read and write in one call."
    )
    llm_concurrency: int = Field(4, ge=1, description="Calls in flight at the same time.")
    llm_price: Annotated[str, AfterValidator(check_price)] = Field(
        "",
        description=(
            "Prices of a million tokens of the model, read/written, such as 2.5/10; empty for"
            " unknown."
        ),
    )
    llm_cutoff: Annotated[str, AfterValidator(check_month_or_day)] = Field(
        "",
        description=(
            "Knowledge cut-off of the model (YYYY-MM): questions on later papers are recent; empty"
            " for unknown."
        ),
    )
    llm_timeout: float = Field(300.0, gt=0, description="Time limit of one call, in seconds.")
    llm_budget_calls: int = Field(
        0, ge=0, description="At most this many paid calls in one run; 0 for no limit."
    )
    llm_budget_tokens: int = Field(
        0,
        ge=0,
        description="At most this many paid tokens in one run, read and written; 0 for no limit.",
    )
    llm_budget_money: float = Field(
        0.0,
        ge=0,
        description="At most this much money in one run, at the models' prices; 0 for no limit.",
    )
    llm_budget_name: str = Field(
        "",
        description=(
            "Name of a budget that several runs share, such as 2026-11; empty for one budget per"
            " run."
        ),
    )


class JudgeSettings(BaseModel):
    """Judges"""

    judges: Annotated[CommaSeparated, AfterValidator(check_judges)] = Field(
        (),
        description=(
            "Model that judges, by its name in CITELOOM_MODELS; empty for the default model."
        ),
    )
    judge_repeats: int = Field(
        3,
        ge=1,
        description=(
            "Times that the judge marks a task's systems side by side, each time in another order."
        ),
    )
    candidate_sets: Annotated[
        dict[str, tuple[str, ...]], NoDecode, BeforeValidator(parse_candidate_sets)
    ] = Field(
        {},
        description=(
            "Systems that a judge marks and votes on in one conversation, by the name of the set,"
            ' as JSON: {"main": ["chatcite", "zero_shot@gpt-4"]}; a system alone stands for all its'
            " models. Empty for the ChatCite paper's two: main, of all but the ablations, and"
            " ablations, with ChatCite and few-shot."
        ),
    )
    support_passages: int = Field(
        3,
        ge=0,
        description=(
            "Passages that a judge of a citation, or of an answer's claim, reads; 0 to judge no"
            " citations."
        ),
    )


class RelatedWorkSettings(BaseModel):
    """Related work"""

    systems: Annotated[CommaSeparated, AfterValidator(require_some)] = Field(
        ("chatcite", "lead", "zero_shot"),
        description="Writers of related work, system or system@model; separated by commas.",
    )
    chatcite_samples: int = Field(
        3, ge=1, description="ChatCite's n_s: drafts sampled from each draft kept."
    )
    chatcite_votes: int = Field(
        5, ge=1, description="ChatCite's n_v: votes of the reflective evaluator in each step."
    )
    chatcite_kept: int = Field(2, ge=1, description="ChatCite's n_c: drafts kept after each step.")
    chatcite_examples: int = Field(
        0,
        ge=0,
        description="Style examples in each prompt of ChatCite's writer, which its Figure 2 shows.",
    )
    temperature: float = Field(
        0.7, ge=0, le=2, description="Sampling temperature of drafts and summaries."
    )
    vote_temperature: float = Field(0.7, ge=0, le=2, description="Sampling temperature of votes.")
    draft_tokens: int = Field(
        0,
        ge=0,
        description=(
            "Longest draft or summary in tokens, and a vote half as long; with many references, 24"
            " for each of them if that is more; 0 for no limit."
        ),
    )
    element_tokens: int = Field(
        0, ge=0, description="Longest of the seven key-element answers, in tokens; 0 for no limit."
    )
    min_references: int = Field(
        2,
        ge=1,
        description=(
            "Fewest references with a known full text or abstract that make a paper a related-work"
            " task."
        ),
    )
    outside_references: Literal["item", "abstract", "drop"] = Field(
        "item",
        description=(
            "Cited works outside the corpus: item keeps all, by abstract or else by bibliography"
            " item; abstract keeps those with an abstract; drop keeps none."
        ),
    )
    tasks_dir: Path | None = Field(
        None,
        description=(
            "Folder of related-work tasks as JSON files, added to those of their months; empty for"
            " none."
        ),
    )
    max_tasks: int = Field(
        1000, ge=0, description="At most this many related-work tasks in one month."
    )
    max_tasks_in_all: int = Field(
        0,
        ge=0,
        description=(
            "At most this many related-work tasks in all months, those of the first months; 0 for"
            " no limit."
        ),
    )
    summary_repeats: int = Field(
        1,
        ge=1,
        le=1000,
        description=(
            "Times that each system which calls a model writes a task, each time by other samples."
        ),
    )
    repeated_tasks: int = Field(
        5,
        ge=0,
        description=(
            "Tasks of a month, the first by id, that are written CITELOOM_SUMMARY_REPEATS times."
        ),
    )
    repeated_systems: CommaSeparated = Field(
        (),
        description=(
            "Writers to which the two settings on repeats apply, system or system@model; separated"
            " by commas; empty for all that call a model."
        ),
    )
    imported_sections: Path | None = Field(
        None,
        description=(
            "CSV file of related-work sections written elsewhere, judged beside ours; empty for"
            " none."
        ),
    )


class AnsweringSettings(BaseModel):
    """Answering"""

    answer_systems: Annotated[
        CommaSeparated, AfterValidator(require_some), AfterValidator(present_names)
    ] = Field(
        ("arxivbot_fused", "direct", "passages", "wikichat"),
        description="Writers of answers, system or system@model; separated by commas.",
    )
    questions: Path | None = Field(
        None,
        description=(
            "Question set, JSON lines or YAML; empty for the sample's with the sample corpus, else"
            " none."
        ),
    )
    max_questions: int = Field(
        1000, ge=0, description="Ask at most this many questions of one month; 0 for none."
    )
    imported_answers: Path | None = Field(
        None, description="CSV file of answers made elsewhere, graded beside ours; empty for none."
    )
    answer_candidates: int = Field(
        20, ge=1, description="Passages of one search, which the LLM ranks."
    )
    answer_passages: int = Field(
        3, ge=1, description="Best-ranked passages that the LLM reads for one search."
    )
    answer_hops: int = Field(
        2, ge=1, description="At most this many searches of arXivBot for one question."
    )
    answer_tokens: int = Field(512, ge=32, description="Longest answer to a question, in tokens.")


class OperationsSettings(BaseModel):
    """Operations"""

    refresh_cron: Annotated[str, AfterValidator(check_cron)] = Field(
        "0 4 3 * *", description="Schedule of the refresh, as a cron line, in UTC."
    )
    refresh_harvest: bool = Field(
        True,
        description=(
            "Ask arXiv over OAI-PMH what changed when refreshing; false if new snapshots say it."
        ),
    )
    refresh_llm_tokens: int = Field(
        0,
        ge=0,
        description=(
            "At most this many tokens for a refresh of LLM tables; 0 leaves them as they are."
        ),
    )
    fresh_days: int = Field(
        0,
        ge=0,
        description=(
            "Days after a month's end by which papers and index must hold it; 0 for no deadline."
        ),
    )
    serve_url: Annotated[str | None, AfterValidator(check_web_address)] = Field(
        None,
        description=(
            "Address where citeloom serve shows reports (http://localhost:8080), for links in the"
            " Dagster UI; empty for none."
        ),
    )
    serve_token: SecretStr | None = Field(
        None,
        description="Token that every request to citeloom serve must bring; required off loopback.",
    )


class ClusterSettings(BaseModel):
    """Cluster"""

    dagster_pg_url: SecretStr | None = Field(
        None,
        description=(
            "Postgres database of Dagster's runs (postgresql://user:password@host/database); empty"
            " for SQLite."
        ),
    )
    executor: Literal["in_process", "ray"] = Field(
        "in_process",
        description="Where steps run: in_process in the run's process, ray as jobs of a cluster.",
    )
    ray_address: str = Field(
        "http://127.0.0.1:8265",
        description="Job server of the Ray cluster (the port of the head's dashboard).",
    )
    embedding_gpus: float = Field(
        0.0, ge=0, description="GPUs that the step embeddings asks of a cluster's node."
    )
