"""The bundled model's server process: `python -m pipeline.llm.server_process`.

It binds loopback only, prints one line of JSON with its address once the model is loaded, and ends
when its standard input does, as it does when the parent ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys


def main() -> None:
    """Serve a model. Arguments: the path of its GGUF file, its name, completions at once, tokens of
    each, threads.
    """
    path, name = sys.argv[1:3]
    slots, context, threads = map(int, sys.argv[3:])

    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = {name}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = slots
    params.n_ctx = context * slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.cache_prompt = True
    # llama.cpp's default keeps up to 8 GB of old prompts; ours share prefixes within a slot, and a
    # laptop has 8 GB.
    params.cache_ram_mib = 512
    params.ui = params.endpoint_slots = False
    params.verbosity = 1
    server = xllamacpp.Server(params)
    print(json.dumps({"url": f"{server.listening_address}/v1"}), flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        sys.stdin.buffer.read()
    os._exit(0)  # ending the server's threads one by one has hung for seconds


if __name__ == "__main__":
    main()
