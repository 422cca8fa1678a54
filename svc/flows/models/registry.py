"""Pulls a model from a registry with the protocol of Ollama's registry. Registries with this protocol are
registry.ollama.ai, hf.co, and mirrors of them in SVC_LLM_REGISTRIES.

    GET /v2/OWNER/NAME/manifests/TAG      its layers: the model, a projector, parameters, licence …
    GET /v2/OWNER/NAME/blobs/sha256:…     a layer, from any byte on

Answers are untrusted until their SHA-256 is verified. The size of every answer is limited before it is
parsed."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin, urlsplit

import msgspec

from localstore.core.errors import UsageError
from localstore.core.model.limits import GIB, LLM_LAYERS, LLM_REGISTRY_TEXT, in_words
from localstore.core.paths import terminal_safe
from localstore.folder.positioned import write_at
from localstore.models.errors import NoSuchModel, RegistryFailed
from localstore.models.names import ModelName
from localstore.models.place import REGISTRIES
from localstore.models.pulls import PullReport
from svc import __version__
from svc.flows.models.fetching import Part, WrongBytes
from svc.http.origin import is_loopback, parse_origin

if TYPE_CHECKING:
    import ssl

    import httpx

OLLAMA, HUGGING_FACE = "registry.ollama.ai", "hf.co"
_ALIASES = {"ollama.com": OLLAMA, "huggingface.co": HUGGING_FACE}
_ATTEMPTS, _REDIRECTS = 3, 3
_TIMEOUT, _CONNECT = 60.0, 10.0
_PIECE = 1 << 20
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_KIND = "application/vnd.ollama.image."
_ACCEPT = "application/vnd.docker.distribution.manifest.v2+json"


class Layer(msgspec.Struct, frozen=True):
    """A part of a model in a registry. `digest` is `sha256:<hex>`."""

    digest: str
    size: int
    mediaType: str  # noqa: N815 - as the protocol has it


class Manifest(msgspec.Struct, frozen=True):
    layers: list[Layer]


class RegistryModel(NamedTuple):
    """A model in a registry. It has the model's files, its projector (the file with which it reads pictures),
    and settings from its other layers."""

    files: list[Part]
    projector: Part | None
    system: str | None
    license: str | None
    parameters: dict[str, Any]
    messages: list[dict[str, Any]]


def registries(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the origin of each registry by its host. Raises UsageError if the variable SVC_LLM_REGISTRIES is
    malformed."""
    origins = {host: f"https://{host}" for host in (OLLAMA, HUGGING_FACE)}
    for pair in environment.get(REGISTRIES, "").split():
        host, equals, origin = pair.partition("=")
        if not equals:
            raise UsageError(f"{REGISTRIES} takes HOST=ORIGIN, not '{terminal_safe(pair[:80])}'")
        origins[host] = parse_origin(origin)
    return origins


def origin_of(name: ModelName, environment: Mapping[str, str]) -> str | None:
    """Return the origin of the registry that the name of a model refers to. It is the registry whose host the
    name begins with. For a name without host and owner it is Ollama's registry. None if the name means a
    model in a repository."""
    if not name.host and name.owner:
        return None
    origins = registries(environment)
    return origins.get(_ALIASES.get(name.host, name.host) if name.host else OLLAMA)


def find(origin: str, name: ModelName) -> RegistryModel:
    """Look up a model in a registry, without downloading its files. Raises NoSuchModel, RegistryFailed."""
    registry = _Registry(origin, name)
    manifest = registry.manifest()
    texts: dict[str, list[str]] = {}
    files: list[Part] = []
    projector: Part | None = None
    for layer in manifest.layers:
        kind = layer.mediaType.removeprefix(_KIND)
        if kind in ("model", "projector"):
            part = Part(layer.digest, layer.size, f"{name.short} of {origin}", partial(registry.write, layer))
            if kind == "model":
                files.append(part)
            elif projector is not None:
                raise NoSuchModel(f"{name.short} needs several projectors, and a model is loaded with one")
            else:
                projector = part
        elif kind == "adapter":
            raise NoSuchModel(f"{name.short} needs an adapter, and adapters are not loaded")
        elif kind in ("system", "license", "params", "messages"):
            texts.setdefault(kind, []).append(registry.text(layer))
            if sum(len(text) for group in texts.values() for text in group) > LLM_REGISTRY_TEXT:
                raise RegistryFailed(f"{origin} sent more than {in_words(LLM_REGISTRY_TEXT)} of texts")
    if not files:
        raise NoSuchModel(f"{name.short} of {origin} has no GGUF file")
    parameters: dict[str, Any] = {}
    for text in texts.get("params", []):
        parameters |= _decode_json(text, dict[str, Any], origin)
    messages: list[dict[str, Any]] = []
    for text in texts.get("messages", []):
        messages += _decode_json(text, list[dict[str, Any]], origin)
    system, licence = (_join_texts(texts.get(kind)) for kind in ("system", "license"))
    return RegistryModel(files, projector, system, licence, parameters, messages)


def _join_texts(texts: list[str] | None) -> str | None:
    """Join the texts of all layers of one kind; a model may have several licences, for example. Returns None
    if there are none."""
    return "\n\n".join(texts) if texts else None


def _decode_json(text: str, kind: Any, origin: str) -> Any:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError):
        raise RegistryFailed(f"{origin} sent parameters of a model that are no JSON") from None


class _Registry:
    """Requests to a registry about one model."""

    def __init__(self, origin: str, name: ModelName) -> None:
        self._origin, self._name = origin, name
        self._base = f"{origin}/v2/{name.owner or 'library'}/{name.name}"

    def manifest(self) -> Manifest:
        with self._get(f"{self._base}/manifests/{self._name.tag}", {"Accept": _ACCEPT}) as answer:
            if answer.status_code == 404:
                raise NoSuchModel(f"{self._origin} has no model '{self._name.short}'")
            data = self._read_whole(answer, LLM_REGISTRY_TEXT)
        try:
            manifest = msgspec.json.decode(data, type=Manifest)
        except (msgspec.MsgspecError, RecursionError):
            raise RegistryFailed(f"{self._origin} sent a manifest that cannot be read") from None
        for layer in manifest.layers:
            if not _DIGEST.fullmatch(layer.digest) or not 0 <= layer.size <= 1024 * GIB:
                raise RegistryFailed(f"{self._origin} sent a manifest with a senseless layer")
        if len(manifest.layers) > LLM_LAYERS:
            raise RegistryFailed(f"{self._origin} sent a manifest of more than {LLM_LAYERS} layers")
        return manifest

    def text(self, layer: Layer) -> str:
        """Download a small layer as text. Raises RegistryFailed if it is too large."""
        if layer.size > LLM_REGISTRY_TEXT:
            raise RegistryFailed(
                f"{self._origin} declares a text of {layer.size:,} bytes; at most "
                f"{in_words(LLM_REGISTRY_TEXT)} are read"
            )
        with self._get(f"{self._base}/blobs/{layer.digest}", {}) as answer:
            data = self._read_whole(answer, LLM_REGISTRY_TEXT)
        if f"sha256:{hashlib.sha256(data).hexdigest()}" != layer.digest:
            raise RegistryFailed(f"{self._origin} sent other bytes than {layer.digest[:19]}; try again")
        return data.decode("utf-8", "replace")

    def write(self, layer: Layer, fd: int, seen: Callable[[bytes], object], report: PullReport) -> None:
        """Download the missing bytes of a layer (a file of the model) into the file `fd`. `seen` is called
        with all bytes of the file, in order. `report` is called with (bytes received, total bytes). Raises
        RegistryFailed if the download fails, WrongBytes if it has too many bytes."""
        received = 0
        length = min(os.fstat(fd).st_size, layer.size)
        os.ftruncate(fd, length)
        while received < length:
            data = os.pread(fd, min(_PIECE, length - received), received)
            seen(data)
            received += len(data)
        for attempt in range(_ATTEMPTS):
            if received == layer.size:
                return
            before = received
            try:
                for data in self._layer_from(layer, received):
                    if received + len(data) > layer.size:
                        raise WrongBytes
                    write_at(fd, data, received)
                    seen(data)
                    received += len(data)
                    report(received, layer.size)
            except RegistryFailed:
                if attempt + 1 == _ATTEMPTS or received == before:
                    raise
        if received != layer.size:
            raise RegistryFailed(
                f"{self._origin} ended after {received:,} of {layer.size:,} bytes; pull again, and it goes "
                "on there"
            )

    def _layer_from(self, layer: Layer, start: int) -> Iterator[bytes]:
        """Yields the bytes of a layer from `start` on, in pieces."""
        headers = {"Range": f"bytes={start}-"} if start else {}
        with self._get(f"{self._base}/blobs/{layer.digest}", headers) as answer:
            skip = start
            if answer.status_code == 206:
                if not answer.headers.get("content-range", "").startswith(f"bytes {start}-"):
                    raise RegistryFailed(f"{self._origin} sent another part of the file than was asked for")
                skip = 0
            elif answer.status_code != 200:
                raise self._failure_of(answer)
            for piece in self._pieces(answer):
                if skip < len(piece):
                    yield piece[skip:]
                skip = max(0, skip - len(piece))

    @contextmanager
    def _get(self, url: str, headers: dict[str, str]) -> Iterator[httpx.Response]:
        """A context that yields the answer to a GET request. Redirects are followed, but only to https. No
        credential is sent."""
        import httpx

        headers = {"User-Agent": f"svc/{__version__}", "Accept-Encoding": "identity", **headers}
        timeout = httpx.Timeout(_TIMEOUT, connect=_CONNECT)
        with httpx.Client(
            verify=_tls_context(), timeout=timeout, follow_redirects=False, headers=headers
        ) as client:
            for _ in range(_REDIRECTS + 1):
                try:
                    with client.stream("GET", url) as answer:
                        target = answer.headers.get("location")
                        if not answer.is_redirect or target is None:
                            yield answer
                            return
                except httpx.HTTPError as error:
                    raise RegistryFailed(
                        f"{self._origin} cannot be reached: {_words(error)}; try again later"
                    ) from None
                url = urljoin(url, target)
                if urlsplit(url).scheme != "https" and not (is_loopback(self._origin) and is_loopback(url)):
                    raise RegistryFailed(
                        f"{self._origin} points to an address without https; nothing was read"
                    )
        raise RegistryFailed(f"{self._origin} points from one address to the next without end")

    def _pieces(self, answer: httpx.Response) -> Iterator[bytes]:
        import httpx

        try:
            yield from answer.iter_raw()
        except httpx.HTTPError as error:
            raise RegistryFailed(
                f"{self._origin} broke off: {_words(error)}; pull again, and it goes on where it was"
            ) from None

    def _read_whole(self, answer: httpx.Response, most: int) -> bytes:
        if answer.status_code != 200:
            raise self._failure_of(answer)
        data = bytearray()
        for piece in self._pieces(answer):
            data += piece
            if len(data) > most:
                raise RegistryFailed(f"{self._origin} sent more than {in_words(most)}")
        return bytes(data)

    def _failure_of(self, answer: httpx.Response) -> RegistryFailed:
        if answer.status_code in (401, 403):
            return RegistryFailed(
                f"{self._origin} gives '{self._name.short}' only to people who are signed in there; "
                "download its file, then: svc llm pull FILE.gguf"
            )
        return RegistryFailed(f"{self._origin} answered {answer.status_code}; try again later")


@cache
def _tls_context() -> ssl.SSLContext:
    """Return the TLS context. All requests of the process share it, because reading the certificates takes 25
    ms."""
    import httpx

    return httpx.create_ssl_context()


def _words(error: Exception) -> str:
    return terminal_safe(str(error)) or type(error).__name__
