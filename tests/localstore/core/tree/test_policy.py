"""Which paths a policy hides."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from localstore.core.tree.policy import Policy, Visibility

NAMES = st.sampled_from(["a", "b", "ab", "a.b", "ä"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
KINDS = st.sampled_from(["public", "private", "open"])
RULES = st.dictionaries(PATHS | st.just(""), KINDS, max_size=6)


def plainly(rules: dict[str, Visibility], path: str) -> bool:
    """The same rule as a sentence: of those at or above the path the longest."""
    above = [one for one in rules if one in ("", path) or path.startswith(f"{one}/")]
    return not above or rules[max(above, key=len)] != "private"


@given(RULES, PATHS)
def test_the_longest_rule_at_or_above_decides(rules: dict[str, Visibility], path: str) -> None:
    assert Policy(1, rules).sees(path) is plainly(rules, path)


@given(RULES, PATHS | st.just(""), st.lists(PATHS, max_size=8))
def test_what_is_said_of_a_folder_holds_for_what_is_below(
    rules: dict[str, Visibility], folder: str, below: list[str]
) -> None:
    policy = Policy(1, rules)
    inside = [f"{folder}/{one}" if folder else one for one in below]
    if policy.sees_all_below(folder):
        assert all(map(policy.sees, inside))
    if not policy.may_see_below(folder):
        assert not any(map(policy.sees, inside))


@given(RULES, PATHS | st.just(""))
def test_a_folder_is_wholly_seen_or_wholly_hidden_only_where_no_rule_below_says_otherwise(
    rules: dict[str, Visibility], folder: str
) -> None:
    policy = Policy(1, rules)
    at_rules = [one for one in rules if not folder or one == folder or one.startswith(f"{folder}/")]
    seen = [policy.sees(one) for one in (*at_rules, folder)]
    assert policy.sees_all_below(folder) is all(seen)
    assert policy.may_see_below(folder) is any(seen)


def test_a_name_that_begins_alike_is_another_folder() -> None:
    policy = Policy(1, {"secret": "private"})
    assert not policy.sees("secret")
    assert not policy.sees("secret/x")
    assert policy.sees("secrets")
    assert policy.sees("secret.txt")
