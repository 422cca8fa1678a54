"""The protocol of registries, against a local server of it that also lies."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from localstore.core.errors import ServerMisbehaved, UsageError
from localstore.core.model.limits import LLM_REGISTRY_TEXT
from localstore.models.errors import BadModel, NoSuchModel, RegistryFailed
from localstore.models.names import parse
from localstore.models.store import Models
from svc.flows.models import registry
from svc.flows.models.fetching import PullStep
from svc.flows.models.pull import pull
from svc.flows.place.where import Where
from tests.llm import tiny
from tests.patience import PATIENCE


class Registry(ThreadingHTTPServer):
    """Serves models as registry.ollama.ai and hf.co do. The attributes after `asked` make it lie."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.manifests: dict[str, bytes] = {}
        self.blobs: dict[str, bytes] = {}
        self.asked: list[tuple[str, str]] = []  # path, Range
        self.breaks = 0  # answers that end in the middle
        self.status = 0
        self.location = ""
        self.ranges = True
        self.pause_at = 0  # byte of a layer before which it waits for `go_on`
        self.paused, self.go_on = threading.Event(), threading.Event()
        self.origin = f"http://127.0.0.1:{self.server_address[1]}"

    def blob(self, data: bytes, kind: str) -> dict[str, Any]:
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        self.blobs[digest] = data
        return {"digest": digest, "size": len(data), "mediaType": f"application/vnd.ollama.image.{kind}"}

    def put(self, path: str, *layers: dict[str, Any]) -> None:
        self.manifests[path] = json.dumps({"schemaVersion": 2, "config": {}, "layers": layers}).encode()


class _Handler(BaseHTTPRequestHandler):
    server: Registry

    def do_GET(self) -> None:
        wanted = self.headers.get("Range", "")
        self.server.asked.append((self.path, wanted))
        if self.server.location:
            self.send_response(307)
            self.send_header("Location", self.server.location)
            self.end_headers()
            return
        data = self.server.manifests.get(self.path) or self.server.blobs.get(self.path.rpartition("/")[2])
        if data is None or self.server.status:
            self.send_error(self.server.status or 404)
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.server.ranges else 0
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        end = len(data)
        if self.server.breaks and "/blobs/" in self.path:
            self.server.breaks -= 1
            end = start + (len(data) - start) // 2
        if start < self.server.pause_at < end and "/blobs/" in self.path:
            self.wfile.write(data[start : self.server.pause_at])
            start = self.server.pause_at
            self.server.paused.set()
            self.server.go_on.wait(PATIENCE)
        with contextlib.suppress(ConnectionError):  # the puller was killed
            self.wfile.write(data[start:end])

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


@pytest.fixture
def hub() -> Iterator[Registry]:
    found = Registry()
    threading.Thread(target=found.serve_forever, args=(0.05,), daemon=True).start()
    yield found
    found.shutdown()
    found.server_close()


@pytest.fixture
def models(tmp_path: Path) -> Models:
    return Models(tmp_path / "llm")


def pulled(hub: Registry, models: Models, name: str) -> list[PullStep]:
    pairs = " ".join(
        f"{host}={hub.origin}" for host in (registry.OLLAMA, registry.HUGGING_FACE, "mirror.test")
    )
    steps: list[PullStep] = []
    environment = {"SVC_HOME": str(models.root.parent / "home"), "SVC_LLM_REGISTRIES": pairs}
    pull(Where(environment, Path("/")), models, name, None, steps.append)
    return steps


DATA = tiny.model()


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("tiny", "/v2/library/tiny/manifests/latest"),
        ("tiny:1b", "/v2/library/tiny/manifests/1b"),
        ("hf.co/alice/tiny-GGUF:Q8_0", "/v2/alice/tiny-GGUF/manifests/Q8_0"),
        ("huggingface.co/alice/tiny", "/v2/alice/tiny/manifests/latest"),
        ("ollama.com/bob/tiny", "/v2/bob/tiny/manifests/latest"),
        ("mirror.test/bob/tiny", "/v2/bob/tiny/manifests/latest"),
    ],
)
def test_names_of_registries(hub: Registry, models: Models, name: str, path: str) -> None:
    texts = {"system": b"Be brief", "license": b"CC0", "params": b'{"stop": ["x"], "num_ctx": 256}'}
    layers = [
        hub.blob(DATA, "model"),
        hub.blob(tiny.projector(), "projector"),
        hub.blob(b"{{ .Prompt }}", "template"),
    ]
    hub.put(path, *layers, *(hub.blob(data, kind) for kind, data in texts.items()))
    steps = pulled(hub, models, name)
    assert [steps[0].status, steps[-1].status] == ["pulling manifest", "success"]
    installed = models.find(parse(name))
    assert models.blob(installed.record.model).read_bytes() == DATA
    assert installed.projector is not None
    assert (installed.record.system, installed.record.license) == ("Be brief", "CC0")
    assert installed.record.parameters == {"stop": ["x"], "num_ctx": 256}
    assert installed.record.template is None, "a template of Go is not one of Jinja"
    asked = len(hub.asked)
    pulled(hub, models, name)
    assert not any(layers[0]["digest"] in path for path, _ in hub.asked[asked:])


def test_every_text_of_a_model_is_kept(hub: Registry, models: Models) -> None:
    texts = [
        ("license", b"MIT"), ("license", b"Acceptable use"), ("system", b"Be brief"), ("system", b"Be kind"),
        ("params", b'{"stop": ["x"], "top_k": 1}'), ("params", b'{"top_k": 2}'),
        ("messages", b'[{"role": "user", "content": "Hi"}]'), ("messages", b"[]"),
    ]  # fmt: skip
    path = "/v2/library/tiny/manifests/latest"
    hub.put(path, hub.blob(DATA, "model"), *(hub.blob(data, kind) for kind, data in texts))
    pulled(hub, models, "tiny")
    record = models.find(parse("tiny")).record
    assert (record.license, record.system) == ("MIT\n\nAcceptable use", "Be brief\n\nBe kind")
    assert record.parameters == {"stop": ["x"], "top_k": 2}
    assert record.messages == [{"role": "user", "content": "Hi"}]

    half = LLM_REGISTRY_TEXT // 2 + 1
    licences = [hub.blob(letter * half, "license") for letter in (b"a", b"b")]
    hub.put(path, hub.blob(DATA, "model"), *licences)
    with pytest.raises(RegistryFailed, match="sent more than 4 MiB of texts"):
        pulled(hub, models, "tiny")


def test_a_model_of_several_projectors_is_refused_before_it_is_fetched(hub: Registry, models: Models) -> None:
    projectors = [hub.blob(tiny.projector(), "projector"), hub.blob(b"other", "projector")]
    hub.put("/v2/library/tiny/manifests/latest", hub.blob(DATA, "model"), *projectors)
    with pytest.raises(NoSuchModel, match="needs several projectors"):
        pulled(hub, models, "tiny")
    assert not [path for path, _ in hub.asked if "/blobs/" in path]


@pytest.mark.parametrize("name", ["modle.bin", "modle.gguf:q4", "notes.safetensors"])
def test_no_registry_is_asked_for_what_looks_like_a_file(hub: Registry, models: Models, name: str) -> None:
    with pytest.raises(UsageError, match=r"there is no file (modle|notes)\..* here.*the file by its path"):
        pulled(hub, models, name)
    assert hub.asked == []
    hub.put("/v2/library/tiny3.2-vision/manifests/latest", hub.blob(DATA, "model"))
    pulled(hub, models, "tiny3.2-vision")


@pytest.mark.parametrize("ranges", [True, False])
def test_a_download_that_breaks_goes_on_where_it_was(hub: Registry, models: Models, ranges: bool) -> None:
    hub.put("/v2/library/tiny/manifests/latest", hub.blob(DATA, "model"))
    hub.ranges, hub.breaks = ranges, 1
    pulled(hub, models, "tiny")
    assert models.blob(models.find(parse("tiny")).record.model).read_bytes() == DATA
    assert abs(int(hub.asked[-1][1].removeprefix("bytes=").rstrip("-")) - len(DATA) // 2) < 100_000


def test_a_download_that_breaks_again_and_again_is_given_up_and_kept(hub: Registry, models: Models) -> None:
    hub.put("/v2/library/tiny/manifests/latest", hub.blob(DATA, "model"))
    hub.breaks = 9
    with pytest.raises(RegistryFailed, match="it goes on where it was"):
        pulled(hub, models, "tiny")
    hub.breaks = 0
    pulled(hub, models, "tiny")
    assert int(hub.asked[-1][1].removeprefix("bytes=").rstrip("-")) >= len(DATA) * 3 // 4


def test_what_a_registry_refuses_is_said(hub: Registry, models: Models) -> None:
    with pytest.raises(NoSuchModel, match="has no model 'nope'"):
        pulled(hub, models, "nope")
    hub.status = 401
    with pytest.raises(RegistryFailed, match="only to people who are signed in"):
        pulled(hub, models, "nope")
    hub.status = 503
    with pytest.raises(RegistryFailed, match="answered 503"):
        pulled(hub, models, "nope")
    hub.server_close()
    hub.shutdown()
    with pytest.raises(RegistryFailed, match="cannot be reached"):
        pulled(hub, models, "nope")


@pytest.mark.parametrize(
    "manifest",
    [
        b"no JSON",
        b"[]",
        b'{"layers": 1}',
        b'{"layers": [{"digest": "sha256:../../x", "size": 1, "mediaType": "x"}]}',
        b'{"layers": [{"digest": "sha256:%s", "size": -1, "mediaType": "x"}]}' % (b"0" * 64),
        b'{"layers": [{"digest": "sha256:%s", "size": 9e99, "mediaType": "x"}]}' % (b"0" * 64),
        b"[" * 100_000,
        b" " * (LLM_REGISTRY_TEXT + 1),
    ],
    ids=range(8),
)
def test_a_hostile_manifest_is_refused(hub: Registry, models: Models, manifest: bytes) -> None:
    hub.manifests["/v2/library/tiny/manifests/latest"] = manifest
    with pytest.raises(RegistryFailed):
        pulled(hub, models, "tiny")
    assert models.all() == []


def test_hostile_layers_are_refused(hub: Registry, models: Models) -> None:
    path, good = "/v2/library/tiny/manifests/latest", hub.blob(DATA, "model")
    for layers, error in (
        ([{**good, "size": good["size"] - 1}], ServerMisbehaved),
        ([{**good, "size": good["size"] + 1}], RegistryFailed),
        ([good, {**hub.blob(b"[]", "params"), "size": LLM_REGISTRY_TEXT + 1}], RegistryFailed),
        ([good, hub.blob(b"[]", "params")], RegistryFailed),
        ([good, hub.blob(bytes(LLM_REGISTRY_TEXT + 1), "license")], RegistryFailed),
        ([good, good], BadModel),
        ([hub.blob(b"x", "adapter"), good], NoSuchModel),
        ([hub.blob(b"x", "license")], NoSuchModel),
        ([good] * 2000, RegistryFailed),
    ):
        hub.put(path, *layers)
        with pytest.raises(error):
            pulled(hub, models, "tiny")
    wrong = hub.blob(b"other", "system")
    hub.blobs[wrong["digest"]] = b"wrong"
    hub.put(path, good, wrong)
    with pytest.raises(RegistryFailed, match="sent other bytes"):
        pulled(hub, models, "tiny")
    other = hub.blob(tiny.model(pad=1), "model")
    hub.blobs[other["digest"]] = tiny.model(pad=2)
    hub.put(path, other)
    with pytest.raises(ServerMisbehaved, match="sent other bytes"):
        pulled(hub, models, "tiny")
    assert models.all() == []


def test_redirects_stay_on_https_and_end(hub: Registry, models: Models) -> None:
    hub.location = "http://example.org/x"
    with pytest.raises(RegistryFailed, match="without https"):
        pulled(hub, models, "tiny")
    hub.location = "/again"
    with pytest.raises(RegistryFailed, match="without end"):
        pulled(hub, models, "tiny")


def test_a_wrong_variable_is_named() -> None:
    with pytest.raises(UsageError, match="SVC_LLM_REGISTRIES takes HOST=ORIGIN"):
        registry.registries({"SVC_LLM_REGISTRIES": "mirror"})
