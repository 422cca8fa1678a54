"""What says what is missing reaches the reader; a bare 404 gets the words of the command."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, cast

import pytest

from localstore.core.errors import NotFound, from_problem
from localstore.core.model.repo import Repo
from svc.cmd.issue.words import known_issue
from svc.cmd.org.shared import explain_missing_org
from svc.flows.place.refs import explained_not_found
from svc.flows.proposal import finding


class _Named:
    id, full_name = "01", "alice/app"


class _Offline:
    """A context in which no proposal of that number is found either."""

    class reader:
        @staticmethod
        def send(*words: Any, **named: Any) -> None:
            raise NotFound


REPO = cast(Repo, _Named())
EXPLAINING: list[Callable[[], AbstractContextManager[None]]] = [
    lambda: explained_not_found(REPO, "tag v1", "svc repo tag list"),
    lambda: known_issue(cast(Any, _Offline()), REPO, "1"),
    lambda: finding.explain_missing_proposal(cast(Any, _Offline.reader), REPO, "1"),
    lambda: explain_missing_org("acme"),
]


@pytest.mark.parametrize("explaining", EXPLAINING)
def test_a_cause_is_not_replaced(explaining: Callable[[], AbstractContextManager[None]]) -> None:
    with pytest.raises(NotFound, match="issue #1 has no label ui"), explaining():
        raise NotFound("issue #1 has no label ui")


@pytest.mark.parametrize("explaining", EXPLAINING)
@pytest.mark.parametrize(
    "error", [NotFound(), from_problem({"code": "not_found", "title": "Not Found", "detail": ""}, 404)]
)
def test_a_bare_404_is_explained(
    explaining: Callable[[], AbstractContextManager[None]], error: NotFound
) -> None:
    with pytest.raises(NotFound) as raised, explaining():
        raise error
    assert not raised.value.bare
