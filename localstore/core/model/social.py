"""Stars and watches of repositories: at most one of each for an account."""

from __future__ import annotations

from localstore.core.endpoint import REPO, Endpoint

STAR: Endpoint[None] = Endpoint("PUT", f"{REPO}/star", status=204)
UNSTAR: Endpoint[None] = Endpoint("DELETE", f"{REPO}/star", status=204)
WATCH: Endpoint[None] = Endpoint("PUT", f"{REPO}/watch", status=204)
UNWATCH: Endpoint[None] = Endpoint("DELETE", f"{REPO}/watch", status=204)
