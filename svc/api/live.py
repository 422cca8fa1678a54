"""The live frontier of a branch. The relay answers a repeated update with its first answer, so all may be
repeated."""

from __future__ import annotations

from localstore.core.limits import MIB
from localstore.core.model.live import (
    Bootstrap,
    BootstrapRequest,
    LanesRequest,
    LaneStates,
    UpdateAnswers,
    UpdateBatch,
)
from svc.api.repo import at
from svc.http.client import Http
from svc.http.target import segment

BOOTSTRAP_MAX = 512 * MIB  # a million rows of long paths
LANES_MAX = 512 * MIB


class LiveCalls:
    def __init__(self, http: Http) -> None:
        self._http = http

    def bootstrap(self, repo_id: str, branch: str, body: BootstrapRequest) -> Bootstrap:
        """Rows of the frontier that are newer than `body.since`, and this folder's replica id."""
        path = live(repo_id, branch, "bootstrap")
        return self._http.call("POST", path, Bootstrap, body=body, repeatable=True, cap=BOOTSTRAP_MAX)

    def lanes(self, repo_id: str, branch: str, body: LanesRequest) -> LaneStates:
        """Full states of text lanes."""
        path = live(repo_id, branch, "lanes")
        return self._http.call("POST", path, LaneStates, body=body, repeatable=True, cap=LANES_MAX)

    def updates(self, repo_id: str, branch: str, body: UpdateBatch) -> UpdateAnswers:
        """Send signed updates; one answer for each."""
        path = live(repo_id, branch, "updates")
        return self._http.call("POST", path, UpdateAnswers, body=body, repeatable=True)


def live(repo_id: str, branch: str, verb: str) -> str:
    return f"{at(repo_id)}/branches/{segment(branch)}/live/{verb}"
