"""The forms of pages in a real browser without scripts, by mouse and by keyboard alone."""

from __future__ import annotations

import secrets

import pytest

from tests.patience import PATIENCE
from tests.relay.auth import test_browser
from tests.relay.auth.people import PASSWORD
from tests.relay.world import name

pytestmark = test_browser.pytestmark
chromium = test_browser.chromium

COMMENT = "article.box"  # that was stored: the text of a refused one is in its field only


@pytest.fixture
def page(chromium):
    """A page of a browser that runs no scripts."""
    context = chromium.new_context(java_script_enabled=False, viewport={"width": 900, "height": 760})
    page = context.new_page()
    page.set_default_timeout(PATIENCE * 1000)
    yield page
    context.close()


@pytest.fixture
def repository(relay, page):
    """The address of the pages of a public repository, whose owner has signed in with the browser."""
    page.goto(f"{relay.url}/auth/sign-up")
    page.get_by_label("Handle").fill(name())
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    body = {"name": f"r{secrets.token_hex(4)}", "visibility": "public"}
    answer = page.request.post(f"{relay.url}/api/v1/repos", data=body, headers={"Origin": relay.url})
    assert answer.status == 201, answer.text()
    return f"{relay.url}/apps/{answer.json()['full_name']}/dev"


def test_an_issue_from_its_first_word_to_its_end(page, repository):
    page.goto(f"{repository}?tab=issues")
    page.get_by_role("link", name="New issue").click()
    page.get_by_label("Title").fill("Numbers are <refused>")
    page.get_by_label("Text, in Markdown").fill("Since *today*")
    page.get_by_role("button", name="Open issue").click()
    sees(page, "Numbers are <refused>", "h2")
    page.get_by_label("Comment, in Markdown").fill("Yes")
    page.get_by_role("button", name="Comment").click()
    page.wait_for_url("**#comment-*")
    page.get_by_text("React", exact=True).first.click()
    page.get_by_role("button", name="heart").first.click()
    page.locator("button[aria-pressed=true]", has_text="heart").first.wait_for()
    page.get_by_role("button", name="Close as completed").click()
    sees(page, "closed as completed")
    page.go_back()
    page.get_by_label("Comment, in Markdown").fill("After it")
    page.get_by_role("button", name="Comment").click()
    sees(page, "After it", COMMENT)


def test_settings_by_mouse(page, repository, chromium, relay):
    other = chromium.new_context(java_script_enabled=False)
    guest, handle = other.new_page(), name()
    guest.goto(f"{relay.url}/auth/sign-up")
    guest.get_by_label("Handle").fill(handle)
    guest.get_by_label("Password").fill(PASSWORD)
    guest.get_by_role("button", name="Create account").click()
    other.close()
    page.goto(repository)
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("link", name="Access").click()
    page.get_by_label("Handle").fill(handle)
    page.get_by_label("Role").select_option("write")
    page.get_by_role("button", name="Invite").click()
    page.get_by_role("button", name=f"Cancel the invitation of {handle}").wait_for()
    page.get_by_role("link", name="Checks").click()
    page.get_by_label("Approvals that a merge needs").fill("2")
    page.get_by_label("All threads must be resolved").check()
    page.get_by_role("button", name="Protect").click()
    sees(page, "approvals: 2 · threads are resolved")
    page.get_by_role("link", name="Lifecycle").click()
    page.get_by_role("button", name="Archive").click()
    page.get_by_text("archived", exact=True).first.wait_for()


def test_an_issue_by_keyboard_alone(page, repository):
    """Every control is reached by Tab, in the order of the page, and does its act by Enter or Space."""
    page.goto(f"{repository}?tab=issues&view=new")
    reach(page, "Title")
    page.keyboard.type("By keys")
    page.keyboard.press("Enter")
    sees(page, "By keys", "h2")
    reach(page, "Comment, in Markdown")
    page.keyboard.type("typed")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.wait_for_url("**#comment-*")
    sees(page, "typed", COMMENT)


def sees(page, text, where="main"):
    """Wait until the text is there: a form leads to a page that comes in its own time."""
    page.locator(where, has_text=text).first.wait_for()


def reach(page, label):
    """Press Tab until the control with this label has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.get_by_label(label).and_(page.locator(":focus")).count():
            return
    raise AssertionError(f"Tab does not reach {label}")
