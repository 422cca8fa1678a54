"""Forms of pages: each does what the API does, once, for whom the table of rights allows it."""

from __future__ import annotations

import html
import re
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from sqlalchemy import insert

from localstore.core.rights import OPERATIONS, Who
from relay.base.clock import now_ms
from relay.db.schema import tables
from relay.domain.repository.acts import ACTS
from tests.relay.auth.people import Browser
from tests.relay.conftest import Relay
from tests.relay.domain.repository import test_pages
from tests.relay.domain.repository.test_pages import at
from tests.relay.histories import Repository, ok
from tests.relay.world import name

People = Callable[[], "Person"]

mine = test_pages.mine


class Person(Browser):
    """Somebody in a browser, who fills in the forms that a page shows."""

    def submit(self, address: str, act: str, **typed: str) -> httpx.Response:
        """Send the form of the page with this act, or the button with it."""
        action, fields = self.form(address, act)
        return self.post(action, data={**fields, **typed})

    def form(self, address: str, act: str) -> tuple[str, dict[str, str]]:
        """Where the form with this act is sent, its hidden fields and the act."""
        answer = self.get(address)
        assert answer.status_code == 200, (address, answer.text[:500])
        for form in re.findall(r"<form method=\"post\".*?</form>", answer.text, re.DOTALL):
            values = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
            buttons = re.findall(r'name="act" value="([^"]*)"', form)
            if act in map(html.unescape, buttons):
                action = re.match(r'<form method="post" action="([^"]*)"', form)
                fields = {key: html.unescape(value) for key, value in values.items()}
                return html.unescape(action[1]) if action else address, fields | {"act": act}
        raise AssertionError(f"{address} has no form {act}")


@pytest.fixture
def person(relay: Relay) -> Iterator[Callable[[], Person]]:
    """Makes people with an account and a session by cookie."""
    people: list[Person] = []

    def make() -> Person:
        one = Person(relay.url)
        people.append(one)
        one.sign_up(name())
        return one

    yield make
    for one in people:
        one.close()


def tab(mine: Repository, **query: Any) -> str:
    rest = "".join(f"&{key}={value}" for key, value in query.items())
    return f"{at(mine)}/dev?tab=issues{rest}"


def followed(person: Person, answer: httpx.Response) -> str:
    """The page to which a form led."""
    assert answer.status_code == 303, (answer.status_code, answer.text[:1500])
    return person.get(answer.headers["location"]).text


def test_an_issue_is_opened_commented_edited_and_closed(
    mine: Repository, person: Callable[[], Person]
) -> None:
    one = person()
    made = one.submit(tab(mine, view="new"), "issue.create", title="A <fault>", text="It\r\nbreaks")
    assert "A &lt;fault&gt;" in followed(one, made)
    here = tab(mine, n=1)
    assert ok(mine.http.get(f"{mine.url}/issues/1"))["body"] == "It\nbreaks"
    said = one.submit(here, "comment.create", text="**me too**")
    assert "#comment-" in said.headers["location"]
    text = followed(one, said)
    assert "<strong>me too</strong>" in text
    edit = html.unescape(re.search(r'href="([^"]*comment=[^"]*)"', text)[1])  # type: ignore[index]
    assert "me neither" in followed(one, one.submit(edit, "comment.edit", text="me neither"))
    assert "A fault" in followed(
        one, one.submit(tab(mine, n=1, view="edit"), "issue.edit", title="A fault", text="It breaks")
    )
    assert "closed as not planned" in followed(one, one.submit(here, "issue.close not_planned"))
    assert "○ open" in followed(one, one.submit(here, "issue.reopen"))
    assert "me neither" not in followed(one, one.submit(edit, "comment.delete"))


def test_a_form_that_is_sent_twice_does_its_act_once(mine: Repository, person: People) -> None:
    one = person()
    action, fields = one.form(tab(mine, view="new"), "issue.create")
    answers = [one.post(action, data={**fields, "title": "once"}) for _ in range(2)]
    assert {(answer.status_code, answer.headers["location"]) for answer in answers} == {(303, tab(mine, n=1))}
    assert len(ok(mine.http.get(f"{mine.url}/issues"))["items"]) == 1
    other = one.post(action, data={**fields, "title": "another"})
    assert (other.status_code, 'value="another"' in other.text) == (422, True)


def test_what_is_refused_is_shown_with_what_was_typed(mine: Repository, person: People) -> None:
    one = person()
    answer = one.submit(tab(mine, view="new"), "issue.create", title=" ", text="a <long> text")
    assert answer.status_code == 422
    assert 'role="alert"' in answer.text
    assert "a &lt;long&gt; text</textarea>" in answer.text
    assert answer.headers["cache-control"] == "no-store"
    ok(mine.http.post(f"{mine.url}/issues", json={"title": "first"}))
    action, fields = one.form(tab(mine, n=1), "comment.create")
    ok(mine.http.patch(mine.url, json={"archived": True}))
    answer = one.post(action, data={**fields, "text": "too late"})
    assert (answer.status_code, "is archived" in answer.text) == (409, True)


@pytest.mark.parametrize("origin", ["https://elsewhere.example", "null"])
def test_a_form_of_another_site_is_refused(mine: Repository, person: People, origin: str) -> None:
    one = person()
    action, fields = one.form(tab(mine, view="new"), "issue.create")
    answer = one.post(action, data={**fields, "title": "not mine"}, headers={"Origin": origin})
    assert answer.status_code == 403
    assert ok(mine.http.get(f"{mine.url}/issues"))["items"] == []


def test_a_form_after_the_session_keeps_its_text_and_tells_nothing(mine: Repository, person: People) -> None:
    one = person()
    action, fields = one.form(tab(mine, view="new"), "issue.create")
    one.cookies.clear()
    answer = one.post(action, data={**fields, "title": "t", "text": "long <b> text"})
    assert answer.status_code == 401
    assert "long &lt;b&gt; text</textarea>" in answer.text
    hidden = one.post("/apps/nobody/nothing/dev?tab=issues&view=new", data={**fields, "title": "t"})
    assert hidden.status_code == 401
    assert ok(mine.http.get(f"{mine.url}/issues"))["items"] == []


def test_people_are_asked_and_answers_lead_on(mine: Repository, person: People) -> None:
    one = person()
    overview = f"{at(mine)}/dev?tab=overview"
    assert "owner has your request" in followed(
        one, one.submit(f"{overview}&view=access", "access.request", role="write", text="please")
    )
    text = followed(one, one.submit(f"{overview}&view=fork", "fork.create", name="mine-too"))
    assert "forked from" in text


def test_labels_and_people_are_put_on_and_taken_off(relay: Relay, mine: Repository, person: People) -> None:
    one = person()
    me = grant(relay, mine, one, "triage")
    ok(mine.http.post(f"{mine.url}/labels", json={"name": "good first"}))
    ok(mine.http.post(f"{mine.url}/issues", json={"title": "first"}))
    here = tab(mine, n=1)
    assert "● good first" in followed(one, one.submit(here, "issue.label", labels="good first"))
    assert "● good first" not in followed(one, one.submit(here, "issue.label good first"))
    assert f"× {me}" in followed(one, one.submit(here, "issue.assign", handle="@me"))
    assert f"× {me}" not in followed(one, one.submit(here, f"issue.assign {me}"))


def test_a_proposal_is_reviewed_and_its_threads_answered(
    relay: Relay, mine: Repository, person: People
) -> None:
    mine.branch("side", str(mine.head()))
    mine.seal({"src/a.py": b"def first():\n    return 3\n"}, branch="side")
    ok(mine.http.post(f"{mine.url}/proposals", json={"title": "Three", "head": "side", "base": "main"}))
    place = {"path": "src/a.py", "start": 2, "end": 2, "seal_id": mine.head("side"), "body": "why?"}
    ok(mine.http.post(f"{mine.url}/proposals/1/threads", json=place))
    one = person()
    me = grant(relay, mine, one, "write")
    here = tab(mine, n=1)
    assert f"<b>{me}</b>" in followed(one, one.submit(here, "proposal.reviewers", handle="@me"))
    text = followed(one, one.submit(here, "review.create", verdict="approve", text="*fine*"))
    assert "approved" in text and "<em>fine</em>" in text
    assert "because" in followed(one, one.submit(f"{here}&view=files", "thread.comment", text="because"))
    assert "because" not in followed(one, one.submit(f"{here}&view=files", "thread.resolve"))


def grant(relay: Relay, mine: Repository, one: Person, role: str) -> str:
    """Give somebody a role. Returns the handle."""
    me = ok(one.get("/auth/userinfo"))

    async def add() -> None:
        async with relay.node.db.write() as tx:
            values = {"repo_id": mine.id, "account_id": me["user_id"], "role": role, "created_at": now_ms()}
            await tx.many(insert(tables["collaborator"]), [values])

    relay.run(add())
    return str(me["handle"])


# Acts whose row of rights is another than their name.
ROWS = {
    "proposal.label": "issue.label",
    "proposal.assign": "issue.assign",
    "repo.edit": "repo.update",
    "repo.archive": "repo.update",
    "repo.visibility": "repo.update",
}


def test_forms_are_for_whom_the_table_of_rights_names(relay: Relay, mine: Repository, person: People) -> None:
    """Every act, sent by each caller without asking whether a page shows the control; none of them wrote what
    it is about."""
    ok(mine.http.post(f"{mine.url}/issues", json={"title": "first"}))
    subject = reviewed(relay, mine, person)
    assert subject["n"] == "2"
    # The last one may delete what is there.
    roles: tuple[Who, ...] = ("stranger", "read", "triage", "admin")
    assert all(act in OPERATIONS or act in ROWS for act in ACTS)
    for role in roles:
        one = person()
        if role != "stranger":
            grant(relay, mine, one, role)
        shown = one.get(tab(mine, n=1)).text
        for act in ACTS:
            operation = OPERATIONS[ROWS.get(act, act)]
            typed = {"key": secrets.token_hex(8), "n": "1", "title": "t", "text": "t", "name": act}
            about = act.startswith(("proposal.", "review.", "thread.", "comment."))
            if about:
                typed |= {name: subject[name] for name in ("n", "thread", "comment")}
            sent = f"{act} {subject['review']}" if act == "review.dismiss" else act
            answer = one.post(tab(mine, n=1), data={**typed, "act": sent})
            allowed = operation.allows(role)
            assert answer.status_code < 500, (role, act, answer.text)
            assert (answer.status_code != 403) is allowed, (role, act, answer.status_code, answer.text)
            assert not about or answer.status_code != 404, (role, act, answer.text)
            if act in ("comment.create", "star.set"):
                assert f'value="{act}' in shown, (role, act)
            if act == "issue.close":
                assert (f'value="{act}' in shown) is allowed, (role, act)


def reviewed(relay: Relay, mine: Repository, person: People) -> dict[str, str]:
    """Make a proposal with a thread, a comment and a verdict of somebody else. Returns its number as `n`, and
    their ids."""
    mine.branch("side", str(mine.head()))
    mine.seal({"src/a.py": b"def first():\n    return 3\n"}, branch="side")
    proposal = ok(
        mine.http.post(f"{mine.url}/proposals", json={"title": "Three", "head": "side", "base": "main"})
    )
    url = f"{mine.url}/proposals/{proposal['number']}"
    place = {"path": "src/a.py", "start": 2, "end": 2, "seal_id": mine.head("side"), "body": "why?"}
    thread = ok(mine.http.post(f"{url}/threads", json=place))
    comment = ok(mine.http.post(f"{mine.url}/issues/{proposal['number']}/comments", json={"body": "first"}))
    reviewer = person()
    grant(relay, mine, reviewer, "write")
    review = ok(reviewer.post(f"{url}/reviews", json={"verdict": "approve"}))
    ids = {"thread": thread["id"], "comment": comment["id"], "review": review["id"]}
    return {"n": str(proposal["number"]), **ids}


def test_reactions_stars_and_watches_are_set_and_cleared(
    mine: Repository, person: Callable[[], Person]
) -> None:
    one = person()
    ok(mine.http.post(f"{mine.url}/issues", json={"title": "first"}))
    here = tab(mine, n=1)
    assert 'aria-pressed="true"' in followed(one, one.submit(here, "reaction.add tada"))
    assert 'aria-pressed="true"' not in followed(one, one.submit(here, "reaction.remove tada"))
    assert "★ 1" in followed(one, one.submit(here, "star.set"))
    assert "★ 0" in followed(one, one.submit(here, "star.clear"))
    assert "Unwatch" in followed(one, one.submit(at(mine), "watch.set"))
    assert "Unwatch" not in followed(one, one.submit(here, "watch.clear"))
