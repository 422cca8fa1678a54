"""What a node says of itself."""

from __future__ import annotations

from localstore.core.model.node import ClientConfig, Version
from svc.http.client import Http


class NodeCalls:
    def __init__(self, http: Http) -> None:
        self._http = http

    def version(self) -> Version:
        return self._http.call("GET", "/version", Version)

    def config(self) -> ClientConfig:
        return self._http.call("GET", "/api/v1/client-config", ClientConfig)
