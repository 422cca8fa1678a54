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

from localstore.core.model.rights import OPERATIONS, Who
from relay.base.clock import now_ms
from relay.db.schema import tables
from relay.domain.repository.acts import ACTS
from tests.relay.auth.people import Browser
from tests.relay.conftest import Account, Relay
from tests.relay.domain.repository import test_pages
from tests.relay.domain.repository.test_pages import at
from tests.relay.histories import Repository, ok, own
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
            ticked = re.sub(r'<input type="checkbox"(?![^>]* checked)[^>]*>', "", form)
            values = dict(re.findall(r'name="(\w+)"[^>]*? value="([^"]*)"', ticked))
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
    assert "</svg> good first" in followed(one, one.submit(here, "issue.label", labels="good first"))
    assert "</svg> good first" not in followed(one, one.submit(here, "issue.label good first"))
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


def test_a_thread_is_begun_on_a_range_of_lines(relay: Relay, mine: Repository, person: People) -> None:
    subject = reviewed(relay, mine, person)
    one = person()
    grant(relay, mine, one, "read")
    files = tab(mine, n=subject["n"], view="files")
    text = one.get(files).text
    assert 'id="new-thread"' not in text
    links = [html.unescape(link) for link in re.findall(r'<td><a href="([^"]*)">', text)]
    at_old, at_new = (
        next(link for link in links if f"{side}&lines=2#" in link) for side in ("old", "src/a.py")
    )
    assert "return <mark>2</mark></code>" in one.get(at_old).text.partition('id="new-thread"')[0]
    page = at_new.partition("#")[0].replace("lines=2", "lines=1-2")
    typed = {"text": "both <i>lines</i>", "suggest": "on"}
    assert "def first():\n    return 3</textarea>" in one.get(page).text
    answer = one.submit(page, "thread.create", **typed, suggestion="def first():\r\n    return 4")
    text = followed(one, answer)
    threads = ok(mine.http.get(f"{mine.url}/proposals/{subject['n']}/threads"))["items"]
    thread = next(thread for thread in threads if thread["id"] != subject["thread"])
    assert (thread["path"], thread["start"], thread["end"], thread["side"]) == ("src/a.py", 1, 2, "new")
    assert thread["suggestion"]["text"] == "def first():\n    return 4"
    assert answer.headers["location"].endswith(f"#thread-{thread['id']}")
    assert f'id="thread-{thread["id"]}"' in text
    on_old = one.submit(at_old.partition("#")[0], "thread.create draft", text="it was two")
    assert "Only you see this" in followed(one, on_old)
    assert len(ok(mine.http.get(f"{mine.url}/proposals/{subject['n']}/threads"))["items"]) == 2


def test_a_thread_on_lines_that_are_not_there_is_refused_with_what_was_typed(
    relay: Relay, mine: Repository, person: People
) -> None:
    subject = reviewed(relay, mine, person)
    one = person()
    files = tab(mine, n=subject["n"], view="files")
    for path, typed in (
        ("src/a.py", {"end": "99"}),
        ("src/a.py", {"start": "\u0661"}),
        ("no.txt", {"end": "2"}),
    ):
        page = f"{files}&path={path}&lines=2"
        answer = one.submit(page, "thread.create", text="my <words>", **typed)
        assert (answer.status_code, "my &lt;words&gt;</textarea>" in answer.text) == (422, True), answer.text
    assert "this page does not show the line" in one.get(f"{files}&path=no.txt&lines=9999999").text
    assert 'id="new-thread"' not in Person(relay.url).get(f"{files}&path=src/a.py&lines=2").text


def test_a_proposal_is_opened_after_its_changes_were_shown(mine: Repository, person: People) -> None:
    mine.branch("side", str(mine.head()))
    mine.seal({"new.txt": b"new <b>\n"}, branch="side", messages=["Bring <it>\n\nWhy."])
    one = person()
    text = one.get(tab(mine, kind="proposals")).text
    assert "view=new" in text and "New proposal" in text
    start = tab(mine, kind="proposals", view="new")
    assert 'name="act"' not in one.get(start).text.partition('class="subject"')[2]
    assert "There is no such branch" in one.get(f"{start}&head=nothing").text
    assert "nothing to propose" in one.get(f"{start}&head=main").text
    named = f"{start}&head=side"
    assert "+new &lt;b&gt;" in one.get(named).text
    assert 'value="Bring &lt;it&gt;"' in one.get(named).text
    refused = one.submit(named, "proposal.create draft", title=" ", text="kept")
    assert (refused.status_code, "kept</textarea>" in refused.text) == (422, True)
    text = followed(one, one.submit(named, "proposal.create draft", title="Bring it", text="*Why*"))
    assert "<em>Why</em>" in text and "draft" in text
    proposal = ok(mine.http.get(f"{mine.url}/proposals/1"))
    assert (proposal["title"], proposal["head"], proposal["base"]) == ("Bring it", "side", "main")
    again = one.submit(named, "proposal.create", title="Again")
    assert again.status_code == 409


def test_a_page_waits_for_what_a_device_signs(mine: Repository, person: People) -> None:
    mine.branch("side", str(mine.head()))
    mine.seal({"new.txt": b"new\n"}, branch="side")
    ok(mine.http.post(f"{mine.url}/proposals", json={"title": "Bring it", "head": "side", "base": "main"}))
    one = person()
    waits = tab(mine, n=1, view="merge")
    assert html.escape(waits) in one.get(tab(mine, n=1)).text
    first = one.get(waits)
    assert "refresh" not in first.headers
    assert f"svc pr merge 1 -R {mine.body['full_name']}" in first.text
    assert one.get(f"{waits}&wait=1").headers["refresh"] == f"5; url={waits}&wait=2"
    last = one.get(f"{waits}&wait=60")
    assert ("refresh" in last.headers, "has not happened" in last.text) == (False, True)
    assert one.get(f"{waits}&wait=61").status_code == 422
    ok(mine.http.patch(f"{mine.url}/proposals/1", json={"state": "closed"}))
    done = one.get(f"{waits}&wait=2")
    assert (done.status_code, done.headers["location"]) == (303, tab(mine, n=1))


def test_pages_wait_for_the_first_seal_and_for_a_release(
    mine: Repository, account: Callable[..., Account], client: Callable[..., httpx.Client], person: People
) -> None:
    one, empty = person(), own(account, client, visibility="public")
    push = f"{at(empty)}/dev?tab=code&view=push"
    assert html.escape(push) in one.get(f"{at(empty)}/dev?tab=code").text
    assert "refresh" in one.get(f"{push}&wait=1").headers
    empty.seal({"a.txt": b"a\n"})
    assert one.get(f"{push}&wait=2").headers["location"] == f"{at(empty)}/dev?tab=code"
    release = f"{at(mine)}/dev?tab=releases"
    for version in ("v1.0", "v1.1"):
        onward = one.get(waiting_address(one, release))
        assert onward.status_code == 200
        body = {"version": version, "seal_id": mine.head(), "notes": ""}
        ok(mine.http.post(f"{mine.url}/releases", json=body))
        assert one.get(str(onward.url)).headers["location"] == release


def waiting_address(person: Person, releases: str) -> str:
    """The address at which the page of a new release waits."""
    text = person.get(f"{releases}&view=release").text
    return html.unescape(re.search(r'href="([^"]*wait=1)"', text)[1])  # type: ignore[index]


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
