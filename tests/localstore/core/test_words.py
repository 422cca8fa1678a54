"""Words of states: each state that the kernel declares has a sign, each code its sentence."""

from __future__ import annotations

from typing import get_args

import pytest

from localstore.core.model.review import Verdict
from localstore.core.model.run import State
from localstore.core.words import (
    SIGNS,
    VERDICTS,
    reasons_to_wait,
    state_of_check,
    state_of_proposal,
)


@pytest.mark.parametrize(
    ("state", "draft", "word"),
    [
        ("open", True, "draft"),
        ("open", False, "open"),
        ("merged", True, "merged"),
        ("closed", True, "closed"),
    ],
)
def test_a_draft_is_one_while_it_is_open(state: str, draft: bool, word: str) -> None:
    assert state_of_proposal(state, draft) == word
    assert word in SIGNS


def test_every_state_of_a_check_has_a_sign() -> None:
    for state in get_args(State):
        for begun in (False, True):
            assert state_of_check(state, begun) in SIGNS
    assert [state_of_check("pending", begun) for begun in (False, True)] == ["queued", "running"]


def test_every_verdict_has_a_word() -> None:
    assert set(VERDICTS) == set(get_args(Verdict))


def test_a_code_of_a_later_version_stands_for_itself() -> None:
    assert reasons_to_wait(["review_required", "moon_is_full"]) == ["it needs an approval", "moon is full"]
    assert reasons_to_wait(["review_required"], 2, 2) == ["it needs 2 approvals"]
    assert reasons_to_wait(["review_required"], 3, 1) == ["it needs 1 more approval (3 in all)"]
