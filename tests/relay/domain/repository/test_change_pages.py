"""Pages of differences: comparisons, seals, proposals with their threads, and who wrote which line."""

from __future__ import annotations

import re
from collections.abc import Callable

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localstore.core.diff.line_diff import unified_diff
from relay.db.paging import Cursor
from relay.domain.history.history import WRONG_CURSOR
from relay.domain.repository import changes
from relay.domain.repository.changes import diff_lines
from tests.relay.conftest import Account, Relay
from tests.relay.domain.git.test_refused import hide_path
from tests.relay.domain.repository.test_pages import at, page
from tests.relay.histories import Repository, ok, own
from tests.relay.proposing import Proposing, proposing

Maker = Callable[..., Account]
Client = Callable[..., httpx.Client]


@pytest.fixture
def mine(account: Maker, client: Client) -> Repository:
    """A public repository with two seals, and a branch `side` beside the second."""
    mine = own(account, client, visibility="public")
    (first,) = mine.seal({"a.txt": b"one\ntwo\nthree\n", "b.bin": bytes(9)})
    mine.seal({"a.txt": b"one\n2 <b>\nthree\n", "b.bin": bytes(range(9))}, messages=["second"])
    mine.branch("side", first)
    mine.seal({"c.txt": b"side\n"}, branch="side", messages=["third"])
    return mine


@pytest.fixture
def world(relay: Relay, account: Maker, client: Client) -> Proposing:
    """A public repository with proposal #1, which adds line 41 to a.txt."""
    world = proposing(relay, account, client)
    world.propose()
    ok(world.http.patch(world.repo.url, json={"visibility": "public"}))
    return world


def rows(text: str) -> list[tuple[str, str, str]]:
    """(old line, new line, text) of every line of a difference on a page."""
    return re.findall(r"<td>(\d*)</td><td>(\d*)</td><td><code>(.*?)</code>", text)


def test_a_seal_shows_its_lines_with_their_numbers(mine: Repository, client: Client) -> None:
    text = page(mine.http, f"{at(mine)}/dev?tab=code&seal={mine.head()}")
    assert ("2", "", "-two") in rows(text)
    assert ("", "2", "+2 &lt;b&gt;") in rows(text)
    assert ("3", "3", " three") in rows(text)
    assert "Not a text." in text


def test_branches_are_compared_from_where_they_parted(mine: Repository, client: Client) -> None:
    text = page(mine.http, f"{at(mine)}/dev?tab=code&view=compare&head=side")
    assert "1 seal ahead and 1 behind main" in text
    assert "c.txt" in text
    assert "a.txt" not in text
    assert "svc diff main...side" in text
    assert "Name what to compare" in page(mine.http, f"{at(mine)}/dev?tab=code&view=compare")


@pytest.mark.parametrize("head", ["nothing", "0" * 64, "nobody:main", "<b>", "../x"])
def test_what_cannot_be_compared_says_so(mine: Repository, head: str) -> None:
    text = page(mine.http, f"{at(mine)}/dev?tab=code&view=compare&head={head}")
    assert "There is no such branch, tag or seal here." in text
    assert "<b>" not in text.partition("subject")[2]


def test_strangers_are_asked_to_sign_in(mine: Repository, client: Client) -> None:
    for rest in ("view=compare&head=side", "view=blame&path=a.txt"):
        text = page(client(), f"{at(mine)}/dev?tab=code&{rest}")
        assert "Sign in</a> to see" in text
        assert rows(text) == []


def test_strangers_see_what_a_public_seal_changed(mine: Repository, client: Client) -> None:
    text = page(client(), f"{at(mine)}/dev?tab=code&seal={mine.head()}")
    assert ("", "2", "+2 &lt;b&gt;") in rows(text)
    assert "signature verifies" in text
    assert '<span class="ins">+1</span> <span class="del">−1</span>' in text
    assert 'href="#file-2"' in text


def test_many_changed_files_come_in_pages(mine: Repository) -> None:
    mine.branch("many", "main")
    mine.seal({f"m/{number:03}": b"x\n" for number in range(310)}, branch="many")
    text = page(mine.http, f"{at(mine)}/dev?tab=code&view=compare&head=many")
    address = re.search(r'rel="next" href="([^"]*)"', text)
    assert address is not None
    assert "300 files changed, and more" in text
    assert "m/309" in page(mine.http, address[1].replace("&amp;", "&"))


def test_a_cursor_of_another_comparison_shows_none(mine: Repository, client: Client) -> None:
    """A cursor names seals; a page under the heading of one seal must not show what another one changed."""
    (good,) = mine.seal({"good.txt": b"good\n"}, branch="side")
    (other,) = mine.seal({"other.txt": b"other\n"}, branch="side")
    cursors = {
        Cursor.write("", other, 0): changes.ANOTHER,
        Cursor.write(mine.head(), other, 0): WRONG_CURSOR,
    }
    for cursor, sentence in cursors.items():
        text = page(mine.http, f"{at(mine)}/dev?tab=code&seal={good}&cursor={cursor}")
        assert "other.txt" not in text
        assert sentence in text
    own_cursor = Cursor.write("", good, 0)
    assert "good.txt" in page(mine.http, f"{at(mine)}/dev?tab=code&seal={good}&cursor={own_cursor}")


def test_a_cursor_of_another_proposal_shows_none(world: Proposing, client: Client) -> None:
    repo = world.repo
    (other,) = repo.seal({"other.txt": b"other\n"}, branch="main")
    shown = ok(world.http.get(f"{repo.url}/proposals/1"))
    cursor = Cursor.write(shown["base_seal"], other, 0)
    text = page(world.http, f"{at(repo)}/dev?tab=issues&n=1&view=files&cursor={cursor}")
    assert "other.txt" not in text
    assert changes.ANOTHER in text


def test_blame_names_the_seal_of_each_line(mine: Repository) -> None:
    text = page(mine.http, f"{at(mine)}/dev?tab=code&view=blame&path=a.txt")
    assert text.count('class="first"') == 3
    assert text.count(str(mine.head())[:8] + "</a>") == 1
    assert "2 &lt;b&gt;" in text
    assert "Only texts" in page(mine.http, f"{at(mine)}/dev?tab=code&view=blame&path=b.bin")
    page(mine.http, f"{at(mine)}/dev?tab=code&view=blame&path=nothing", 404)


def test_a_proposal_shows_its_files_with_threads_below_their_lines(world: Proposing) -> None:
    for line, body in ((41, "why **this**?"), (1, "and <i onclick=x>here</i>?")):
        asked = {
            "path": "a.txt",
            "start": line,
            "end": line,
            "seal_id": world.repo.head("topic"),
            "body": body,
        }
        ok(world.http.post(f"{world.url}/1/threads", json=asked))
    where = f"/apps/{world.repo.body['full_name']}/dev?tab=issues&n=1"
    text = page(world.http, where)
    assert "2 open" in text
    for thread in ok(world.http.get(f"{world.url}/1/threads"))["items"]:
        assert f"view=files#thread-{thread['id']}" in text
    assert "why **this**?" in text
    text = page(world.http, f"{where}&view=files")
    assert ("", "41", "+more") in rows(text)
    below = text.partition("+more</code>")[2]
    assert "why <strong>this</strong>?" in below.partition("</table>")[0]
    elsewhere = text.partition("Threads on lines that this page does not show")[2]
    assert "here</i>?" in elsewhere
    assert "onclick" not in elsewhere


def test_reviews_and_comments_stand_in_the_order_of_time(world: Proposing) -> None:
    said = ("first", "second", "third", "fourth")
    for place, body in enumerate(said):
        if place % 2:
            review = {"verdict": "comment", "body": body}
            ok(world.http.post(f"{world.url}/1/reviews", json=review))
        else:
            ok(world.http.post(f"{world.repo.url}/issues/1/comments", json={"body": body}))
    text = page(world.http, f"/apps/{world.repo.body['full_name']}/dev?tab=issues&n=1")
    places = [text.index(f"<p>{body}</p>") for body in said]
    assert places == sorted(places)


def test_a_closed_proposal_still_shows_what_it_changed(world: Proposing) -> None:
    assert ok(world.patch(state="closed"))["state"] == "closed"
    text = page(world.http, f"/apps/{world.repo.body['full_name']}/dev?tab=issues&n=1&view=files")
    assert "+more" in text


def test_only_proposals_have_files(world: Proposing) -> None:
    where = f"/apps/{world.repo.body['full_name']}/dev?tab=issues&view=files&n="
    for number in ("9", "x", "-1", "\u0661"):
        page(world.http, where + number, 404)


def test_hidden_paths_are_in_no_difference(
    relay: Relay, mine: Repository, account: Maker, client: Client
) -> None:
    mine.seal({"secret/plan.txt": b"plan\n", "open.txt": b"open\n"})
    hide_path(relay, mine)
    stranger = client(account())
    for rest in (f"seal={mine.head()}", "view=compare&base=side&head=main"):
        text = page(stranger, f"{at(mine)}/dev?tab=code&{rest}")
        assert "open.txt" in text
        assert "secret" not in text
    page(stranger, f"{at(mine)}/dev?tab=code&view=blame&path=secret/plan.txt", 404)


def test_many_threads_and_answers_are_said_to_be_more(
    world: Proposing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "THREADS", 2)
    monkeypatch.setattr(changes, "COMMENTS", 1)
    asked = {"path": "a.txt", "start": 41, "end": 41, "seal_id": world.repo.head("topic")}
    ids = [
        ok(world.http.post(f"{world.url}/1/threads", json={**asked, "body": f"n{n}"}))["id"] for n in range(3)
    ]
    ok(world.http.post(f"{world.url}/1/threads/{ids[0]}/comments", json={"body": "answer"}))
    text = page(world.http, f"/apps/{world.repo.body['full_name']}/dev?tab=issues&n=1&view=files")
    assert "n1" in text and "n2" not in text
    assert "and 1 more answer" in text
    assert "svc pr threads 1" in text
    ok(world.http.patch(f"{world.url}/1/threads/{ids[0]}", json={"state": "resolved"}))
    text = page(world.http, f"/apps/{world.repo.body['full_name']}/dev?tab=issues&n=1&view=files")
    assert "n0" not in text and "n2" in text


def test_who_has_no_comparison_gets_no_threads_with_it(world: Proposing) -> None:
    asked = {"path": "a.txt", "start": 41, "end": 41, "seal_id": world.repo.head("topic"), "body": "a word"}
    ok(world.http.post(f"{world.url}/1/threads", json=asked))
    text = page(world.client(), f"/apps/{world.repo.body['full_name']}/dev?tab=issues&n=1&view=files")
    assert "Sign in</a> to see" in text
    assert "a word" not in text


def test_what_changed_within_a_line_is_marked(mine: Repository, client: Client) -> None:
    """Only where as many lines came as went, and not where the two have little in common."""
    mine.seal({"m.txt": b"if a >= b:\n    <i>\n-\nalpha\nlast\n"})
    (seal,) = mine.seal({"m.txt": b"if a > b:\n    <b>\n-\nomega 9\nlast\nmore\n"})
    with client() as http:
        text = http.get(f"{at(mine)}/dev?tab=code&seal={seal}").text
    rows = [row.partition("<code>")[2].partition("</code>")[0] for row in text.split("<tr class=")[1:]]
    assert rows[1:5] == [
        "-if a &gt;<mark>=</mark> b:",
        "-    &lt;<mark>i</mark>&gt;",
        "+if a &gt; b:",
        "+    &lt;<mark>b</mark>&gt;",
    ]
    assert "<mark>" not in "".join(rows[5:])


def test_long_lines_are_not_searched_for_what_changed() -> None:
    old, new = "a" * 600, "a" * 599
    rows = diff_lines(f"@@ -1 +1 @@\n-{old}\n+{new}b\n")
    assert [row.changed for row in rows] == [None] * 3


def test_a_lone_carriage_return_begins_no_line(mine: Repository) -> None:
    mine.seal({"cr.txt": b"one\rstill one\ntwo\n"})
    mine.seal({"cr.txt": b"one\rstill one\n2\n"})
    text = page(mine.http, f"{at(mine)}/dev?tab=code&view=blame&path=cr.txt")
    assert (text.count('<tr id="L'), text.count('class="first"')) == (2, 2)
    assert f"{str(mine.head())[:8]}</a>" in text.partition('id="L2"')[2]


def test_an_empty_file_is_called_empty(mine: Repository) -> None:
    mine.seal({"empty.txt": b""})
    assert "Empty." in page(mine.http, f"{at(mine)}/dev?tab=code&seal={mine.head()}")


def test_what_the_node_does_not_offer_is_on_no_page(
    mine: Repository, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = relay.node.config.flags.on
    monkeypatch.setattr(
        type(relay.node.config.flags), "on", lambda self, name: name != "TR_REPO_SEALING" and on(name)
    )
    for rest in ("view=compare&head=side", "view=blame&path=a.txt", f"seal={mine.head()}"):
        text = page(mine.http, f"{at(mine)}/dev?tab=code&{rest}")
        assert "this node does not offer it" in text
        assert rows(text) == []


TEXTS = st.lists(st.sampled_from(["a", "b", "-c", "+d", "\\e", "@@ -1 +1 @@", "--- x", ""]), max_size=12)


@given(TEXTS, TEXTS, st.booleans())
def test_numbers_are_those_of_the_two_texts(old: list[str], new: list[str], final: bool) -> None:
    """Whatever the lines look like: a sign, a hunk, a header, nothing."""
    end = "\n" if final else ""
    before, after = "\n".join(old) + end, "\n".join(new) + end
    patch = unified_diff(before.encode(), after.encode(), "a", "a")
    for row in diff_lines(patch.decode()):
        if row.old is not None:
            assert before.split("\n")[row.old - 1] == row.text[1:]
        if row.new is not None:
            assert after.split("\n")[row.new - 1] == row.text[1:]
