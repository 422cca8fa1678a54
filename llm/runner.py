"""The command `python -m llm.runner`: the process of one loaded model, with the engine's own HTTP server.

Its argument is a `Task` in JSON; LLM_RUNNER_KEY is the key that requests must carry. It prints one line of
JSON, `{"url": …}` or `{"error": …}`. It ends when its standard input closes, even if the front was killed.
The engine's server is never shut down, because that can hang; the process just ends.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any, NoReturn

import msgspec

from llm.task import KEY_VARIABLE, Started, Task

LOAD_FAILED = 3


def main() -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal's Ctrl-C; the front closes our input
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # waiting threads would spin: six times slower here
    task = msgspec.json.decode(sys.argv[1], type=Task)
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        address = _serve(task)
    except ImportError as error:
        _tell(Started(error=f"the engine cannot be loaded: {error}"))
        os._exit(LOAD_FAILED)
    except Exception as error:
        _tell(Started(error=str(error)))
        os._exit(LOAD_FAILED)
    _tell(Started(url=address))
    while True:
        signal.pause()


def _serve(task: Task) -> str:
    """Load the model and start the engine's server. Returns the server's address."""
    import xllamacpp as engine

    params: Any = engine.CommonParams()
    params.model.path = task.path
    params.model_alias = {task.name}
    if task.projector:
        params.mmproj.path = task.projector
    if task.template:
        params.chat_template = task.template
    params.n_ctx, params.n_parallel = task.context * task.slots, task.slots
    params.kv_unified = False  # each slot has its context for itself
    params.fit_params = False  # the front has decided what fits
    params.n_batch = params.n_ubatch = task.batch
    params.cache_ram_mib = task.cache_mib
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = task.threads
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.api_keys = [os.environ.pop(KEY_VARIABLE)]
    params.ui = params.endpoint_slots = params.endpoint_metrics = params.endpoint_props = False
    params.ui_mcp_proxy = False
    params.server_tools = []
    params.mcp_servers_config = params.mcp_servers_json = ""
    params.use_jinja = True
    params.embedding = True
    if task.mean_pooling:
        params.pooling_type = engine.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    params.verbosity = 1
    server = engine.Server(params)
    _KEPT.append(server)
    return str(server.listening_address)


_KEPT: list[Any] = []


def _tell(started: Started) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(started) + b"\n")
    sys.stdout.buffer.flush()


def _end_with_input() -> NoReturn:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
