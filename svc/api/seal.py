"""Sealing in two steps: the relay fixes the bytes, this machine checks and signs them."""

from __future__ import annotations

from localstore.core.limits import MIB
from localstore.core.model.history import Seal
from localstore.core.model.seal import FinalizeRequest, Prepared, PrepareRequest
from svc.api.repo import at
from svc.http.client import Http
from svc.http.target import segment

PREPARED_MAX = 512 * MIB  # a first seal names every path of its tree


class SealCalls:
    def __init__(self, http: Http) -> None:
        self._http = http

    def prepare(self, repo_id: str, branch: str, body: PrepareRequest) -> Prepared:
        """The seal of the frontier as it is now. Preparing twice is harmless: neither takes effect."""
        path = f"{at(repo_id)}/branches/{segment(branch)}/seal/prepare"
        return self._http.call("POST", path, Prepared, body=body, repeatable=True, cap=PREPARED_MAX)

    def finalize(self, repo_id: str, branch: str, body: FinalizeRequest) -> Seal:
        """Land a prepared seal. A repetition answers with the seal that landed."""
        path = f"{at(repo_id)}/branches/{segment(branch)}/seal/finalize"
        return self._http.call("POST", path, Seal, body=body, repeatable=True)
