"""Merge bases that a server names are accepted exactly if they are the nearest common ancestors, even if the
clocks were wrong with which the seals were made."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from localstore.core import seal as seals
from localstore.core.encoding import b64u
from localstore.core.errors import NotFound, ServerMisbehaved
from localstore.core.identity.keys import DeviceKey
from localstore.core.model.base import Actor
from localstore.core.model.history import Seal, SealKey, SealProvenance, SealSignature
from svc.flows.history import ancestry
from svc.flows.history.ancestry import VerifiedSeals, require_bases

KEY = DeviceKey.generate()
START = datetime(2026, 1, 1, tzinfo=UTC)


class History:
    """Signed seals, and the calls with which a client reads them. `limit_of_log`: how many seals one request
    gives at most."""

    def __init__(self, limit_of_log: int = 3) -> None:
        self.seals: dict[str, Seal] = {}
        self.above: dict[str, list[str]] = {}
        self.withheld: set[str] = set()
        self.requests = 0
        self._limit = limit_of_log
        self.history = self  # as of `Api`

    def add(self, minute: int, parents: Sequence[str], sources: Sequence[str] = ()) -> str:
        merge = seals.MergeOrigin("squash", list(sources)) if sources else None
        payload = seals.SealPayload(
            repo_id="repo",
            branch="main",
            parents=list(parents),
            content_digest="0" * 64,
            tree_key_id="tree",
            message=f"seal {len(self.seals)}",
            provenance=seals.Provenance("account", KEY.id, "write", merge=merge),
            created_at=seals.timestamp(START + timedelta(minutes=minute)),
            nonce=b64u(len(self.seals).to_bytes(16, "big")),
        )
        raw = seals.encode(payload)
        seal_id = seals.seal_id(raw)
        self.seals[seal_id] = Seal(
            id=seal_id,
            sha=seal_id,
            branch="main",
            parents=payload.parents,
            content_digest=payload.content_digest,
            message=payload.message,
            provenance=SealProvenance(Actor("account"), KEY.id, "write"),
            created_at=payload.created_at,
            signature=SealSignature("ed25519", KEY.id, b64u(KEY.sign(raw))),
            payload=b64u(raw),
            key=SealKey(KEY.id, b64u(KEY.public), "account", payload.created_at, None, ""),
        )
        self.above[seal_id] = [*parents, *sources]
        return seal_id

    def ancestors(self, seal: str) -> set[str]:
        """The seal and all its ancestors."""
        return {seal}.union(*map(self.ancestors, self.above[seal]))

    def nearest_common(self, ours: str, theirs: str) -> set[str]:
        common = self.ancestors(ours) & self.ancestors(theirs)
        return {seal for seal in common if not any(seal in self.ancestors(x) for x in common - {seal})}

    def seal(self, _: str, seal_id: str) -> Seal:
        return self.log("repo", seal_id, 1)[0]

    def log(self, _: str, seal_id: str, limit: int) -> list[Seal]:
        self.requests += 1
        if seal_id in self.withheld:
            raise NotFound
        names, waiting = [], [seal_id]
        while waiting and len(names) < min(limit, self._limit):
            if (name := waiting.pop(0)) not in names:
                names.append(name)
                waiting += self.above[name]
        return [self.seals[name] for name in names]


def is_accepted(history: Any, ours: str, theirs: str, bases: Collection[str]) -> bool:
    try:
        require_bases(VerifiedSeals(history, "repo"), ours, theirs, list(bases))
    except ServerMisbehaved as refusal:
        assert "nothing was merged" in refusal.detail
        return False
    return True


@st.composite
def histories(draw: st.DrawFn) -> tuple[History, list[str]]:
    """A history of up to nine seals, whose times may contradict their order."""
    history = History(draw(st.integers(1, 4)))
    ids: list[str] = []
    skew = draw(st.sampled_from([0, 2, 9]))
    for n in range(draw(st.integers(2, 9))):
        above = draw(st.lists(st.sampled_from(ids), unique=True, max_size=3)) if ids else []
        whole = draw(st.integers(0, 2))
        ids.append(history.add(n + draw(st.integers(0, skew)), above[:whole], above[whole:]))
    return history, ids


@given(histories(), st.data())
def test_only_the_nearest_common_ancestors_are_accepted(
    drawn: tuple[History, list[str]], data: st.DataObject
) -> None:
    history, ids = drawn
    ours, theirs = data.draw(st.sampled_from(ids)), data.draw(st.sampled_from(ids))
    nearest = history.nearest_common(ours, theirs)
    assert is_accepted(history, ours, theirs, nearest)
    for size in range(3):
        for bases in combinations(ids, size):
            if not nearest <= set(bases):
                assert not is_accepted(history, ours, theirs, bases), "a nearest one is missing"
            if set(bases) - history.ancestors(ours) & history.ancestors(theirs):
                assert not is_accepted(history, ours, theirs, bases), "one is no common ancestor"


def test_a_base_that_would_undo_what_the_other_branch_did_since() -> None:
    history = History()
    root = history.add(0, [])
    main, topic = history.add(2, [history.add(1, [root])]), history.add(3, [root])
    assert is_accepted(history, main, topic, [root])
    for bases in ([main], [topic], [], [root, main]):
        assert not is_accepted(history, main, topic, bases)


def test_a_source_that_the_repository_lacks_leads_nowhere_and_a_parent_must_be_there() -> None:
    history = History(1)
    root = history.add(0, [])
    source = history.add(1, [root])
    main, topic = history.add(2, [root], [source]), history.add(3, [source])
    assert is_accepted(history, main, topic, [source])
    history.withheld = {source}
    with pytest.raises(NotFound):
        require_bases(VerifiedSeals(history, "repo"), main, topic, [root])  # type: ignore[arg-type]


def test_a_long_history_costs_few_requests_and_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(100)
    at = root = history.add(0, [])
    for n in range(1, 150):
        at = history.add(n, [at])
    topic = history.add(500, [root])
    assert is_accepted(history, at, topic, [root])
    assert history.requests <= 4
    monkeypatch.setattr(ancestry, "SEALS_MAX", 100)
    assert not is_accepted(history, at, topic, [root])


def test_a_seal_with_a_wrong_signature_or_another_id_is_refused() -> None:
    history = History(1)
    root = history.add(0, [])
    main, topic = history.add(1, [root]), history.add(2, [root])
    true = history.seals[main]
    for lie in (
        replace(true, signature=replace(true.signature, value=b64u(bytes(64)))),
        replace(true, payload=history.seals[root].payload),
        history.seals[topic],
    ):
        history.seals[main] = lie
        with pytest.raises(ServerMisbehaved):
            require_bases(VerifiedSeals(SimpleNamespace(history=history), "repo"), main, topic, [root])  # type: ignore[arg-type]
