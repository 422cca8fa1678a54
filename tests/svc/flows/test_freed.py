"""Which merges that are signed in advance land because a rule or the required checks ask for less."""

from __future__ import annotations

import pytest

from localstore.core.model.protection import Protection, ProtectionSet
from localstore.core.obstacles import Standing
from svc.flows.place.protecting import words_of_rule
from svc.flows.proposal.freed import Asked, Waiting, asks_less, find_freed, say_freed, say_merged

TWO = Protection(pattern="main", required_approvals=2, require_checks=True)
BEFORE = Asked([TWO, Protection(pattern="v*", required_approvals=1)], ["CI"])
APPROVED = Standing(approvals=1, fresh=1)
WAITING = [
    Waiting(12, "Cache", "main", APPROVED, ("ci",)),
    Waiting(15, "Stubs", "main", Standing(), ("ci",)),
    Waiting(17, "Notes", "v1", Standing(), ()),
]


@pytest.mark.parametrize(
    ("rule", "required", "freed"),
    [
        (None, ["CI"], [(12, (15,))]),
        (ProtectionSet(required_approvals=1, require_checks=True), ["CI"], [(12, (15,))]),
        (ProtectionSet(required_approvals=1, require_checks=True), ["CI", "lint"], []),
        (ProtectionSet(required_approvals=3), ["CI"], []),
        (ProtectionSet(lock_writes=True), ["CI"], []),
        (ProtectionSet(require_resolution=True), [], [(12, (15,))]),
    ],
)
def test_a_weaker_rule_frees_what_it_alone_held_back(
    rule: ProtectionSet | None, required: list[str], freed: list[tuple[int, tuple[int, ...]]]
) -> None:
    after = BEFORE.with_rule("main", rule).with_checks(required)
    assert [(each.number, each.ended) for each in find_freed(WAITING, BEFORE, after)] == freed
    assert asks_less(BEFORE, after) or not freed


def test_a_change_that_takes_nothing_away_frees_nothing() -> None:
    more = BEFORE.with_rule("main", ProtectionSet(required_approvals=3, require_checks=True))
    assert not asks_less(BEFORE, more.with_checks(["CI", "lint"]))
    assert not asks_less(BEFORE, BEFORE.with_rule("v1", ProtectionSet(lock_writes=True)))
    assert asks_less(more, BEFORE)
    assert asks_less(BEFORE, BEFORE.with_checks([]))


def test_a_request_for_changes_is_not_freed() -> None:
    refused = [Waiting(12, "Cache", "main", Standing(refused=1), ("ci",))]
    assert find_freed(refused, BEFORE, BEFORE.with_rule("main", None)) == []


def test_the_sentences_name_what_merges_and_what_is_signed_again() -> None:
    none = BEFORE.with_rule("main", None).with_rule("v*", None)
    freed = find_freed(WAITING, BEFORE, none)
    assert say_freed(freed) == (
        "#12 waits with auto merge and merges into main at once, and #15 then has to be merged again, "
        "because main has moved. #17 waits with auto merge and merges into v1 at once."
    )
    assert say_merged(freed, freed[:1]) == (
        "#12 (Cache) merged into main; #17 has not merged yet; #15 has to be merged again"
    )


def test_the_command_that_brings_a_rule_back() -> None:
    words = "repo protect set main --require-checks --required-approvals 2"
    assert words_of_rule(TWO) == words.split()
