"""The page of settings: for the owner alone, and what cannot be taken back wants the name typed."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import httpx
import pytest

from localstore.core.model.rights import OPERATIONS
from relay.domain.repository.acts import ACTS
from relay.domain.repository.settings import PANELS
from tests.patience import until
from tests.relay.domain.repository import test_forms
from tests.relay.domain.repository.test_forms import People, Person, followed
from tests.relay.domain.repository.test_pages import page
from tests.relay.histories import ok

person = test_forms.person
Client = Callable[..., httpx.Client]


@pytest.fixture
def owner(person: People) -> Person:
    """Somebody in a browser."""
    return person()


@pytest.fixture
def name(owner: Person) -> str:
    """The full name of a public repository of the owner's."""
    body = {"name": f"r{secrets.token_hex(4)}", "visibility": "public"}
    return str(ok(owner.post("/api/v1/repos", json=body))["full_name"])


def at(name: str, panel: str, asks: str = "") -> str:
    return f"/apps/{name}/dev?tab=settings&view={panel}" + (f"&note={asks}" if asks else "")


@pytest.mark.parametrize("panel", PANELS)
def test_each_panel_is_for_the_owner_alone(owner: Person, name: str, person: People, panel: str) -> None:
    assert f'<h2 class="subject">{PANELS[panel]}</h2>' in page(owner, at(name, panel))
    missing = owner.get("/apps/nobody/nothing")
    for other in (person(), owner.__class__(str(owner.base_url))):
        answer = other.get(at(name, panel))
        assert (answer.status_code, answer.text) == (404, missing.text)
    page(owner, at(name, "nothing"), 404)


def test_general_settings_are_saved_and_the_page_moves_with_the_name(owner: Person, name: str) -> None:
    renamed = f"r{secrets.token_hex(4)}"
    answer = owner.submit(at(name, "general"), "repo.edit", name=renamed, text="About <it>", kind="lib")
    assert answer.headers["location"].startswith(f"/lib/{name.partition('/')[0]}/{renamed}/dev")
    assert "About &lt;it&gt;" in followed(owner, answer)


def test_a_listing_has_screenshots_on_the_page_for_everybody(owner: Person, name: str) -> None:
    here = at(name, "listing")
    typed = {"name": "Tides <1>", "title": "Tools", "images": "all"}
    text = followed(owner, owner.submit(here, "listing.set", text="a/one.png\r\n\r\ntwo.png\r\n", **typed))
    assert "a/one.png\ntwo.png</textarea>" in text
    overview = page(owner, f"/apps/{name}/dev")
    assert f'<a href="/apps/{name}">Tides &lt;1&gt;</a> · Tools' in overview
    refused = owner.submit(here, "listing.set", text="notes.txt", **typed)
    assert (refused.status_code, "notes.txt</textarea>" in refused.text) == (422, True)
    assert "one.png" not in followed(owner, owner.submit(here, "listing.set", text="", **typed))


def test_people_are_invited_and_uninvited(owner: Person, name: str, person: People) -> None:
    guest = ok(person().get("/auth/userinfo"))["handle"]
    here = at(name, "access")
    text = followed(owner, owner.submit(here, "invite.create", handle=guest, role="write"))
    assert f"<b>{guest}</b>" in text
    again = owner.submit(here, "invite.create", handle="nobody-at-all", role="write")
    assert (again.status_code, 'value="nobody-at-all"' in again.text) == (422, True)
    act = text.partition('value="invite.cancel ')[2].partition('"')[0]
    assert "Cancel the invitation" not in followed(owner, owner.submit(here, f"invite.cancel {act}"))


def test_requests_for_access_are_granted(owner: Person, name: str, person: People) -> None:
    other = person()
    followed(
        other, other.submit(f"/apps/{name}/dev?tab=overview&view=access", "access.request", role="triage")
    )
    handle = ok(other.get("/auth/userinfo"))["handle"]
    here = at(name, "access")

    def granting() -> str:
        return owner.get(here).text.partition('value="access.grant ')[2]

    request = until(granting, "a job has stored the request").partition('"')[0]
    text = followed(owner, owner.submit(here, f"access.grant {request}"))
    assert f"Role of {handle}" in text
    assert f"Role of {handle}" not in followed(owner, owner.submit(here, f"collaborator.remove {handle}"))


def test_branches_are_protected_and_checks_required(owner: Person, name: str) -> None:
    here = at(name, "checks")
    typed = {"name": "main", "approvals": "2", "require_checks": "on"}
    assert "approvals: 2 · checks pass" in followed(owner, owner.submit(here, "protection.set", **typed))
    assert "approvals: 2" not in followed(owner, owner.submit(here, "protection.clear main"))
    assert "No longer require" in followed(owner, owner.submit(here, "check.enable", name="lint"))
    assert "No longer require" not in followed(owner, owner.submit(here, "check.disable lint"))
    refused = owner.submit(here, "protection.set", name="main", approvals="many")
    assert refused.status_code == 422


def test_webhooks_are_added_switched_and_deleted(owner: Person, name: str) -> None:
    here = at(name, "automation")
    typed = {"url": "https://hooks.example/x", "events": "push, issue", "secret": "s" * 32}
    text = followed(owner, owner.submit(here, "webhook.create", **typed))
    assert "push, issue · active" in text
    hook = text.partition('value="webhook.delete ')[2].partition('"')[0]
    assert "switched off" in followed(owner, owner.submit(here, f"webhook.edit off {hook}"))
    assert "hooks.example" not in followed(owner, owner.submit(here, f"webhook.delete {hook}"))
    refused = owner.submit(here, "webhook.create", url="nothing", events="push", secret="tell-nobody-it")
    assert refused.status_code == 422
    assert "tell-nobody-it" not in refused.text


def test_it_is_listed_and_taken_out_again(owner: Person, name: str) -> None:
    here = at(name, "listing")
    text = followed(owner, owner.submit(here, "listing.set", name="Shown", title="tools", images="all"))
    assert 'value="Shown"' in text
    assert "List it" in followed(owner, owner.submit(here, "listing.remove"))


def test_it_is_archived_and_unarchived(owner: Person, name: str) -> None:
    here = at(name, "lifecycle")
    assert ">archived<" in followed(owner, owner.submit(here, "repo.archive on"))
    page(owner, at(name, "general"))
    assert ">archived<" not in followed(owner, owner.submit(here, "repo.archive off"))


def test_an_archived_repository_is_shown_without_what_it_refuses(owner: Person, name: str) -> None:
    dev = f"/apps/{name}/dev"
    opened = owner.submit(f"{dev}?tab=issues&view=new", "issue.create", title="Before")
    issue = opened.headers["location"]
    assert "<button>Comment</button>" in page(owner, issue)
    owner.submit(at(name, "lifecycle"), "repo.archive on")
    assert "<button>Comment</button>" not in page(owner, issue)
    for tab in ("", "?tab=code", "?tab=issues", "?tab=workflows", "?tab=releases", "?tab=security"):
        assert ">archived<" in page(owner, f"{dev}{tab}")


@pytest.mark.parametrize(
    ("asks", "act"),
    [("delete", "repo.delete"), ("visibility", "repo.visibility"), ("transfer", "transfer.create")],
)
def test_what_cannot_be_taken_back_wants_the_name(
    owner: Person, name: str, person: People, asks: str, act: str
) -> None:
    here = at(name, "lifecycle", asks)
    handle = ok(person().get("/auth/userinfo"))["handle"]
    spelled = f"{act} private" if act == "repo.visibility" else act
    refused = owner.submit(here, spelled, confirm="another", handle=handle)
    assert (refused.status_code, f"type {name} to confirm" in refused.text) == (422, True)
    page(owner, f"/apps/{name}")
    done = owner.submit(here, spelled, confirm=name, handle=handle)
    assert done.status_code == 303
    assert owner.get(f"/apps/{name}").status_code == (404 if act == "repo.delete" else 200)


@pytest.mark.parametrize(
    ("panel", "act", "typed"),
    [
        ("access", "invite.create", {"handle": "no\u202ebody", "role": "read"}),
        ("general", "repo.edit", {"name": "name", "branch": "a\x1bb\u202ec"}),
        ("checks", "protection.set", {"name": "a\x1b b\u202e..", "approvals": "1"}),
        ("listing", "listing.set", {"name": "Tides", "text": "a/\x1b\u202egnp.exe", "images": "none"}),
    ],
)
def test_a_refusal_repeats_no_character_that_hides_or_turns_it(
    owner: Person, name: str, panel: str, act: str, typed: dict[str, str]
) -> None:
    answer = owner.submit(at(name, panel), act, **typed)
    alert = answer.text.partition('role="alert">')[2].partition("</p>")[0]
    assert (answer.status_code // 100, bool(alert)) == (4, True)
    assert not {"\x1b", "\u202e"} & set(alert), alert


def test_settings_are_changed_by_the_owner_alone(owner: Person, name: str, person: People) -> None:
    other = person()
    for act, row in ACTS.items():
        operation = OPERATIONS[row.operation]
        if operation.about == "repository" and operation.least == "owner" and not operation.author:
            typed = {"act": act, "key": secrets.token_hex(8)}
            assert (
                other.post(at(name, "general"), data=typed).status_code == 404
            )  # the page that it does not see
            answer = other.post(f"/apps/{name}/dev?tab=overview", data=typed)
            assert answer.status_code == 403, (act, answer.text)
