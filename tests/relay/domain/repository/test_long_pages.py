"""Pages of what is long: they show a part of it and lead to the rest, so that no page holds up the others."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape

import httpx
import pytest

from relay.domain.repository import blamed, changes, code, talk
from tests.relay.conftest import Account
from tests.relay.domain.repository.test_pages import at, page
from tests.relay.histories import Repository, ok, own

Maker = Callable[..., Account]
Client = Callable[..., httpx.Client]


def numbered(count: int, word: str = "line") -> bytes:
    """A text of that many lines."""
    return "".join(f"{word} {number}\n" for number in range(1, count + 1)).encode()


@pytest.fixture
def mine(account: Maker, client: Client) -> Repository:
    return own(account, client, visibility="public")


def follow(http: httpx.Client, text: str, rel: str) -> str:
    """The page to which the link `next` or `prev` of a page leads."""
    address = re.search(rf'rel="{rel}" href="([^"]*)"', text)
    assert address is not None
    return page(http, unescape(address[1]))


def shown(text: str) -> list[int]:
    """The numbers of the first and the last line on a page."""
    numbers = [int(number) for number in re.findall(r'<tr id="?L(\d+)', text)]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    return [numbers[0], numbers[-1]]


def test_a_long_file_has_pages_of_lines(mine: Repository, client: Client) -> None:
    count, last = 2 * code.PAGE_LINES + 5, 2 * code.PAGE_LINES
    mine.seal({"long.txt": numbered(count)})
    stranger, address = client(), f"{at(mine)}/dev?tab=code&path=long.txt"
    text = page(stranger, address)
    assert shown(text) == [1, code.PAGE_LINES]
    assert f"Lines 1 to {code.PAGE_LINES} of {count}" in text
    assert 'rel="prev"' not in text
    text = follow(stranger, follow(stranger, text, "next"), "next")
    assert shown(text) == [last + 1, count]
    assert f"<td>line {count}\n" in text
    assert 'rel="next"' not in text
    assert shown(follow(stranger, text, "prev")) == [code.PAGE_LINES + 1, last]
    marked = page(stranger, f"{address}&lines={last}-{last + 1}")
    assert shown(marked) == [last - code.ABOVE, count]
    assert marked.count("class=marked") == 2
    for cursor in ("x", "WzBd", "Wzk5OTk5OTk5XQ"):  # [0], [99999999]
        page(stranger, f"{address}&cursor={cursor}", 422)


def test_a_line_that_is_longer_than_a_page_is_cut(mine: Repository, client: Client) -> None:
    mine.seal({"one.min": b"x;" * code.PAGE_CHARS + b"\nend\n"})
    text = page(client(), f"{at(mine)}/dev?tab=code&path=one.min")
    assert "The beginning of line 1 of 2" in text
    assert len(text) < 2 * code.PAGE_CHARS
    assert shown(follow(client(), text, "next")) == [2, 2]


def test_blame_has_pages_and_each_names_the_seal_of_its_first_line(mine: Repository) -> None:
    count = 2 * blamed.LINES + 1
    old = numbered(count)
    (first,) = mine.seal({"long.txt": old})
    (second,) = mine.seal({"long.txt": old.replace(b"line 7\n", b"other\n")})
    text = page(mine.http, f"{at(mine)}/dev?tab=code&view=blame&path=long.txt")
    assert shown(text) == [1, blamed.LINES]
    assert (text.count(f"{first[:8]}</a>"), text.count(f"{second[:8]}</a>")) == (2, 1)
    text = follow(mine.http, text, "next")
    assert shown(text) == [blamed.LINES + 1, 2 * blamed.LINES]
    assert (text.count(f"{first[:8]}</a>"), text.count(f"{second[:8]}</a>")) == (1, 0)
    assert shown(follow(mine.http, text, "next")) == [count, count]
    assert shown(follow(mine.http, text, "prev")) == [1, blamed.LINES]
    page(mine.http, f"{at(mine)}/dev?tab=code&view=blame&path=long.txt&cursor=Wzk5OTk5OTk5XQ", 422)


def test_a_difference_that_is_too_long_says_how_many_lines_it_has(mine: Repository) -> None:
    mine.seal({"long.txt": b"", "z.txt": b""})
    mine.seal({"long.txt": numbered(2 * changes.ROWS), "z.txt": numbered(3)})
    text = page(mine.http, f"{at(mine)}/dev?tab=code&seal={mine.head()}")
    assert text.count('<tr class="ins">') < changes.ROWS
    rest = 2 * changes.ROWS - text.count('<tr class="ins">')
    assert f"The difference has {rest} more lines, too many to show here." in text
    assert "z.txt" not in text
    assert "line 3" in follow(mine.http, text, "next")


def test_files_that_are_too_long_together_come_in_pages(mine: Repository) -> None:
    names = ["a.txt", "b.txt", "c.txt"]
    mine.seal({name: numbered(changes.ROWS // 2 - 10, name) for name in names})
    mine.branch("other", str(mine.head()))
    mine.seal({name: numbered(changes.ROWS // 2 - 10, "new") for name in names[1:]}, branch="other")
    for rest in (f"seal={mine.head()}", "view=compare&head=other"):
        text = page(mine.http, f"{at(mine)}/dev?tab=code&{rest}")
        assert "too many to show" not in text
        listed = re.findall(r'<section class="box" id="file-\d+" aria-label="([^"]*)">', text)
        while 'rel="next"' in text:
            text = follow(mine.http, text, "next")
            listed += re.findall(r'<section class="box" id="file-\d+" aria-label="([^"]*)">', text)
        assert listed == names[-len(listed) :]
        assert len(listed) >= 2


def test_a_line_of_a_difference_that_is_longer_than_a_page_is_not_shown(mine: Repository) -> None:
    mine.seal({"one.txt": b"x" * (changes.CHARS + 10)})
    text = page(mine.http, f"{at(mine)}/dev?tab=code&seal={mine.head()}")
    assert "more lines, too many to show here." in text
    assert "x" * 100 not in text


def test_a_long_conversation_ends_where_its_page_is_full(
    mine: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(talk, "CHARS", 2000)
    ok(mine.http.post(f"{mine.url}/issues", json={"title": "Long", "body": "Short"}))
    for number in range(5):
        body = f"comment-{number} " + "word " * 150
        ok(mine.http.post(f"{mine.url}/issues/1/comments", json={"body": body}))
    text = page(mine.http, f"{at(mine)}/dev?tab=issues&n=1")
    assert re.findall(r"comment-\d ", text) == ["comment-0 ", "comment-1 ", "comment-2 "]
    assert "svc issue view 1 --comments" in text
    for number in range(3):
        notes = f"notes-{number} " + "word " * 300
        body = {
            "version": f"v{number}",
            "seal_id": mine.head() or mine.seal({"a": b"a\n"})[0],
            "notes": notes,
        }
        ok(mine.http.post(f"{mine.url}/releases", json=body))
    text = page(mine.http, f"{at(mine)}/dev?tab=releases")
    assert re.findall(r"notes-\d ", text) == ["notes-2 ", "notes-1 "]
    assert "svc repo release view v0" in text


def test_texts_are_shown_as_they_are_once_the_page_took_too_long(
    mine: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    ok(mine.http.post(f"{mine.url}/issues", json={"title": "Slow", "body": "*first*"}))
    monkeypatch.setattr(talk, "SECONDS", -1.0)
    assert '<pre class="inside">*first*</pre>' in page(mine.http, f"{at(mine)}/dev?tab=issues&n=1")
    monkeypatch.undo()
    assert "<em>first</em>" in page(mine.http, f"{at(mine)}/dev?tab=issues&n=1")
