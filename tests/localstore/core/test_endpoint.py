"""Paths of endpoints: the relay reads what the client filled in."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localstore.core.endpoint import REPO, Endpoint
from relay.http.router import Router

REF: Endpoint[None] = Endpoint("GET", f"{REPO}/refs/{{type}}/{{name...}}")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


@given(TEXT, TEXT, st.lists(TEXT, min_size=1, max_size=3))
def test_the_relay_finds_what_the_client_filled_in(repo: str, type: str, name: list[str]) -> None:
    router = Router[Endpoint[None]]()
    router.add("GET", REF.path, REF)
    found = router.find(REF.target(id=repo, type=type, name="/".join(name)))
    assert found is not None
    values = {key: unquote(value) for key, value in found[1].items()}
    assert values == {"id": repo, "type": type, "name": "/".join(name)}


def test_a_missing_parameter_is_an_error() -> None:
    with pytest.raises(KeyError, match="type"):
        REF.target(id="r", name="main")
