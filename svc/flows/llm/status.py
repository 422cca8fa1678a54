"""What `svc llm status` tells."""

from __future__ import annotations

import msgspec


class Status(msgspec.Struct, kw_only=True):
    """A server. `kind`: embedded and ollama are kept by svc, adopted is somebody else's, none is absent,
    held: another program has the port. `stays`: it was started to go on without an app."""

    port: int
    url: str
    kind: str
    pid: int | None = None
    version: str | None = None
    loaded: int | None = None
    leases: list[str] = []
    stays: bool = False
    svc_home: str | None = None
    models: str = ""
    holder: str | None = None
