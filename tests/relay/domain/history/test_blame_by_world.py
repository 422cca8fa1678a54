"""What blame costs the others: nothing that is slow is done on the event loop."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from localstore.core.diff.line_diff import lines
from localstore.core.encoding import b64u, unb64u
from localstore.core.errors import TooLarge
from localstore.core.model.ref import RefCreate
from localstore.core.model.seal import FinalizeSealsRequest, PrepareSealsRequest, TreeDelta
from localstore.core.tree.policy import Policy
from relay.domain.history import blame
from relay.domain.repository import ref
from relay.domain.sealing import trees
from relay.memory import texts as heavy
from tests.relay.domain.live.live_world import Device, world
from tests.relay.domain.live.test_landing import delta


async def test_no_text_is_cut_into_lines_on_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of 5 MiB takes tenths of a second."""
    where: list[int] = []

    def cut(text: bytes) -> list[bytes]:
        where.append(threading.get_ident())
        return lines(text)

    monkeypatch.setattr(heavy, "lines", cut)
    async with world(tmp_path) as w:
        device = await w.device()
        gen = base = 0
        for number in range(3):
            (answer,) = await device.send(await device.create("a.txt", b"a\n" * (number + 1), gen, base))
            gen, base = answer.gen, answer.seq
            device.head = (await device.seal(device.head)).id
        found = await blame.blame(device.view, device.head or "", "a.txt")
    assert [one.end for one in found.ranges] == [1, 2, 3]
    assert where
    assert threading.get_ident() not in where


async def sealed(a: Device, branch: str, head: str | None, deltas: Sequence[TreeDelta]) -> list[str]:
    body = PrepareSealsRequest(branch=branch, device_key_id=a.key.id, expected_head=head, seals=list(deltas))
    made = await trees.prepare(a.view, body)
    signatures = [b64u(a.key.sign(unb64u(one.bytes))) for one in made.seals]
    done = FinalizeSealsRequest(prepare_id=made.prepare_id, device_key_id=a.key.id, signatures=signatures)
    return [one.id for one in (await trees.finalize(a.view, done)).items]


async def test_merged_branches_are_not_each_walked_to_the_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 80
    met = 0

    def version(*members: object) -> object:
        nonlocal met
        met += 1
        return made(*members)  # type: ignore[arg-type]

    made = blame._Version
    monkeypatch.setattr(blame, "FIRST_STEPS", 2)
    async with world(tmp_path) as w:
        a = await w.device()
        base = await sealed(a, "main", None, [await delta(w, {"f": b"%d\n" % n}) for n in range(count)])
        await ref.create(a.view, RefCreate(type="branch", name="side", head=base[-1]))
        other = [await delta(w, {"f": b"0\nside %d\n" % n}) for n in range(count)]
        side = await sealed(a, "side", base[-1], other)
        merges = [
            msgspec.structs.replace(await delta(w, {"f": b"0\nside %d\nmain\n" % n}), parents=[one])
            for n, one in enumerate(side)
        ]
        main = await sealed(a, "main", base[-1], merges)
        monkeypatch.setattr(blame, "_Version", version)
        found = await blame.blame(a.view, main[-1], "f")
    assert [one.seal_id for one in found.ranges] == [side[0], side[-1], main[0]]
    assert met < 20 * count


@pytest.mark.parametrize("policy", [None, Policy(1, {"secret": "private"})], ids=["whole", "filtered"])
async def test_a_history_with_many_lines_is_gone_through_in_several_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: Policy | None
) -> None:
    monkeypatch.setattr(blame, "BLAME_LINES", 1000)
    monkeypatch.setattr(blame, "AT_ONCE", 4)
    async with world(tmp_path) as w:
        a = await w.device()
        texts = [b"".join(b"%d\n" % (n if at == n else 0) for at in range(50)) for n in range(50)]
        seals = await sealed(a, "main", None, [await delta(w, {"f": text}) for text in texts])
        refused = 0
        view = replace(a.view, policy=policy)
        while True:
            try:
                found = await blame.blame(view, seals[-1], "f")
            except TooLarge:
                refused += 1
                assert refused < 10
                continue
            break
    assert refused > 1
    assert found.lines == 50
