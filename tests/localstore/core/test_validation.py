"""What is said of a value that its struct does not take: its place, and its rule in a person's words."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localstore.core.errors import Invalid
from localstore.core.model.base import Model, PageQuery
from localstore.core.model.live import UpdatesRequest
from localstore.core.model.repo import RepoCreate, RepoPatch
from localstore.core.model.seal import PrepareSealsRequest
from localstore.core.validation import check_members, refusal


class Part(Model, array_like=True, frozen=True):
    path: str
    size: Annotated[int, msgspec.Meta(ge=0)]


class Sample(Model, frozen=True):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=3)]
    hue: Annotated[str, msgspec.Meta(pattern="^[0-9]$", description="one digit")] | None = None
    mood: Literal["sad", "gay", "calm"] = "calm"
    open: bool = False
    parts: Annotated[list[Part], msgspec.Meta(max_length=2)] = msgspec.field(default_factory=list)
    more: dict[str, PageQuery] = msgspec.field(default_factory=dict)


def said(value: Any, shape: Any) -> tuple[str, str]:
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.json.decode(msgspec.json.encode(value), type=shape)
    error = refusal(raised.value, shape)
    (where,) = error.extra["errors"]
    assert where["detail"] == error.detail
    return where["pointer"], error.detail


@pytest.mark.parametrize(
    ("value", "pointer", "sentence"),
    [
        ([], "", "the body is an object"),
        ({}, "/name", "name is missing"),
        ({"name": ""}, "/name", "name is 1 to 3 characters"),
        ({"name": "long"}, "/name", "name is 1 to 3 characters"),
        ({"name": None}, "/name", "name is 1 to 3 characters"),
        ({"name": "a", "hue": "red"}, "/hue", "hue is one digit"),
        ({"name": "a", "hue": 7}, "/hue", "hue is one digit"),
        ({"name": "a", "mood": "mad"}, "/mood", "mood is calm, gay or sad"),
        ({"name": "a", "open": "yes"}, "/open", "open is true or false"),
        ({"name": "a", "parts": [["p", 1]] * 3}, "/parts", "parts is a list of at most 2 items"),
        ({"name": "a", "parts": [["p", -1]]}, "/parts/0/1", "parts.0.1 is at least 0"),
        ({"name": "a", "parts": [[5, 1]]}, "/parts/0/0", "parts.0.0 is a text"),
        ({"name": "a", "more": {"x": {"limit": 0}}}, "/more", "more.limit is 1 to 100"),
    ],
)
def test_the_rule_that_was_broken_is_said(value: Any, pointer: str, sentence: str) -> None:
    assert said(value, Sample) == (pointer, sentence)


def test_the_kernels_own() -> None:
    assert said({"limit": 101}, PageQuery) == ("/limit", "limit is 1 to 100")
    assert said({"name": "-x"}, RepoCreate)[1].startswith("name is 1 to 64 letters, digits,")
    assert said({"description": "x" * 1001}, RepoPatch)[1] == "description is at most 1000 characters"
    seals = {"branch": "b", "device_key_id": "k", "expected_head": None, "seals": []}
    assert said(seals, PrepareSealsRequest)[1] == "seals is a list of 1 to 1000 items"
    assert (
        said({"device_key_id": "k", "replica": -1}, UpdatesRequest)[1] == "replica is 0 to 9007199254740991"
    )


def test_a_struct_is_checked_before_it_is_sent() -> None:
    assert check_members(RepoCreate(name="notes")) == RepoCreate(name="notes")
    with pytest.raises(Invalid, match="name is 1 to 64 letters") as raised:
        check_members(RepoCreate(name="no\n"))
    assert raised.value.extra["errors"][0]["pointer"] == "/name"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "parts", "more", "x"]), inner)
    ),
    max_leaves=8,
)


@given(JSON)
def test_whatever_comes_has_a_sentence_of_one_line(value: Any) -> None:
    try:
        msgspec.json.decode(msgspec.json.encode(value), type=Sample)
    except msgspec.ValidationError as error:
        found = refusal(error, Sample)
        assert found.detail.isprintable()
        assert found.extra["errors"][0]["pointer"] == "" or found.extra["errors"][0]["pointer"][0] == "/"
