"""A write that waited acts on what is so when its turn comes: after an archive, a removal, a demotion, a
deletion, a suspension or a sign-out nothing lands."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import bindparam, delete, update

from relay.base.clock import now_ms
from relay.db.schema import tables
from relay.run.operator_commands import _set_state
from tests.relay.conftest import Relay
from tests.relay.histories import ok
from tests.relay.rights.waiting import Team, behind

Act = Callable[[Team], object]

_ROLE = tables["collaborator"]
_THEIRS = (_ROLE.c.repo_id == bindparam("repo_id"), _ROLE.c.account_id == bindparam("who"))
_SESSION = tables["session"]


def archive(team: Team) -> object:
    return ok(team.http.patch(team.repo.url, json={"archived": True}))


def remove(team: Team) -> object:
    return team.run(delete(_ROLE).where(*_THEIRS), who=team.member.id)


def demote(role: str) -> Act:
    def act(team: Team) -> object:
        return team.run(update(_ROLE).where(*_THEIRS).values(role=role), who=team.member.id)

    return act


def drop(team: Team) -> object:
    return ok(team.http.delete(team.repo.url))


def suspend(team: Team) -> object:
    node = team.relay.node
    return team.relay.run(_set_state(node.db, str(team.repo.body["full_name"]), "suspend"))


def sign_out(team: Team) -> object:
    ended = update(_SESSION).where(_SESSION.c.id == team.member.session_id).values(revoked_at=now_ms())
    return team.run(ended)


ACTS: dict[str, tuple[Act, bool, int, str]] = {
    "archived": (archive, False, 409, "repository_archived"),
    "removed from a private repository": (remove, False, 404, "not_found"),
    "removed from a public one": (remove, True, 403, "forbidden"),
    "demoted to triage": (demote("triage"), False, 403, "forbidden"),
    "demoted to read": (demote("read"), True, 403, "forbidden"),
    "deleted": (drop, False, 404, "not_found"),
    "suspended": (suspend, True, 404, "not_found"),
    "signed out": (sign_out, False, 401, "sign_in_required"),
}


@pytest.fixture
def team_of(relay: Relay) -> Iterator[Callable[[bool], Team]]:
    made: list[Team] = []

    def make(public: bool) -> Team:
        made.append(Team(relay, public=public))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize("name", ACTS)
def test_of_sixty_writes_that_waited_none_lands(team_of: Callable[[bool], Team], name: str) -> None:
    act, public, status, code = ACTS[name]
    team = team_of(public)
    writes = team.writes()
    before, rows = team.heads(), team.rows()

    _, answers = behind(team, lambda: act(team), writes)

    assert len(answers) >= 50
    assert {(one.status_code, one.json()["code"]) for one in answers} == {(status, code)}
    assert team.heads() == before
    now = team.rows()
    assert now.pop("prepare") <= rows.pop("prepare")  # what nobody may finish any more is taken away
    assert now == rows


def test_the_same_writes_land_where_nothing_happened(team_of: Callable[[bool], Team]) -> None:
    team = team_of(False)
    _, answers = behind(team, None, team.writes())
    assert {one.status_code for one in answers} <= {200, 201, 204}, [one.text for one in answers]


def test_settings_that_waited_change_what_they_name_alone(team_of: Callable[[bool], Team]) -> None:
    """The archive lands first; a description behind it is refused, and takes nothing back."""
    team = team_of(False)
    renamed = [lambda: team.http.patch(team.repo.url, json={"description": "late"})]
    _, (answer,) = behind(team, lambda: archive(team), renamed)
    assert (answer.status_code, answer.json()["code"]) == (409, "repository_archived")
    found = ok(team.http.get(team.repo.url))
    assert (found["archived"], found["description"]) == (True, "")


def test_two_settings_at_once_are_both_kept(team_of: Callable[[bool], Team]) -> None:
    team = team_of(False)

    def public() -> object:
        return ok(team.http.patch(team.repo.url, json={"visibility": "public"}))

    _, (answer,) = behind(
        team, public, [lambda: team.http.patch(team.repo.url, json={"description": "both"})]
    )
    assert answer.status_code == 200
    found = ok(team.http.get(team.repo.url))
    assert (found["visibility"], found["description"]) == ("public", "both")
