"""The status that `svc llm status` shows."""

from __future__ import annotations

import msgspec


class Status(msgspec.Struct, kw_only=True):
    """The status of a server. `kind` embedded, ollama: svc keeps it; adopted: somebody else's; none: there is
    none; held: another program has the port. `stays`: it was started to run without leases."""

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
