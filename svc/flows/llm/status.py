"""The status of a local LLM server, which `svc llm status` shows."""

from __future__ import annotations

import msgspec


class ServerStatus(msgspec.Struct, kw_only=True):
    """The status of the local LLM server on a port."""

    port: int  # on which it listens
    url: str  # of its API
    # embedded, ollama: svc keeps it; adopted: somebody else's; none: there is none; hung: it does not answer;
    # held: another program has the port
    kind: str
    pid: int | None = None  # of its process
    version: str | None = None  # of its program
    loaded: int | None = None  # how many models are in memory
    leases: list[str] = []  # who needs it now
    stays: bool = False  # it was started to run without leases
    svc_home: str | None = None  # the SVC_HOME that keeps it
    models: str = ""  # the folder of its models
    holder: str | None = None  # the program that has the port
