"""Stars, watches, inboxes and the audit, in the tests of the whole route table."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import insert

from relay.base.clock import now_ms
from relay.db.schema import tables
from tests.relay.world import REPO, Named, Try, World


def _put(what: str) -> Callable[[World], Try]:
    return lambda world: Try(f"{world.repo.url}/{what}")


def _taken_back(what: str) -> Callable[[World], Try]:
    def act(world: World) -> Try:
        url = f"{world.repo.url}/{what}"
        assert world.http.put(url).status_code == 204
        return Try(url)

    return act


def _watched_again(world: World) -> Try:
    """By an owner, who watches from the start, after they stopped."""
    url = f"{world.repo.url}/watch"
    assert world.http.delete(url).status_code == 204
    return Try(url)


def _in_inbox(world: World) -> Try:
    """A row about a repository of one's own, which no event makes."""
    repo_id = world.repo.id

    async def act() -> None:
        async with world.relay.node.db.write() as tx:
            await tx.run(
                insert(tables["inbox"]),
                account_id=world.who.id,
                repo_id=repo_id,
                number=0,
                reason="transfer",
                unread=True,
                done=False,
                event=1,
                updated_at=now_ms(),
            )

    world.relay.run(act())
    return Try(f"/api/v1/inbox/{repo_id}.0", {"state": "read"})


MUTATIONS: dict[Named, Callable[[World], Try]] = {
    ("PUT", f"{REPO}/star"): _put("star"),
    ("DELETE", f"{REPO}/star"): _taken_back("star"),
    ("PUT", f"{REPO}/watch"): _watched_again,
    ("DELETE", f"{REPO}/watch"): _taken_back("watch"),
    ("PATCH", "/api/v1/inbox/{id}"): _in_inbox,
    ("PATCH", "/api/v1/inbox"): lambda world: Try("/api/v1/inbox", {"state": "done"}),
}

QUIET: dict[Named, str] = {
    ("PATCH", "/api/v1/inbox"): "one's own mark, which nobody else sees",
    ("PATCH", "/api/v1/inbox/{id}"): "one's own mark, which nobody else sees",
}
