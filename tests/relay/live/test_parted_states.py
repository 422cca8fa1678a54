"""States of more lanes than one answer may hold."""

from __future__ import annotations

import pytest

from localstore.core.model import live
from localstore.core.model.live import LanesRequest, LaneStates
from localstore.sync.transfer import lane_states as reading
from relay.domain.live import lane
from svc.api.sync_transport import BranchTransport
from tests.relay.live.copies import Copies, Copy

TEXT = b"a line of a text\n" * 60


def edited(ann: Copy, count: int) -> list[live.LaneName]:
    """So many texts of the branch, each with one edit that is not sealed."""
    ann.reach(
        ann.say(*(ann.create(f"{number}.txt", b"%d\n" % number + TEXT) for number in range(count)))[-1].seq
    )
    edits = [ann.edit(f"{number}.txt", b"%d\nnew\n" % number + TEXT) for number in range(count)]
    ann.reach(ann.say(*(one for one in edits if one))[-1].seq)
    return [
        live.LaneName(path=f"{number}.txt", gen=ann.rows[f"{number}.txt"].gen, epoch=None)
        for number in range(count)
    ]


def test_what_one_answer_cannot_hold_is_left_and_asked_for_again(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = copies()
    names = edited(ann, 5)
    monkeypatch.setattr(lane, "ANSWERED", 2 * len(TEXT) + 200)
    answer: LaneStates = ann.api.send(
        live.LANES, LanesRequest(lanes=names), id=ann.repo_id, branch=ann.branch
    )
    assert ([one.path for one in answer.lanes], answer.left) == (["0.txt", "1.txt"], 3)
    monkeypatch.setattr(reading, "LANES_PER_REQUEST", 4)
    transport = BranchTransport(ann.api, ann.repo_id, ann.branch)
    found = list(reading.lane_states(transport, [*names, live.LaneName(path="gone.txt", gen=1, epoch=None)]))
    assert [one.path for one in found] == [name.path for name in names]
    assert all(one.state for one in found)


def test_a_text_over_the_bound_has_an_answer_of_its_own(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = copies()
    names = edited(ann, 2)
    monkeypatch.setattr(lane, "ANSWERED", 10)
    transport = BranchTransport(ann.api, ann.repo_id, ann.branch)
    assert [one.path for one in reading.lane_states(transport, names)] == ["0.txt", "1.txt"]
