"""Decides the port of the local LLM server. The first of these that is set counts: the option,
`ollama_port_override` in the folder's `.svc.yaml`, SVC_LLM_PORT, and 11434."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from localstore.core import manifest
from localstore.core.errors import UsageError
from localstore.core.model.limits import MANIFEST_BYTES
from localstore.core.names import MANIFEST
from localstore.core.numbers import whole_number
from localstore.models.place import DEFAULT_PORT, PORT_VARIABLE


def port_of(option: int | None, folder: Path, environment: Mapping[str, str]) -> int:
    """Return the port of the local LLM server. `option` is the port that the user typed, or None. Raises
    UsageError for an invalid port, Invalid for a malformed `.svc.yaml`."""
    if option is not None:
        if not 1 <= option <= 65535:
            raise UsageError("--port must be from 1 to 65535")
        return option
    for place in (folder, *folder.parents):
        with suppress(OSError), (place / MANIFEST).open("rb") as file:
            override = manifest.parse(file.read(MANIFEST_BYTES + 1)).ollama_port_override
            if override is not None:
                return override
            break
    text = environment.get(PORT_VARIABLE, "")
    if not text:
        return DEFAULT_PORT
    port = whole_number(text)
    if port is None or not 1 <= port <= 65535:
        raise UsageError(f"{PORT_VARIABLE} must be a port from 1 to 65535")
    return port
