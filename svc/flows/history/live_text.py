"""Reads the current text of a file on a branch from the relay. The text includes edits that are not sealed
yet."""

from __future__ import annotations

from localstore.core.encoding import digest, unb64u, unhex
from localstore.core.errors import Invalid, NotFound, ServerMisbehaved
from localstore.core.lane.lane import Lane
from localstore.core.model import live
from localstore.core.model.live import LaneName, LanesRequest
from localstore.core.paths import terminal_safe
from svc.api import Api


def live_text(api: Api, repo_id: str, branch: str, path: str, gen: int) -> bytes:
    """Return the current text of the file at `path` on the branch. `gen` is the number of the file's lane; a
    later file at the same path has another number. Raises NotFound if the branch no longer has this file,
    ServerMisbehaved if the text does not have the digest that the relay states."""
    names = [LaneName(path=path, gen=gen)]
    lanes = api.send(live.LANES, LanesRequest(lanes=names), id=repo_id, branch=branch).lanes
    if not lanes:
        raise NotFound(f"{terminal_safe(path)} is not on {terminal_safe(branch)} any more")
    lane = lanes[0]
    try:
        if lane.state is None:
            text = api.payload.get(repo_id, unhex(lane.genesis))
        else:
            text = Lane.load(unb64u(lane.state)).text()
        sound = digest(text) == unhex(lane.digest)
    except Invalid:
        sound = False
    if not sound:
        raise ServerMisbehaved(f"the server sent invalid edits of {terminal_safe(path)}; it is not shown")
    return text
