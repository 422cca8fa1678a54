"""Queued actions: what each stands for, and how they are sent to a real relay."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from localstore.core.encoding import b64u
from localstore.core.model import document, issue, path, proposal, repo, review, run, thread
from localstore.core.model import inbox as inboxes
from localstore.core.model.inbox import InboxMarks
from localstore.core.model.issue import IssuePatch
from localstore.core.model.proposal import ProposalPatch
from localstore.core.model.repo import RepoPatch
from localstore.core.model.review import ReviewCreate
from localstore.home import Home
from localstore.outbox import Outbox, QueuedAction
from svc.flows.outbox import actions as flows
from svc.flows.outbox.actions import Queue, call_of, describe_action, describe_effect, open_outbox
from svc.flows.outbox.queueable import ACTIONS
from svc.http.session import Session
from tests.patience import PATIENCE
from tests.svc.conftest import ROOT, Svc

SESSION = Session(
    origin="https://node.example", token="", user_id="u", session_id="s", handle="ann", expires_at=""
)
PATH = {
    "id": "r1",
    "n": "7",
    "name": "good first/issue",
    "comment": "c1",
    "reaction": "heart",
    "thread": "t1",
}
PATH |= {"run": "e1", "invite": "i1", "handle": "ben", "request_id": "q1", "transfer": "f1"}
# What screens show by themselves once it was carried out.
SEEN = (
    issue.CREATE,
    proposal.CREATE,
    inboxes.UPDATE,
    inboxes.UPDATE_ALL,
    document.PUT,
    run.RERUN,
    run.CANCEL,
    thread.UPDATE,
)
PATH |= {"org": "acme", "pattern": "release/*", "hook": "h1"}


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    return Queue(Outbox(tmp_path / "outbox.db"), SESSION, "ann/notes")


@pytest.fixture
def linked(alice: Svc) -> Svc:
    """alice in a linked folder."""
    assert alice("repo", "create", "app").code == 0
    assert alice("repo", "init", f"{os.environ['TEST_HANDLE']}/app").code == 0
    return alice


def body_of(shape: Any) -> Any:
    """The smallest body that says something."""
    if shape is None:
        return None
    for known in (
        {"title": "a", "head": "b", "base": "c"},
        {"path": "a", "start": 1, "end": 1, "seal_id": "0" * 64, "body": "text"},
        {"verdict": "comment"},
        {"handle": "ben"},
        {"role": "admin"},
        {"title": "a"},
        {"state": "done"},
        {"state": "resolved"},
        {"body": "text"},
        {"path": "docs", "visibility": "private"},
        {"name": "a"},
        {"description": "a"},
        {"required_approvals": 1},
        {"active": False},
        {"content": ["text"]},
    ):
        if set(known) <= set(shape.__struct_fields__):
            with suppress(msgspec.ValidationError):
                return msgspec.convert(known, shape)
    raise AssertionError(f"say how {shape} is filled")


def queued(svc: Svc) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        svc("queue", "list", "--json", "id,path,value,state,code,attempts").out
    )
    return found


def labels(svc: Svc) -> list[str]:
    return [one["name"] for one in json.loads(svc("label", "list", "--json", "name").out)]


@pytest.mark.parametrize("action", ACTIONS, ids=lambda one: f"{one.endpoint.method} {one.endpoint.path}")
def test_an_entry_stands_for_the_request_it_was_made_of(action: flows.Action, queue: Queue) -> None:
    endpoint = action.endpoint
    named = {name: PATH[name] for name in flows._pattern(endpoint.path).groupindex}
    body = body_of(endpoint.body)
    query = {"path": "docs"} if endpoint == path.REMOVE else {}
    entry = queue.put(endpoint, body, query, **named)
    call = call_of(entry)
    assert call.action == action
    assert (call.path, call.query, call.body) == (named, query, body)
    assert "{" not in describe_action(entry)
    effect = describe_effect(entry)
    assert "{" not in effect and effect[:1] == effect[:1].upper()
    assert bool(effect) == (endpoint not in SEEN), "only what screens show by themselves needs no words"
    assert not entry.path.startswith("/api")


@pytest.mark.parametrize(
    ("endpoint", "body", "words"),
    [
        (issue.UPDATE, IssuePatch(title="Two"), "change the title of #1"),
        (issue.UPDATE, IssuePatch(add_labels=["bug", "late"]), "add the labels bug, late to #1"),
        (issue.UPDATE, IssuePatch(state="closed", state_reason="completed"), "close #1"),
        (issue.UPDATE, IssuePatch(state="closed", state_reason="not_planned"), "close #1 as not planned"),
        (issue.UPDATE, IssuePatch(state="open", add_assignees=["@me"]), "reopen #1 and assign it to @me"),
        (proposal.UPDATE, ProposalPatch(state="closed"), "close proposal #1"),
        (
            proposal.UPDATE,
            ProposalPatch(draft=False, body="", add_reviewers=["ben"]),
            "change the text of proposal #1, mark it as ready for review and ask @ben to review it",
        ),
        (repo.UPDATE, RepoPatch(visibility="public"), "make the repository public"),
        (review.CREATE, ReviewCreate(verdict="request_changes"), "request changes of #1"),
        (inboxes.UPDATE_ALL, InboxMarks(state="done", ids=["a", "b"]), "mark 2 rows of the inbox as done"),
        (inboxes.UPDATE_ALL, InboxMarks(state="done"), "mark all rows of the inbox as done"),
    ],
)
def test_a_change_says_what_it_changes(endpoint: Any, body: msgspec.Struct, words: str, queue: Queue) -> None:
    named = {name: PATH[name] for name in flows._pattern(endpoint.path).groupindex} | {"n": "1"}
    assert describe_action(queue.put(endpoint, body, **named)) == words


@pytest.mark.parametrize(
    ("endpoint", "body", "words"),
    [
        (repo.UPDATE, RepoPatch(visibility="public"), "The repository is public now"),
        (repo.UPDATE, RepoPatch(archived=True), "The repository is archived and takes no writes"),
        (repo.UPDATE, RepoPatch(name="two", description="a"), "Name is two now, description changed"),
        (issue.UPDATE, IssuePatch(add_labels=["bug", "late"]), "#1: added labels bug, late"),
        (issue.UPDATE, IssuePatch(state="closed", state_reason="completed"), "#1: closed now"),
        (proposal.UPDATE, ProposalPatch(draft=False), "#1: ready for review now"),
        (review.CREATE, ReviewCreate(verdict="request_changes"), "Requested changes of #1"),
    ],
)
def test_a_change_says_what_it_made_so(endpoint: Any, body: msgspec.Struct, words: str, queue: Queue) -> None:
    named = {name: PATH[name] for name in flows._pattern(endpoint.path).groupindex}
    assert (
        describe_effect(queue.put(endpoint, body, **{**named, **({"n": "1"} if "n" in named else {})}))
        == words
    )


def test_no_two_actions_are_one_path() -> None:
    """Whichever is sent for a path and a value is the only one that it could be."""
    kinds = [
        (one.endpoint.path, one.endpoint.method if one.endpoint.method in ("POST", "DELETE") else "PUT")
        for one in ACTIONS
    ]
    assert len(set(kinds)) == len(kinds)


def test_what_cannot_wait_is_refused(linked: Svc) -> None:
    """Only commands that make one change take the option; a script token has no queue."""
    answer = linked("push", "--queue")
    assert (answer.code, "No such option" in answer.err) == (2, True)
    answer = linked("label", "create", "x", "--queue", "-R", f"{os.environ['TEST_HANDLE']}/app")
    assert (answer.code, "linked folder" in answer.err) == (2, True)
    answer = linked("label", "create", "x", "--queue", "-c", "red")
    assert (answer.code, queued(linked)) == (2, [])


def test_more_than_one_change_is_refused_before_anything_is_queued(linked: Svc) -> None:
    for words in (
        ["issue", "close", "1", "-c", "Done"],
        ["issue", "label", "add", "1", "a", "b", "--create"],
        ["issue", "comment", "1", "--edit-last", "-b", "x"],
        ["issue", "edit", "1"],
        ["issue", "create", "-b", "no title"],
    ):
        answer = linked(*words, "--queue")
        assert (answer.code, queued(linked)) == (2, []), words
        assert "--queue keeps one change" in answer.err


def test_what_people_do_with_issues_can_wait(linked: Svc) -> None:
    for words in (
        ["issue", "create", "-t", "Later", "-b", "Text"],
        ["issue", "comment", "1", "-b", "Seen"],
        ["issue", "react", "1", "heart"],
        ["issue", "label", "add", "1", "bug", "--create"],
        ["issue", "edit", "1", "--add-assignee", "@me"],
        ["issue", "close", "1"],
    ):
        assert linked(*words, "--queue").code == 0, words
    assert linked("issue", "list", "--json", "number").out.strip() == "[]"
    assert linked("queue", "retry").code == 0
    (found,) = json.loads(
        linked("issue", "list", "--state", "all", "--json", "title,state,comments,labels").out
    )
    assert (found["title"], found["state"], found["comments"]) == ("Later", "closed", 1)


def test_actions_are_sent_in_order_and_a_refused_one_moves_aside(linked: Svc) -> None:
    for name in ("one", "two", "one", "three"):
        answer = linked("label", "create", name, "--queue")
        assert answer.code == 0
        assert answer.out.strip() == queued(linked)[-1]["id"]
    assert linked("label", "list", "--json", "name").out.strip() == "[]"
    answer = linked("queue", "retry")
    assert answer.code == 1
    assert "Sent 3 actions; 1 action refused" in answer.err
    assert labels(linked) == ["one", "three", "two"]
    (left,) = queued(linked)
    assert (left["value"]["name"], left["state"], left["code"]) == ("one", "refused", "label_exists")
    assert linked("queue", "retry").code == 0
    assert linked("queue", "retry", left["id"][:12]).code == 1
    answer = linked("queue", "drop", left["id"][:12])
    assert (answer.code, "--yes" in answer.err, len(queued(linked))) == (2, True, 1)
    assert linked("queue", "drop", left["id"][:12], "--yes").code == 0
    assert queued(linked) == []
    answer = linked("queue", "drop", "nothing")
    assert (answer.code, "no action has the id" in answer.err) == (1, True)


def test_an_action_whose_answer_was_lost_is_carried_out_once(linked: Svc) -> None:
    """It was sent and carried out, and this machine died before it heard so."""
    for name in ("one", "two"):
        assert linked("label", "create", name, "--queue").code == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Outbox, "remove", lambda self, id: (_ for _ in ()).throw(KeyboardInterrupt))
        assert linked("queue", "retry").code == 130
    (first, second) = queued(linked)
    assert (first["state"], first["attempts"], second["state"]) == ("waiting", 1, "waiting")
    answer = linked("queue", "retry")
    assert (answer.code, labels(linked), queued(linked)) == (0, ["one", "two"], [])


def test_another_account_sends_nothing(linked: Svc) -> None:
    assert linked("label", "create", "one", "--queue").code == 0
    assert linked("logout").code == 0
    answer = linked("queue", "retry")
    assert (answer.code, "svc login" in answer.err) == (1, True)
    assert [one["state"] for one in queued(linked)] == ["waiting"]


def test_killed_at_any_time_each_is_carried_out_once_and_in_order(linked: Svc, node: str) -> None:
    """A label that was created twice would be refused."""
    names = [f"l{n:02d}" for n in range(30)]
    for name in names:
        assert linked("label", "create", name, "--queue").code == 0
    retry = [sys.executable, "-m", "svc", "queue", "retry"]
    kills = 0
    for attempt in range(30):
        process = subprocess.Popen(
            retry,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        time.sleep(0.15 + 0.013 * attempt)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait(PATIENCE)
        left = queued(linked)
        assert [one["state"] for one in left if one["state"] == "refused"] == []
        assert sorted(labels(linked)) in ([*names[: 30 - len(left)]], [*names[: 31 - len(left)]])
        if not left:
            break
    assert kills > 0
    linked("queue", "retry")
    assert queued(linked) == []
    assert labels(linked) == names


def test_only_one_process_sends(tmp_path: Path) -> None:
    from localstore.core.errors import ClientError
    from localstore.folder.lock import hold_lock

    home = Home(tmp_path)
    outbox = open_outbox(home)
    Queue(outbox, SESSION).put(ACTIONS[0].endpoint, body_of(ACTIONS[0].endpoint.body), id="r1")
    with hold_lock(tmp_path / "outbox.lock", "svc queue"), pytest.raises(ClientError, match="at this moment"):
        flows.replay(outbox, home, lambda *_: pytest.fail("it asked for a session"))


def test_an_entry_of_a_later_version_moves_aside(tmp_path: Path) -> None:
    home = Home(tmp_path)
    outbox = open_outbox(home)
    made = outbox.add("https://node.example", "u", "ann", "", "/planets/+", {"name": b64u(b"x")})

    class Served:
        origin = "https://node.example"

    told: list[QueuedAction] = []
    report = flows.replay(outbox, home, lambda *_: Served(), lambda entry, _: told.append(entry))  # type: ignore[arg-type,return-value]
    assert ([entry.id for entry in report.refused], told) == ([made.id], report.refused)
    assert outbox.list()[0].state == "refused"
