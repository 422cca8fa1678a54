"""`.svc.yaml`, the file in which a repository describes itself.

    kind: app                       # app, lib, model, modelpack, dataset
    name: Notes
    depends: [alice/toolkit]        # OWNER/NAME
    models: [llama3.2]              # fetched before the app starts
    ollama_port_override: 11500     # replaces the port of the local LLM server
    ollama_tag: llama3.2:1b         # preferred model variant
    default_model: q4_k_m           # for a repository of models: which model a name without a tag means
    launch: {command: [python, app.py]}   # how the app is started (`core.launch`)
    limits: {max_file_mib: 64}      # per-file cap, kind app only
    executable: [scripts/run, "*.sh"]   # files that get the executable bit where they are checked out

Unknown keys are ignored, because later versions may add some. The file may come from an attacker: aliases,
deep nesting and more than MANIFEST_BYTES are refused. Every scalar is read as plain text, so YAML's own types
cannot surprise."""

from __future__ import annotations

import re
from typing import Any, NoReturn

import msgspec

from localstore.core import launch as launches
from localstore.core import plain_yaml
from localstore.core.errors import Invalid
from localstore.core.launch import BadLaunch, Launch
from localstore.core.model.limits import EXECUTABLE_LIST, MANIFEST_LIST
from localstore.core.names import MANIFEST, parse_repo
from localstore.core.storage.chunks import file_cap

KINDS = ("app", "lib", "model", "modelpack", "dataset")

_TEXT_CHARS = 200
_NOTHING = ("", "~", "null")


class RepoManifest(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed manifest; absent members are None or empty."""

    kind: str | None = None
    name: str | None = None
    depends: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    ollama_port_override: int | None = None
    ollama_tag: str | None = None
    default_model: str | None = None
    launch: Launch | None = None
    max_file_mib: int | None = None
    executable: tuple[str, ...] = ()

    def file_cap(self, kind: str) -> int:
        """The most bytes that one binary file may have in a repository of this kind
        (`storage.chunks.file_cap`)."""
        return file_cap(kind, self.max_file_mib)


def parse(data: bytes) -> RepoManifest:
    """Parse `.svc.yaml`. Raises Invalid, with one sentence, if a value is wrong."""
    top = plain_yaml.load(data, MANIFEST) or {}
    if not isinstance(top, dict):
        raise Invalid(f"{MANIFEST} must be a mapping of keys to values")
    limits = top.get("limits")
    if not isinstance(limits, dict):
        limits = {} if limits is None or limits in _NOTHING else _bad("limits", "a mapping")
    return RepoManifest(
        kind=_kind(top),
        name=_text(top, "name"),
        depends=tuple(_repository(item) for item in _texts(top, "depends")),
        models=_texts(top, "models"),
        ollama_port_override=_integer(top, "ollama_port_override", "ollama_port_override", 65535),
        ollama_tag=_text(top, "ollama_tag"),
        default_model=_text(top, "default_model"),
        launch=_launch(top),
        executable=_texts(top, "executable", EXECUTABLE_LIST, "patterns"),
        max_file_mib=_integer(limits, "max_file_mib", "limits.max_file_mib", 1 << 20),
    )


def _launch(top: dict[str, Any]) -> Launch | None:
    try:
        launch = launches.parse(top.get("launch"))
    except BadLaunch as bad:
        _bad(bad.key, bad.expected)
    needs_model = launch is not None and "model" in launch.placeholders
    if needs_model and not _texts(top, "models") and not _text(top, "ollama_tag"):
        _bad("launch", "without {model}, or models must name one")
    return launch


def _kind(top: dict[str, Any]) -> str | None:
    kind = _text(top, "kind")
    return kind if kind is None or kind in KINDS else _bad("kind", "one of " + ", ".join(KINDS))


def _text(top: dict[str, Any], key: str) -> str | None:
    value = top.get(key)
    if value is None or value in _NOTHING:
        return None
    return _line(value, key)


def _line(value: Any, key: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _TEXT_CHARS or not value.isprintable():
        _bad(key, f"a line of at most {_TEXT_CHARS} characters")
    return value


def _texts(top: dict[str, Any], key: str, most: int = MANIFEST_LIST, what: str = "names") -> tuple[str, ...]:
    value = top.get(key)
    if value is None or value in _NOTHING:
        return ()
    if not isinstance(value, list) or len(value) > most:
        _bad(key, f"a list of at most {most} {what}")
    return tuple(dict.fromkeys(_line(item, key) for item in value))


def _repository(item: str) -> str:
    try:
        host, owner, name = parse_repo(item)
    except Invalid:
        return _bad("depends", "a list of OWNER/NAME")
    return f"{owner}/{name}" if host is None else _bad("depends", "a list of OWNER/NAME, without a host")


def _integer(top: dict[str, Any], key: str, label: str, largest: int) -> int | None:
    value = top.get(key)
    if value is None or value in _NOTHING:
        return None
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]{1,9}", value) or not 1 <= int(value) <= largest:
        _bad(label, f"a whole number from 1 to {largest}")
    return int(value)


def _bad(key: str, expected: str) -> NoReturn:
    raise Invalid(f"{MANIFEST}: {key} must be {expected}", pointer="/" + key.replace(".", "/"))
