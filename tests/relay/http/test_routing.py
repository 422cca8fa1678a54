"""A row of the route table: what fills the parameters of a rule, and which rules no row takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.model.label import Label, LabelCreate
from relay.caller import Caller, View
from relay.http import routing
from relay.http.routing import REPOSITORIES, TABLE, behind, serves

CREATE: Endpoint[Label] = Endpoint(
    "POST", f"{REPO}/boxes/{{box}}/labels/{{name}}", body=LabelCreate, returns=Label, status=201
)
DELETE: Endpoint[None] = Endpoint("DELETE", f"{REPO}/boxes/{{box}}/labels/{{name}}", status=204)


@pytest.fixture(autouse=True)
def table() -> Iterator[list[routing.Route]]:
    """The table, without what the test adds to it afterwards."""
    length = len(TABLE)
    yield TABLE
    del TABLE[length:]


def declared(endpoint: Endpoint[Any], rule: Any, **settings: Any) -> routing.Route:
    serves(endpoint, operation="label.create", **settings)(rule)
    return TABLE[-1]


def test_a_rule_may_have_names_of_its_own_for_the_body_and_one_segment() -> None:
    async def create(view: View, box: str, word: str, wish: LabelCreate) -> Label:
        """A label in a box"""
        raise NotImplementedError

    route = declared(CREATE, create)
    assert route.filled == {"view": "view", "box": "box", "word": "name", "wish": "body"}
    assert (route.body, route.summary, route.status) == (LabelCreate, "A label in a box", 201)
    assert route.wants == {"view", "box", "name", "body"}


def test_two_segments_of_other_names_are_refused() -> None:
    async def create(view: View, first: str, second: str, body: LabelCreate) -> Label:
        raise NotImplementedError

    with pytest.raises(TypeError, match="create takes first, which is nothing of"):
        declared(CREATE, create)


def test_a_parameter_that_the_path_has_not_is_refused() -> None:
    async def create(view: View, box: str, name: str, body: LabelCreate, force: bool = False) -> Label:
        raise NotImplementedError

    with pytest.raises(TypeError, match="create takes force, which is nothing of"):
        declared(CREATE, create)


def test_a_rule_that_returns_nothing_serves_an_endpoint_without_an_answer_and_no_other() -> None:
    async def delete(view: View, box: str, name: str) -> None:
        """Delete a label of a box"""

    assert declared(DELETE, delete).status == 204

    async def create(view: View, box: str, name: str, body: LabelCreate) -> None:
        """Create a label in a box"""

    with pytest.raises(TypeError, match="create returns"):
        declared(CREATE, create)


def test_a_rule_that_takes_another_body_is_refused() -> None:
    async def create(view: View, box: str, name: str, body: Label) -> Label:
        raise NotImplementedError

    with pytest.raises(TypeError, match="its endpoint declares"):
        declared(CREATE, create)


def test_the_flag_is_the_subjects_unless_a_row_names_another() -> None:
    async def delete(view: View, box: str, name: str) -> None:
        """Delete a label of a box"""

    assert declared(DELETE, delete).flag == REPOSITORIES
    of_subject = behind("TR_REPO_SEALING")
    of_subject(DELETE, operation="label.delete")(delete)
    assert TABLE[-1].flag == "TR_REPO_SEALING"
    of_subject(DELETE, operation="label.delete", flag="TR_FORK_ENABLED")(delete)
    assert TABLE[-1].flag == "TR_FORK_ENABLED"


def test_the_repository_of_a_path_is_the_views_and_fills_nothing_else() -> None:
    async def delete(view: View, box: str, other: str) -> None:
        """Delete a label of a box"""

    assert declared(DELETE, delete).filled["other"] == "name"
    flat: Endpoint[None] = Endpoint("DELETE", f"{REPO}/boxes", status=204)

    async def clear(view: View, id: str) -> None:
        """Delete every box"""

    assert declared(flat, clear).filled == {"view": "view", "id": "id"}

    async def remove(caller: Caller, repo_id: str) -> None:
        """Delete every box"""

    assert declared(flat, remove).filled == {"caller": "caller", "repo_id": "id"}
