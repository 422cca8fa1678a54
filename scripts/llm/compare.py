"""Compares the local LLM server with a real Ollama: the same requests to both, field by field.

    python -m scripts.llm.compare OLLAMA

OLLAMA is the program, as `go build` of github.com/ollama/ollama makes it. Both servers get the same tiny
models by /api/blobs and /api/create. The script compares the status of each answer, the names of its fields
and the types of their values, and the values that must be the same in every server. Intended differences are
listed in MEANT with their reasons. The exit code is 1 if anything else differs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from svc.flows.llm.talk import probe
from tests.llm import tiny
from tests.llm.conftest import Kept, free_port
from tests.patience import until

HI = [{"role": "user", "content": "Hi"}]
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
GREEDY = {"temperature": 0}
PROMPT = {"model": "tiny", "prompt": "Hi", "options": GREEDY}
SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
VALUES = {
    "response", "content", "done", "done_reason", "object", "finish_reason", "role", "error", "status",
    "type", "family", "families", "format", "quantization_level", "parameter_size", "capabilities", "name",
    "model", "eval_count", "context_length", "index", "arguments", "remote_model",
}  # fmt: skip
CALLS: list[tuple[str, str, str, Any]] = [
    ("root", "GET", "/", None),
    ("version", "GET", "/api/version", None),
    ("tags", "GET", "/api/tags", None),
    ("show", "POST", "/api/show", {"model": "tiny"}),
    ("show by name", "POST", "/api/show", {"name": "tiny"}),
    ("show, unknown", "POST", "/api/show", {"model": "nope"}),
    ("show, none", "POST", "/api/show", {}),
    ("generate", "POST", "/api/generate", {**PROMPT, "stream": False}),
    ("generate, streamed", "POST", "/api/generate", PROMPT),
    ("generate, cut", "POST", "/api/generate",
     {"model": "loop", "prompt": "Hi", "stream": False, "options": {**GREEDY, "num_predict": 3}}),
    ("generate, raw", "POST", "/api/generate",
     {**PROMPT, "raw": True, "stream": False}),
    ("generate, stop", "POST", "/api/generate",
     {"model": "tiny", "prompt": "Hi", "stream": False, "options": {**GREEDY, "stop": [" test"]}}),
    ("generate, load", "POST", "/api/generate", {"model": "tiny", "stream": False}),
    ("generate, unknown", "POST", "/api/generate", {"model": "nope", "prompt": "Hi"}),
    ("generate, no model", "POST", "/api/generate", {"prompt": "Hi"}),
    ("generate, no body", "POST", "/api/generate", None),
    ("generate, no JSON", "POST", "/api/generate", b"{"),
    ("generate, think", "POST", "/api/generate", {**PROMPT, "think": True, "stream": False}),
    ("chat", "POST", "/api/chat", {"model": "tiny", "messages": HI, "stream": False, "options": GREEDY}),
    ("chat, streamed", "POST", "/api/chat", {"model": "tiny", "messages": HI, "options": GREEDY}),
    ("chat, schema", "POST", "/api/chat",
     {"model": "tiny", "messages": HI, "stream": False, "options": GREEDY, "format": SCHEMA}),
    ("chat, load", "POST", "/api/chat", {"model": "tiny", "messages": [], "stream": False}),
    ("chat, tools a model lacks", "POST", "/api/chat", {"model": "tiny", "messages": HI, "tools": [TOOL]}),
    ("chat, unknown", "POST", "/api/chat", {"model": "nope", "messages": HI}),
    ("ps", "GET", "/api/ps", None),
    ("embed", "POST", "/api/embed", {"model": "tiny", "input": ["a", "b"]}),
    ("embed, nothing", "POST", "/api/embed", {"model": "tiny", "input": []}),
    ("embeddings", "POST", "/api/embeddings", {"model": "tiny", "prompt": "a"}),
    ("copy", "POST", "/api/copy", {"source": "tiny", "destination": "copied"}),
    ("copy, unknown", "POST", "/api/copy", {"source": "nope", "destination": "other"}),
    ("create from", "POST", "/api/create",
     {"model": "brief", "from": "tiny", "system": "Be brief", "stream": False}),
    ("create, nothing", "POST", "/api/create", {"model": "brief"}),
    ("generate of it", "POST", "/api/generate",
     {"model": "brief", "prompt": "Hi", "stream": False, "options": GREEDY}),
    ("delete", "DELETE", "/api/delete", {"model": "copied"}),
    ("delete, unknown", "DELETE", "/api/delete", {"model": "copied"}),
    ("blob, absent", "HEAD", f"/api/blobs/sha256:{'0' * 64}", None),
    ("blob, other bytes", "POST", f"/api/blobs/sha256:{'0' * 64}", b"other"),
    ("unload", "POST", "/api/generate", {"model": "brief", "keep_alive": 0, "stream": False}),
    ("/v1 models", "GET", "/v1/models", None),
    ("/v1 model", "GET", "/v1/models/tiny", None),
    ("/v1 chat", "POST", "/v1/chat/completions", {"model": "tiny", "messages": HI, "temperature": 0}),
    ("/v1 chat, streamed", "POST", "/v1/chat/completions",
     {"model": "tiny", "messages": HI, "temperature": 0, "stream": True}),
    ("/v1 completions", "POST", "/v1/completions", {"model": "tiny", "prompt": "Hi", "temperature": 0}),
    ("/v1 embeddings", "POST", "/v1/embeddings", {"model": "tiny", "input": ["a"]}),
    ("/v1 chat, unknown", "POST", "/v1/chat/completions", {"model": "nope", "messages": HI}),
    ("/v1 chat, no messages", "POST", "/v1/chat/completions", {"model": "tiny"}),
    ("no such path", "GET", "/api/nothing", None),
]  # fmt: skip
WORDS = "our sentence says more"
ENGINE = "of the engine, whose /v1 passes byte for byte"
MEANT: dict[str, str] = {
    r"tags: .*": "both models came within one second",
    r"show.*tensors: only theirs": "needs another pass over the file; no client was found that reads it",
    r"show.*license: only ours": "the header has one",
    r"show.*general.name: only ours": "the header has one",
    r"generate, no model: .*": "a request without a model is a wrong request",
    r".*\.error: ours .*, theirs .*": WORDS,
    r"embed, nothing: .*: only ours": "the counts are zeros, as for one text",
    r"/v1 chat, unknown: .*type: .*": "OpenAI's type for 404",
    r"/v1 .*: only ours": ENGINE,
    r"/v1 chat, streamed: .*": ENGINE,
    r"no such path: .*": "errors are always JSON",
}
"""Pattern of a difference → why it is so."""


def call(url: str, method: str, path: str, body: Any) -> tuple[int, list[Any]]:
    """Send a request. Returns (status, list with the JSON value of each line of the answer). If the answer is
    not JSON, the list has only its text."""
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            status, raw = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        status, raw = error.code, error.read()
    text = raw.decode("utf-8", "replace")
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.strip()]
    try:
        return status, [json.loads(line) for line in lines if line != "[DONE]"]
    except ValueError:
        return status, [text]


def differences(ours: Any, theirs: Any, where: str) -> Iterator[str]:
    """Yields a line for each difference between two answers. `where`: the path of the compared value."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in sorted(theirs.keys() - ours.keys()):
            yield f"{where}.{name}: only theirs: {_short(theirs[name])}"
        for name in sorted(ours.keys() - theirs.keys()):
            yield f"{where}.{name}: only ours: {_short(ours[name])}"
        for name in sorted(ours.keys() & theirs.keys()):
            yield from differences(ours[name], theirs[name], f"{where}.{name}")
    elif isinstance(ours, list) and isinstance(theirs, list):
        if ours and theirs:
            yield from differences(ours[0], theirs[0], f"{where}[0]")
            if len(ours) > 1 or len(theirs) > 1:
                yield from differences(ours[-1], theirs[-1], f"{where}[-1]")
        elif ours or theirs:
            yield f"{where}: ours has {len(ours)}, theirs {len(theirs)}"
    elif _kind(ours) != _kind(theirs) or (_last(where) in VALUES and ours != theirs):
        yield f"{where}: ours {_short(ours)}, theirs {_short(theirs)}"


def _last(where: str) -> str:
    """The name of the field at the end of a path such as `a.b[0]`."""
    return where.rpartition(".")[2].partition("[")[0]


def _kind(value: Any) -> str:
    return (
        "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
    )


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 150 else text[:150] + "…"


def bring(url: str, name: str, mode: str, context: int) -> None:
    data = tiny.model(mode, context=context)
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    for method, path, body in (
        ("POST", f"/api/blobs/{digest}", data),
        ("POST", "/api/create", {"model": name, "files": {f"{name}.gguf": digest}, "stream": False}),
    ):
        status, answer = call(url, method, path, body)
        if status not in (200, 201):
            raise SystemExit(f"{url}{path}: {status} {answer}")


@contextlib.contextmanager
def real(program: str, home: Path) -> Iterator[str]:
    """A context that runs a real Ollama with its own models, and yields its address."""
    port = free_port()
    environment = {
        **os.environ, "OLLAMA_HOST": f"127.0.0.1:{port}", "OLLAMA_MODELS": str(home), "HOME": str(home),
    }  # fmt: skip
    with (home / "log").open("wb") as log:
        process = subprocess.Popen([program, "serve"], stdout=log, stderr=log, env=environment)
    try:
        until(lambda: probe(port) == "llm", "the real one answers")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def main() -> int:
    with contextlib.ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="llm-compare-")))
        (work / "real").mkdir()
        theirs = stack.enter_context(real(sys.argv[1], work / "real"))
        server = Kept(work / "ours")
        stack.callback(server.close)
        for url in (server.url, theirs):
            bring(url, "tiny", "say", 512)
            bring(url, "loop", "loop", 4096)
        unexpected = 0
        for name, method, path, body in CALLS:
            mine, other = call(server.url, method, path, body), call(theirs, method, path, body)
            lines = [f"status: ours {mine[0]}, theirs {other[0]}"] if mine[0] != other[0] else []
            lines += dict.fromkeys(differences(mine[1], other[1], ""))
            print(f"{'same' if not lines else 'other'}  {name}")
            for line in lines:
                reason = next((MEANT[key] for key in MEANT if re.match(key, f"{name}: {line}")), None)
                unexpected += reason is None
                print(f"      {line}{'' if reason is None else f'  ({reason})'}")
        print(f"{len(CALLS)} calls, {unexpected} differences that are not meant")
        return min(unexpected, 1)


if __name__ == "__main__":
    sys.exit(main())
