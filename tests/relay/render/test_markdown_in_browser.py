"""Nothing of a stranger's Markdown runs in a browser, or loads anything from another site, even without the
policy that pages are sent with."""

from __future__ import annotations

import random
from typing import Any

from relay.render.markdown import to_html
from tests.depth import rounds
from tests.patience import PATIENCE
from tests.relay.auth import test_browser
from tests.relay.render.test_markdown import HOSTILE, LINKS, MARKS

pytestmark = test_browser.pytestmark
chromium = test_browser.chromium
TEXTS, ON_A_PAGE = rounds(400, 5000), 100
SITE = "http://node.test"
# What the hostile pieces would call or move to, if they ran.
WATCH = "window.ran = []; window.alert = (what) => window.ran.push(what);"


def mixtures() -> list[str]:
    """Each hostile text by itself, then mixtures of them with marks of Markdown and HTML."""
    chance = random.Random(30)
    pieces = [*HOSTILE, *MARKS]
    mixed = ["".join(chance.choices(pieces, k=chance.randint(2, 12))) for _ in range(TEXTS)]
    return [*HOSTILE, *mixed]


def test_nothing_of_it_runs(chromium: Any) -> None:
    """Every element that takes an event is clicked and focused, too."""
    texts, context = mixtures(), chromium.new_context()
    asked: list[str] = []
    pages: list[str] = []

    def answer(route: Any) -> None:
        url = route.request.url
        if url == f"{SITE}/":
            route.fulfill(body=pages[-1], content_type="text/html; charset=utf-8")
        else:
            asked.append(url)
            route.fulfill(status=404)

    context.route("**", answer)
    context.add_init_script(WATCH)
    tab = context.new_page()
    tab.set_default_timeout(PATIENCE * 1000)
    for first in range(0, len(texts), ON_A_PAGE):
        part = texts[first : first + ON_A_PAGE]
        pages.append("<!doctype html>" + "".join(f"<div>{to_html(text, LINKS)}</div>" for text in part))
        tab.goto(f"{SITE}/")
        tab.evaluate(
            """() => {
                document.addEventListener("click", event => event.preventDefault());
                for (const element of document.querySelectorAll("body *")) {
                    element.focus();
                    element.click();
                    element.dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
                }
            }"""
        )
        assert tab.evaluate("window.ran") == [], part
        assert tab.url.split("#")[0] == f"{SITE}/", part
        assert tab.evaluate("getComputedStyle(document.body).display") == "block", part
    elsewhere = {url for url in asked if not url.startswith((f"{SITE}{LINKS.raw}", f"{SITE}/favicon.ico"))}
    assert not elsewhere
    context.close()


def test_the_browser_would_run_what_is_not_cleaned(chromium: Any) -> None:
    context = chromium.new_context()
    context.add_init_script(WATCH)
    tab = context.new_page()
    tab.set_content("<svg/onload=alert(1)>")
    tab.wait_for_function("window.ran.length == 1")
    context.close()
