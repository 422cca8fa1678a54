"""Every kind of page in Chromium: axe finds nothing at three widths, light and dark, and nothing is wider
than the window. With SVC_SCREENSHOTS, a folder, pictures of all are kept there."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE
from tests.relay.auth import test_browser
from tests.relay.conftest import Relay
from tests.relay.histories import ok
from tests.relay.rich import Rich, build
from tests.relay.world import name

pytestmark = test_browser.pytestmark
chromium = test_browser.chromium
AXE = gzip.decompress((Path(__file__).parents[2] / "axe" / "axe.min.js.gz").read_bytes()).decode()
SIZES = ((360, "light"), (768, "dark"), (1280, "light"))
SHOTS = os.environ.get("SVC_SCREENSHOTS")
# Nothing is described but faults, and no selectors are made, which nobody reads.
RUN = """async () => (await axe.run({resultTypes: ["violations"], selectors: false})).violations.map(
    rule => [rule.id, rule.nodes.map(node => node.html)])"""
# Numbers each control that is shown; of radio buttons of one name the keyboard stops at the chosen one.
NUMBER = """() => {
    const all = [...document.querySelectorAll(
        "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]")];
    const stops = all.filter(control => control.type != "radio" || control.checked);
    const shown = stops.filter(control => control.checkVisibility());
    shown.forEach((control, number) => control.dataset.number = number);
    return shown.map(control => control.outerHTML.slice(0, 120));
}"""
FOCUSED = """() => {
    const focused = document.activeElement;
    const style = getComputedStyle(focused);
    return [focused == document.body, focused.dataset.number ?? "", style.outlineStyle != "none"];
}"""
TOO_WIDE = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def rich(relay: Relay) -> Iterator[Rich]:
    rich = build(relay, name())
    yield rich
    rich.close()


@pytest.fixture
def tab(chromium: Any, rich: Rich) -> Iterator[Any]:
    """A tab of the owner's browser."""
    yield from tab_of_owner(chromium, rich, scripts=True)


@pytest.fixture
def plain_tab(chromium: Any, rich: Rich) -> Iterator[Any]:
    """A tab of the owner's browser that runs no scripts."""
    yield from tab_of_owner(chromium, rich, scripts=False)


def tab_of_owner(chromium: Any, rich: Rich, *, scripts: bool) -> Iterator[Any]:
    context = chromium.new_context(java_script_enabled=scripts)
    for cookie in rich.owner.cookies.jar:
        context.add_cookies(
            [{"name": cookie.name, "value": cookie.value, "domain": "127.0.0.1", "path": cookie.path}]
        )
    tab = context.new_page()
    tab.set_default_timeout(PATIENCE * 1000)
    yield tab
    context.close()


def findings(tab: Any, address: str, picture: str) -> list[Any]:
    """What is wrong with the page at an address, at each size."""
    faults = []
    tab.goto(address)
    tab.evaluate(AXE)
    for width, scheme in SIZES:
        tab.set_viewport_size({"width": width, "height": 800})
        tab.emulate_media(color_scheme=scheme)
        if SHOTS:
            tab.screenshot(path=str(Path(SHOTS) / f"{picture}-{width}-{scheme}.png"), full_page=True)
        faults += [(picture, width, scheme, *fault) for fault in tab.evaluate(RUN)]
        if tab.evaluate(TOO_WIDE):
            faults.append((picture, width, scheme, "wider than the window"))
    return faults


def test_axe_finds_nothing_on_any_page(rich: Rich, tab: Any) -> None:
    faults = []
    for picture, path in rich.pages().items():
        faults += findings(tab, f"{rich.relay.url}{path}", picture)
    assert not faults, "\n".join(map(str, faults))


def test_axe_finds_nothing_on_pages_of_strangers(rich: Rich, tab: Any) -> None:
    tab.context.clear_cookies()
    pages = rich.pages()
    seen = ("public", "overview", "blame", "compare", "issue", "issue-new", "proposal", "proposal-new")
    faults = []
    for picture in seen:
        faults += findings(tab, f"{rich.relay.url}{pages[picture]}", f"stranger-{picture}")
    for picture in ("login", "sign-up"):
        faults += findings(tab, f"{rich.relay.url}/auth/{picture}", picture)
    assert not faults, "\n".join(map(str, faults))


@pytest.mark.parametrize(
    "page",
    [
        *(
            "start",
            "overview",
            "subfolder",
            "source",
            "compare",
            "seal",
            "issues-filtered",
            "issue",
            "issue-new",
        ),
        *("proposal", "proposal-thread", "proposal-new", "releases", "settings-access"),
        *(
            "settings-checks",
            "settings-listing",
            "settings-lifecycle",
            "settings-delete",
            "tokens",
            "ways",
            "keys",
            "devices",
        ),
    ],
)
def test_every_control_is_reached_by_tab_alone_and_shows_that_it_is(
    rich: Rich, plain_tab: Any, page: str
) -> None:
    tab = plain_tab
    tab.goto(f"{rich.relay.url}{rich.pages()[page].partition('#')[0]}")
    controls = tab.evaluate(NUMBER)
    reached, unmarked = set(), []
    for _ in range(2 * len(controls) + 10):
        tab.keyboard.press("Tab")
        is_over, number, is_marked = tab.evaluate(FOCUSED)
        if is_over or number in reached:
            break
        if number:
            reached.add(number)
            unmarked += [] if is_marked else [controls[int(number)]]
    missed = [html for number, html in enumerate(controls) if str(number) not in reached]
    assert controls and (missed, unmarked) == ([], [])


def test_a_drawing_of_the_repository_is_a_picture_and_elsewhere_its_text(rich: Rich, tab: Any) -> None:
    tab.goto(f"{rich.relay.url}{rich.at}")
    logo = tab.get_by_alt_text("Logo")
    assert logo.evaluate("picture => picture.complete && picture.naturalWidth") == 36
    tab.goto(logo.evaluate("picture => picture.src"))
    assert tab.locator("svg").count() == 0
    assert tab.locator("pre").inner_text().startswith("<svg")


def test_a_thread_begins_at_the_number_of_a_line(rich: Rich, plain_tab: Any) -> None:
    tab = plain_tab
    tab.goto(f"{rich.relay.url}{rich.pages()['proposal-files']}")
    tab.locator("table.diff").get_by_role("link", name="21", exact=True).click()
    form = tab.locator("#new-thread")
    assert form.get_by_label("Lines", exact=True).input_value() == "21"
    form.get_by_label("to", exact=True).fill("22")
    form.get_by_label("Comment, in Markdown").fill("Why the *middle* alone?")
    form.get_by_role("button", name="Comment").click()
    tab.wait_for_url("**#thread-*")
    tab.locator("table.diff em", has_text="middle").wait_for()
    assert tab.locator("#new-thread").count() == 0


def test_a_page_that_waits_goes_on_by_itself(rich: Rich, plain_tab: Any) -> None:
    """The browser follows the header without scripts, and stays where the proposal is once that happened."""
    repo, tab = rich.repo, plain_tab
    body = {"title": "Shift in winter", "head": "winter", "base": "main"}
    number = ok(repo.http.post(f"{repo.url}/proposals", json=body))["number"]
    proposal = f"{rich.relay.url}{rich.at}/dev?tab=issues&n={number}"
    tab.goto(f"{proposal}&view=merge")
    tab.get_by_role("link", name="Wait here until it is done").click()
    tab.get_by_text("Look 1 of 60").wait_for()
    ok(repo.http.patch(f"{repo.url}/proposals/{number}", json={"state": "closed"}))
    tab.wait_for_url(proposal)
    tab.locator(".chip", has_text="closed").wait_for()
