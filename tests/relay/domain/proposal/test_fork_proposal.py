"""Proposals from forks: what they bring, who may do what with them, and what is left when the fork goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from localstore.core.encoding import unb64u
from localstore.core.tree import TreeEntry, root_digest
from relay.db.schema import tables
from relay.domain.merging import trial
from relay.domain.proposal import elsewhere
from tests.relay.conftest import Account, Relay
from tests.relay.domain.repository.test_fork import fork, purge
from tests.relay.histories import Repository, compared, create, ok, own
from tests.relay.merges import PAGE, files, finalize, merge, payload, prepare, put
from tests.relay.proposing import code

BLOB = b"\0" + bytes(range(256)) * 20
THEIRS = {"page": put(9, b"NINE"), "bytes.bin": BLOB}


@pytest.fixture
def base(account: Callable[..., Account], client: Callable[..., httpx.Client]) -> Repository:
    repo = own(account, client, name="base", visibility="public")
    repo.seal({"page": PAGE})
    return repo


@pytest.fixture
def mine(
    base: Repository, account: Callable[..., Account], client: Callable[..., httpx.Client]
) -> Repository:
    """A fork by somebody else, with a branch `topic` of two seals."""
    who = account()
    made = fork(base, who, client(who))
    made.branch("topic", "main")
    made.seal({"page": put(9, b"NINE")}, {"bytes.bin": BLOB}, branch="topic")
    return made


def asked(mine: Repository, head: str = "topic", **more: Any) -> dict[str, Any]:
    return {"head": f"{mine.owner.handle}:{head}", "base": "main", "title": "From a fork", **more}


def propose(base: Repository, mine: Repository, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = ok(mine.http.post(f"{base.url}/proposals", json=asked(mine, **more)))
    return made


def settle(relay: Relay, base: Repository, by: Account, number: int = 1) -> None:
    """What the job does, now."""
    relay.run(elsewhere.follow(relay.node, {"repo_id": base.id, "number": number, "by": by.id}))


def used(relay: Relay, repo: Repository) -> int:
    async def act() -> int:
        async with relay.node.db.read() as tx:
            column = tables["repo_usage"].c
            return int(await tx.value(select(column.bytes).where(column.repo_id == repo.id)))

    return relay.run(act())


def test_it_is_tried_by_who_asks_and_by_no_push(relay: Relay, base: Repository, mine: Repository) -> None:
    made = propose(base, mine)
    (moved,) = base.seal({"page": put(9, b"another nine")})
    relay.run(
        trial.run_trials(relay.node, {"repo_id": base.id, "branch_id": base.get("/refs/branch/main")["id"]})
    )
    relay.run(trial.version_job(relay.node, base.id, made["number"]))  # after a push of the fork
    (listed,) = base.get("/proposals")["items"]
    assert (listed["base_seal"], listed["merge_state"]) == (moved, "unknown")
    assert base.get(f"/proposals/{made['number']}")["merge_state"] == "conflicts"


def test_a_proposal_brings_the_branch_for_readers_of_the_base(
    relay: Relay, base: Repository, mine: Repository, client: Callable[..., httpx.Client]
) -> None:
    before = used(relay, base)
    made = propose(base, mine)
    head = mine.head("topic")
    assert (made["head"], made["head_seal"], made["cross_repository"]) == ("topic", head, True)
    assert made["head_repo"] == {"id": mine.id, "full_name": mine.body["full_name"]}
    assert made["author"]["id"] == mine.owner.id
    anyone = Repository(client(None), base.owner, base.body)
    assert anyone.get("/proposals/1")["merge_state"] == "clean"
    changed = base.get("/compare", base="main", head="pr:1")
    assert ([one["path"] for one in changed["files"]], changed["ahead"]) == (["bytes.bin", "page"], 2)
    assert anyone.http.get(f"{base.url}/raw/{head}/bytes.bin").content == BLOB
    assert base.get(f"/seals/{head}")["origin"] == mine.id
    assert len(anyone.get("/commits", ref="pr:1")["items"]) == 3
    assert used(relay, base) == before, "nobody but the fork pays for what is only proposed"


@pytest.mark.parametrize("strategy", [None, "squash", "rebase", "merge"])
def test_the_base_merges_it_and_owns_it_from_then_on(
    relay: Relay, base: Repository, mine: Repository, strategy: str | None
) -> None:
    propose(base, mine)
    if strategy is not None:
        base.seal({"more": b"more\n"})
    if strategy == "merge" and not relay.node.config.flags.on("TR_REPO_MERGE_ENABLED"):
        pytest.skip("merge seals are off")
    assert code(prepare(Repository(mine.http, mine.owner, base.body), 1)) == (403, "forbidden")
    before = used(relay, base)
    done = merge(base, 1, strategy, delete_branch=True)
    assert done["state"] == "merged"
    assert files(base).items() >= THEIRS.items()
    assert mine.head("topic"), "the branch is the fork's"
    assert used(relay, base) > before
    made = payload(base, done["merged_seal"])
    assert made.repo_id == base.id
    if strategy == "merge":
        assert made.parents[1] == mine.head("topic"), "the second parent is the fork's seal"
    purge(relay, mine)
    assert files(base).items() >= THEIRS.items()
    assert all(one["verified"] for one in base.get("/log")["items"])
    assert base.get("/proposals/1")["head_repo"] is None
    assert len(base.get("/proposals/1/versions")["items"]) == 1


def test_the_branch_moves_and_goes(relay: Relay, base: Repository, mine: Repository) -> None:
    propose(base, mine)
    prepared = ok(prepare(base, 1))
    (head,) = mine.seal({"page": put(8, b"EIGHT")}, branch="topic")
    late = finalize(base, 1, prepared)
    assert code(late) == (409, "head_moved")
    settle(relay, base, mine.owner)
    shown = base.get("/proposals/1")
    assert (shown["version"], shown["head_seal"]) == (2, head)
    assert [one["head"] for one in base.get("/proposals/1/versions")["items"]][1] == head
    events = [one for one in base.get("/issues/1/timeline")["items"] if one["kind"] == "proposal.push"]
    assert [(one["actor"]["id"], one["data"]["version"]) for one in events] == [(mine.owner.id, 2)]
    ok(base.http.post(f"{base.url}/proposals/1/reviews", json={"verdict": "approve"}))
    assert mine.http.delete(f"{mine.url}/refs/branch/topic").status_code == 204
    settle(relay, base, mine.owner)
    assert base.get("/proposals/1")["state"] == "closed"
    again = mine.http.patch(f"{base.url}/proposals/1", json={"state": "open"})
    assert code(again) == (409, "proposal_branch_gone")
    assert base.http.get(f"{base.url}/raw/{head}/bytes.bin").content == BLOB, "versions stay"


def test_a_deleted_fork_closes_its_proposals(relay: Relay, base: Repository, mine: Repository) -> None:
    propose(base, mine)
    ok(mine.http.delete(mine.url))
    refused = code(prepare(base, 1))  # before the job has seen it, or after
    assert refused in ((409, "proposal_branch_gone"), (409, "not_mergeable"))
    settle(relay, base, mine.owner)
    shown = base.get("/proposals/1")
    assert (shown["state"], shown["head_repo"]) == ("closed", None)
    ok(mine.http.post(f"{mine.url}/restore"))
    reopened = ok(mine.http.patch(f"{base.url}/proposals/1", json={"state": "open"}))
    assert (reopened["state"], reopened["head_repo"]["id"]) == ("open", mine.id)


def test_what_cannot_be_proposed(
    base: Repository,
    mine: Repository,
    account: Callable[..., Account],
    client: Callable[..., httpx.Client],
) -> None:
    stranger = account()
    http, url = client(stranger), f"{base.url}/proposals"
    assert code(http.post(url, json=asked(mine))) == (403, "forbidden"), "somebody else's branch"
    hidden = create(mine.http, mine.owner, "elsewhere")
    hidden.seal({"a": b"1\n"})
    for head in ("nobody:topic", f"{mine.owner.handle}:nothing", f"{mine.owner.handle}/elsewhere:main"):
        refused = mine.http.post(url, json={"head": head, "base": "main", "title": "x"})
        assert refused.status_code == 422, head
        assert refused.json()["reason"] == "unknown_branch"
    there = mine.http.post(url, json=asked(mine))
    assert code(mine.http.post(url, json=asked(mine))) == (409, "proposal_exists")
    assert there.status_code == 201
    nothing = mine.http.post(url, json=asked(mine, "main"))
    assert code(nothing) == (409, "nothing_proposed")
    update = {"device_key_id": base.owner.key.id}
    answer = base.http.post(f"{base.url}/proposals/1/update-prepare", json=update)
    assert answer.status_code in (404, 409)


def test_a_fork_that_is_gone_is_refused_as_one_that_never_was(base: Repository, mine: Repository) -> None:
    url = f"{base.url}/proposals"
    ok(mine.http.delete(mine.url))
    gone, never = (
        base.http.post(url, json={"head": f"{mine.owner.handle}:{branch}", "base": "main", "title": "x"})
        for branch in ("topic", "tipoc")
    )
    assert gone.text.replace("topic", "tipoc") == never.text
    assert compared(gone)[0] == compared(never)[0] == 422


def test_the_parent_is_proposed_to_its_fork(base: Repository, mine: Repository) -> None:
    """What upstream has comes into a fork the same way; its owner may write to the fork."""
    base.seal({"upstream": b"new\n"})
    body = {"head": f"{base.owner.handle}:main", "base": "main", "title": "Upstream"}
    assert ok(mine.http.post(f"{mine.url}/proposals", json=body))["number"] == 1
    merge(mine, 1)
    assert files(mine)["upstream"] == b"new\n"


def test_a_branch_from_a_proposed_seal_is_the_bases_own(
    relay: Relay, base: Repository, mine: Repository
) -> None:
    propose(base, mine)
    before = used(relay, base)
    base.branch("taken", "pr:1")
    assert used(relay, base) > before
    purge(relay, mine)
    assert files(base, "taken") == {"page": put(9, b"NINE"), "bytes.bin": BLOB}


def test_a_repository_with_private_paths_proposes_nothing_elsewhere(
    relay: Relay, base: Repository, mine: Repository
) -> None:
    url = f"{base.url}/proposals"
    propose(base, mine)
    ok(mine.http.put(f"{mine.url}/paths", json={"path": "bytes.bin", "visibility": "private"}))
    mine.seal({"bytes.bin": b"\0hidden"}, branch="topic")
    settle(relay, base, mine.owner)
    assert base.get("/proposals/1")["state"] == "closed"
    assert code(mine.http.post(url, json=asked(mine))) == (403, "filtered_view")


def test_a_merge_is_salted_with_the_key_of_the_base(base: Repository, mine: Repository) -> None:
    propose(base, mine)
    done = merge(base, 1)
    told = {one: base.get(f"/tree/{one}", recursive=1) for one in (done["merged_seal"], mine.head("topic"))}
    ours, theirs = told.values()
    assert ours["tree_key"] != theirs["tree_key"]
    assert ours["entries"] == theirs["entries"]
    for seal, answer in told.items():
        assert payload(base, seal).tree_key_id == answer["tree_key_id"]
        files = {
            one["path"]: TreeEntry(one["kind"], bytes.fromhex(one["blake3"]), one["size"])
            for one in answer["entries"]
        }
        assert root_digest(files, unb64u(answer["tree_key"])).hex() == answer["content_digest"]
