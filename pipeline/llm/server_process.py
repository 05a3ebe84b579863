"""The bundled model's server process: `python -m pipeline.llm.server_process`.

It binds loopback only, prints one line of JSON with its address once the model is loaded, and ends
when its standard input does, as it does when the parent ends.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve a GGUF model on loopback.")
    parser.add_argument("--model", required=True, help="path of the GGUF file")
    parser.add_argument("--alias", required=True, help="name under which it is served")
    parser.add_argument("--slots", type=int, required=True, help="completions side by side")
    parser.add_argument("--context", type=int, required=True, help="tokens per slot")
    parser.add_argument("--threads", type=int, required=True)
    options = parser.parse_args()

    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.model_alias = {options.alias}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = options.slots
    params.n_ctx = options.context * options.slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
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
