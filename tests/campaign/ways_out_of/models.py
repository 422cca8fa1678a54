"""Ways out of errors of models and of the local LLM server."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.campaign.conftest import Place
from tests.campaign.ways_out import refused, row
from tests.campaign.world import Machine
from tests.llm import tiny


@contextmanager
def _own_server(place: Place) -> Iterator[Machine]:
    """ann with a cache and a port of her own, a model, and no server at the end."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    ann = place.ann
    ann.environment |= {"SVC_LLM_HOME": str(place.base / "llm"), "SVC_LLM_PORT": str(port)}
    tiny.write(ann.folder / "tiny.gguf")
    try:
        yield ann
    finally:
        ann.ok("llm", "stop")


@row("model_missing", "llm pull")
def _a_model_that_is_not_here(place: Place) -> None:
    with _own_server(place) as ann:
        refused(ann, "llm", "show", "tiny", says="llm pull")
        ann.ok("llm", "pull", "tiny.gguf")
        ann.ok("llm", "show", "tiny")


@row("usage", "llm pull")
def _a_projector_by_itself(place: Place) -> None:
    with _own_server(place) as ann:
        (ann.folder / "eye.gguf").write_bytes(tiny.projector())
        refused(ann, "llm", "pull", "eye.gguf", says="llm pull")
        ann.ok("llm", "pull", "tiny.gguf", "--projector", "eye.gguf")


@row("usage", "llm rm")
def _a_name_that_another_repository_has_now(place: Place) -> None:
    with _own_server(place) as ann:
        for number, label in enumerate(("one", "two")):
            ann.ok("repo", "create", label, "--kind", "model")
            ann.ok("repo", "clone", f"{place.handle}/{label}", str(place.base / label))
            tiny.write(place.base / label / "tiny.gguf", pad=number)
            ann.ok("push", "-m", label, where=place.base / label)
        ann.ok("llm", "pull", f"{place.handle}/one", "--as", "mine")
        refused(ann, "llm", "pull", f"{place.handle}/two", "--as", "mine", says="llm rm mine")
        ann.ok("llm", "rm", "mine", "--yes")
        ann.ok("llm", "pull", f"{place.handle}/two", "--as", "mine")


@row("registry_failed", "llm pull")
def _a_model_for_those_who_are_signed_in_elsewhere(place: Place) -> None:
    with _own_server(place) as ann, ThreadingHTTPServer(("127.0.0.1", 0), _Closed) as registry:
        threading.Thread(target=registry.serve_forever, args=(0.05,), daemon=True).start()
        ann.environment["SVC_LLM_REGISTRIES"] = f"hf.co=http://127.0.0.1:{registry.server_address[1]}"
        refused(ann, "llm", "pull", "hf.co/alice/tiny", says="llm pull FILE.gguf")
        ann.ok("llm", "pull", "tiny.gguf", "--as", "hf.co/alice/tiny")
        registry.shutdown()


class _Closed(BaseHTTPRequestHandler):
    """A registry that wants a sign-in."""

    def do_GET(self) -> None:
        self.send_error(401)

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


@row("model_changed", "llm pull")
def _a_model_whose_file_was_written(place: Place) -> None:
    with _own_server(place) as ann:
        ann.ok("llm", "pull", "tiny.gguf")
        (blob,) = [path for path in (place.base / "llm/models/blobs").iterdir() if path.suffix != ".about"]
        with blob.open("ab") as file:
            file.write(b"more")
        refused(ann, "llm", "run", "tiny", "Hi", says="llm pull")
        tiny.write(ann.folder / "again.gguf")
        ann.ok("llm", "pull", "again.gguf", "--as", "tiny")
        assert "tiny test model" in ann.ok("llm", "run", "tiny", "Hi").out


@row("llm_server", "llm stop")
def _a_server_that_runs_already(place: Place) -> None:
    with _own_server(place) as ann:
        ann.ok("llm", "start")
        refused(ann, "llm", "serve", says="llm stop")
        ann.ok("llm", "stop")
        assert ann.ok("llm", "status", "--json", "kind").json()["kind"] == "none"


@row("llm_server", "llm start")
def _a_server_that_does_not_run(place: Place) -> None:
    with _own_server(place) as ann:
        ann.ok("llm", "pull", "tiny.gguf")
        refused(ann, "llm", "stop", "tiny", says="llm start")
        ann.ok("llm", "start")
        ann.ok("llm", "stop", "tiny")


@row("llm_server", "llm logs")
def _a_server_that_does_not_start(place: Place) -> None:
    """An installed ollama that is broken: the log has what it said."""
    with _own_server(place) as ann:
        tools = place.base / "bin"
        tools.mkdir()
        (tools / "ollama").write_text("#!/bin/sh\necho it is broken\nexit 1\n")
        (tools / "ollama").chmod(0o755)
        path = ann.environment.get("PATH", os.environ["PATH"])
        ann.environment["PATH"] = f"{tools}:{path}"
        refused(ann, "llm", "start", says="llm logs")
        assert "it is broken" in ann.ok("llm", "logs").out
        ann.environment["PATH"] = path
        ann.ok("llm", "start")


@row("app_missing", "app install")
def _an_app_that_is_not_here(place: Place) -> None:
    with _own_server(place) as ann:
        full = f"{place.handle}/tool"
        ann.ok("repo", "create", "tool", "--kind", "app")
        ann.ok("repo", "clone", full, str(place.base / "tool"))
        (place.base / "tool/.svc.yaml").write_text("kind: app\nlaunch: {command: [echo, Hi]}\n")
        ann.ok("push", "-m", "First", where=place.base / "tool")
        refused(ann, "app", "launch", full, says="app install")
        ann.ok("app", "install", full)
        assert "Hi" in ann.ok("app", "launch", full, "--yes").out


@row("app_failed", "app logs")
def _an_app_that_ends_early(place: Place) -> None:
    with _own_server(place) as ann:
        (ann.folder / "tool").mkdir()
        launch = "{command: [sh, -c, 'echo no paper; exit 3'], ready: {port: 9}}"
        (ann.folder / "tool/.svc.yaml").write_text(f"kind: app\nlaunch: {launch}\n")
        refused(ann, "app", "launch", "tool", "--detach", "--yes", says="app logs tool")
        assert "no paper" in ann.ok("app", "logs", "tool").out
