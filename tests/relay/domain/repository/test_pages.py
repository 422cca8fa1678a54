"""Pages of repositories: what they show, to whom, and that they decide nothing themselves."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from urllib.parse import urljoin

import httpx
import pytest

from relay.db.paging import Cursor
from relay.domain.repository.code import FOLDER_ROWS
from tests.relay.conftest import Account, Relay
from tests.relay.domain.git.test_refused import delete, hide_path, kill, make_private, suspend
from tests.relay.histories import Repository, compared, ok, own

Maker = Callable[..., Account]
Client = Callable[..., httpx.Client]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
FILES = {
    "README.md": b"# Hello\n\nSee [the code](src/a.py) and ![p](p.png) <script>alert(1)</script>\n",
    "src/a.py": b"def first():\n    return 1\n\n\nsecond = '<b>'\n",
    "p.png": PNG,
    "data.bin": bytes(range(256)),
    "<b>&.txt": b"odd name\n",
}


@pytest.fixture
def mine(account: Maker, client: Client) -> Repository:
    """A public repository with two seals."""
    mine = own(account, client, visibility="public", description="For <everybody>")
    changes = (FILES, {"src/a.py": b"def first():\n    return 2\n"})
    mine.seal(*changes, messages=["first", "second <b>\n\nWith a body."])
    return mine


def page(http: httpx.Client, path: str, status: int = 200) -> str:
    answer = http.get(path)
    assert answer.status_code == status, (path, answer.status_code, answer.text[:300])
    assert answer.headers["content-type"].startswith("text/html")
    assert "script" not in answer.headers["content-security-policy"].replace("default-src", "")
    assert "<script" not in answer.text
    return answer.text


def at(mine: Repository) -> str:
    return f"/apps/{mine.body['full_name']}"


def test_a_stranger_sees_what_it_is_and_how_to_get_it(mine: Repository, client: Client) -> None:
    text = page(client(), at(mine))
    assert text.count("<h1") == 2  # the name, and the title of the README
    assert '<h1 id="user-hello">Hello</h1>' in text
    assert "For &lt;everybody&gt;" in text
    assert f"svc repo clone {mine.body['full_name']}" in text
    assert f"/{mine.body['full_name']}.git" in text


def test_the_overview_names_the_latest_seal(mine: Repository, client: Client) -> None:
    text = page(client(), f"{at(mine)}/dev")
    assert str(mine.head())[:12] in text
    assert "second &lt;b&gt;" in text


def test_links_and_images_of_a_readme_lead_to_the_same_seal(mine: Repository, client: Client) -> None:
    http, text = client(), page(client(), f"{at(mine)}/dev")
    link = unescape(text.partition('See <a href="')[2].partition('"')[0])
    assert f"at={mine.head()}" in link
    assert "return" in page(http, link)
    image = unescape(text.partition('<img src="')[2].partition('"')[0])
    answer = http.get(image)
    assert (answer.content, answer.headers["content-type"]) == (PNG, "image/png")


def test_a_folder_lists_its_files_and_each_is_shown(mine: Repository, client: Client) -> None:
    http = client()
    text = page(http, f"{at(mine)}/dev?tab=code")
    rows = text.partition("<tbody>")[2].partition("</tbody>")[0].split("<tr")[1:]
    listed = [unescape(row.partition("</a>")[0].rpartition(">")[2]) for row in rows]
    assert listed == ["src/", "<b>&.txt", "README.md", "data.bin", "p.png"]
    for row in rows:
        assert http.get(urljoin(f"{at(mine)}/dev?tab=code", unescape(row.split('"')[1]))).status_code == 200
    assert "<tr id=L1>" in page(http, f"{at(mine)}/dev?tab=code&path=src/a.py")
    assert "odd name" in page(http, f"{at(mine)}/dev?tab=code&path=%3Cb%3E%26.txt")
    assert "256 bytes" in page(http, f"{at(mine)}/dev?tab=code&path=data.bin")
    assert 'alt="p.png"' in page(http, f"{at(mine)}/dev?tab=code&path=p.png")
    assert "# Hello" in page(http, f"{at(mine)}/dev?tab=code&path=README.md&plain=1")
    assert 'class="prose"' in page(http, f"{at(mine)}/dev?tab=code&path=README.md")


def test_a_long_folder_has_pages(account: Maker, client: Client) -> None:
    mine = own(account, client, visibility="public")
    names = sorted(f"f{number}.txt" for number in range(FOLDER_ROWS + 2))
    mine.seal({"README.md": b"# Long\n", **{f"many/{name}": b"x\n" for name in names}, "many/a/x": b"y\n"})
    mine.seal({"many/readme.md": b"# Of many\n"})
    http, address = client(), f"{at(mine)}/dev?tab=code&path=many"
    first = page(http, address)
    assert first.count("<tr") == FOLDER_ROWS + 1  # with the head
    assert ">a/</a>" in first and f">{names[-1]}</a>" not in first
    assert "Of many" in first
    onward = first.partition('rel="next" href="')[2].partition('"')[0]
    assert f"More of the {FOLDER_ROWS + 4} entries" in first
    second = page(http, unescape(onward))
    assert [f">{name}</a>" in second for name in (*names[-4:], "readme.md")] == [False, *[True] * 4]
    assert "Of many" not in second.partition("</table>")[2]
    assert 'rel="next"' not in second
    page(http, f"{address}&cursor=x", 422)
    page(http, f"{address}&cursor={Cursor.write(-1)}", 422)
    assert "This folder is empty" in page(http, f"{address}&cursor={Cursor.write(10**6)}")


def test_lines_are_marked(mine: Repository, client: Client) -> None:
    text = page(client(), f"{at(mine)}/dev?tab=code&path=src/a.py&lines=2-9")
    assert "<tr id=L1>" in text
    assert "<tr id=L2 class=marked>" in text


def test_time_travel_goes_from_seal_to_seal_of_a_path(mine: Repository, client: Client) -> None:
    mine.seal({"p.png": None}, {"src/a.py": b"third = 3\n"}, {"src/a.py": None, "b.txt": b"b\n"})
    http, view = client(), f"{at(mine)}/dev?tab=code&view=travel"
    newest = page(http, f"{view}&path=src/a.py")
    assert "This seal deleted it." in newest and newest.count("<li>") == 4 and 'rel="next"' not in newest

    def older(text: str) -> str:
        (link,) = re.findall(r'<a href="([^"]*)" rel="prev">', text)
        return page(http, unescape(link))

    third = older(newest)
    assert "third = " in third and 'rel="next"' in third
    second = older(third)
    first = older(second)
    assert ("return" in second, "second" in second.partition("<table")[2]) == (True, False)
    assert "second" in first.partition("<table")[2] and 'rel="prev"' not in first
    for text in (newest, third, second, first):
        assert text.count('aria-current="page"') == 2  # the tab, and the stop
    assert ">src/</a>" in older(page(http, view)), "folders too"
    page(http, f"{view}&path=src/a.py&seal={'0' * 64}", 404)
    page(http, f"{view}&path=nosuch", 404)


def test_a_node_without_the_time_machine_offers_none(
    mine: Repository, client: Client, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    http, code = client(), f"{at(mine)}/dev?tab=code"
    flags = relay.node.config.flags
    assert "Time travel" in page(http, code)
    assert http.get("/api/v1/client-config").json()["flags"]["TR_TIME_MACHINE_ENABLED"] is True
    on = flags.on
    monkeypatch.setattr(type(flags), "on", lambda self, name: name != "TR_TIME_MACHINE_ENABLED" and on(name))
    assert "ravel" not in page(http, code)
    page(http, f"{code}&view=travel", 404)


def test_a_seal_at_an_address_shows_what_was_there_then(mine: Repository, client: Client) -> None:
    http = client()
    commits = ok(http.get(f"{mine.url}/commits"))["items"]
    old = commits[-1]["id"]
    text = page(http, f"{at(mine)}/dev?tab=code&at={old}&path=src/a.py")
    assert "second" in text
    assert "Permanent link" not in text
    assert "second" not in page(http, f"{at(mine)}/dev?tab=code&path=src/a.py").partition("<table")[2]


def test_the_history_of_a_path_and_its_seals(mine: Repository, client: Client) -> None:
    http = client()
    whole = page(http, f"{at(mine)}/dev?tab=code&view=history")
    assert whole.count('class="sealed"') == 2
    assert page(http, f"{at(mine)}/dev?tab=code&view=history&path=p.png").count('class="sealed"') == 1
    text = page(http, f"{at(mine)}/dev?tab=code&seal={mine.head()}")
    assert "signature verifies" in text
    assert "With a body." in text
    assert "return 2" in text  # what it changed


def test_refs_are_offered_and_shown(mine: Repository, client: Client) -> None:
    mine.branch("side", str(mine.head()))
    text = page(client(), f"{at(mine)}/dev?tab=code&at=side")
    assert '<option value="side" selected>' in text


@pytest.mark.parametrize(
    "rest",
    [
        "/dev?tab=nothing",
        "/dev?tab=code&path=nothing",
        "/dev?tab=code&path=src/a.py/x",
        "/dev?tab=code&path=../x",
        "/dev?tab=code&at=nothing",
        "/dev?tab=code&at=" + "0" * 64,
        "/dev?tab=code&seal=" + "0" * 64,
        "/dev?tab=code&seal=x",
        "/nothing",
        "/dev/nothing",
    ],
)
def test_what_is_not_there_is_the_one_page(mine: Repository, client: Client, rest: str) -> None:
    missing = client().get("/apps/nobody/nothing")
    assert (missing.status_code, "Not found" in missing.text) == (404, True)
    assert compared(client().get(at(mine) + rest)) == compared(missing)


@pytest.mark.parametrize("close", [suspend, kill, delete, make_private])
def test_what_is_hidden_is_the_same_page(
    relay: Relay, mine: Repository, client: Client, close: Callable[[Relay, Repository], None]
) -> None:
    close(relay, mine)
    missing = compared(client().get("/apps/nobody/nothing"))
    for path in (at(mine), f"{at(mine)}/dev", f"{at(mine)}/dev?tab=code", f"/lib/{mine.body['full_name']}"):
        assert compared(client().get(path)) == missing


def test_an_unknown_address_in_a_browser_is_the_same_page_and_json_for_programs(client: Client) -> None:
    http = client()
    missing = compared(http.get("/apps/nobody/nothing"))
    assert compared(http.get("/nothing", headers={"Accept": "text/html,*/*"})) == missing
    assert http.get("/nothing").headers["content-type"] == "application/problem+json"
    api = http.get("/api/v1/nothing", headers={"Accept": "text/html"})
    assert api.headers["content-type"] == "application/problem+json"


def test_hidden_paths_are_on_no_page(relay: Relay, mine: Repository, client: Client) -> None:
    mine.seal({"secret/plan.txt": b"plan\n"})
    assert "secret" in page(client(), f"{at(mine)}/dev?tab=code")
    hide_path(relay, mine)
    assert "secret" not in page(client(), f"{at(mine)}/dev?tab=code")
    page(client(), f"{at(mine)}/dev?tab=code&path=secret", 404)
    page(client(), f"{at(mine)}/dev?tab=code&path=secret/plan.txt", 404)
    assert "change 1" not in page(client(), f"{at(mine)}/dev?tab=code&view=history&path=secret")


@pytest.mark.parametrize("prefix", ["lib", "app", "model"])
def test_another_kind_and_another_spelling_lead_to_the_address_of_today(
    mine: Repository, client: Client, prefix: str
) -> None:
    full = mine.body["full_name"]
    answer = client().get(f"/{prefix}/{full}/dev?tab=code")
    assert (answer.status_code, answer.headers["location"]) == (301, f"{at(mine)}/dev?tab=code")
    assert client().get(f"/apps/{full.upper()}").headers["location"] == at(mine)


def test_a_former_name_leads_to_the_new_one(mine: Repository, client: Client) -> None:
    before = at(mine)
    ok(mine.http.patch(mine.url, json={"name": "renamed"}))
    answer = client().get(before)
    assert answer.status_code == 301
    assert answer.headers["location"].endswith("/renamed")


def test_an_empty_repository_says_what_to_do(account: Maker, client: Client) -> None:
    mine = own(account, client, visibility="public")
    assert "svc push" in page(client(), f"{at(mine)}/dev")
    assert "svc push" in page(client(), f"{at(mine)}/dev?tab=code")
    page(client(), at(mine))


def test_a_page_is_not_sent_again_unless_it_changed(mine: Repository, client: Client) -> None:
    http, path = client(), f"{at(mine)}/dev"
    first = http.get(path)
    again = http.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    mine.seal({"new.txt": b"new\n"})
    assert http.get(path, headers={"If-None-Match": first.headers["etag"]}).status_code == 200


def test_a_page_is_compressed_for_who_takes_that(mine: Repository, client: Client) -> None:
    http, path = client(), f"{at(mine)}/dev"
    plain = http.get(path, headers={"Accept-Encoding": "identity"})
    packed = http.get(path, headers={"Accept-Encoding": "br, gzip;q=0.5"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(plain.content)
    assert packed.content == plain.content
    assert "Accept-Encoding" in plain.headers["vary"]
    for tag in (plain.headers["etag"], packed.headers["etag"]):
        assert http.get(path, headers={"If-None-Match": tag}).status_code == 304
    assert "content-encoding" not in http.get(path, headers={"Accept-Encoding": "gzip;q=0"}).headers


def test_a_file_that_keeps_a_lexer_busy_is_shown_plain(mine: Repository, client: Client) -> None:
    mine.seal({"Makefile": b"(" * 30_000})
    assert "((((" in page(client(), f"{at(mine)}/dev?tab=code&path=Makefile")


def test_the_first_page_lists_public_repositories_alone(
    mine: Repository, account: Maker, client: Client
) -> None:
    hidden = own(account, client)
    text = page(client(), "/")
    assert mine.body["full_name"] in text
    assert hidden.body["full_name"] not in text


def test_issues_are_listed_filtered_and_read(mine: Repository, client: Client) -> None:
    ok(mine.http.post(f"{mine.url}/labels", json={"name": "bug", "color": "ff0000"}))
    hostile = "# Title\n\nSee #1 <script>alert(1)</script>\n"
    ok(
        mine.http.post(
            f"{mine.url}/issues", json={"title": "<b>first</b>", "body": hostile, "labels": ["bug"]}
        )
    )
    ok(mine.http.post(f"{mine.url}/issues", json={"title": "second", "body": ""}))
    ok(mine.http.post(f"{mine.url}/issues/1/comments", json={"body": "*said*"}))
    http, tab = client(), f"{at(mine)}/dev?tab=issues"
    text = page(http, tab)
    assert "&lt;b&gt;first&lt;/b&gt;" in text
    assert "second" in text
    assert "second" not in page(http, f"{tab}&label=bug")
    assert "Nothing matches" in page(http, f"{tab}&state=closed")
    text = page(http, f"{tab}&n=1")
    assert "<em>said</em>" in text
    assert f'href="{at(mine)}/dev?tab=issues&amp;n=1"' in text
    assert f"svc issue comment 1 -R {mine.body['full_name']}" in text
    assert "No text." in page(http, f"{tab}&n=2")
    missing = compared(http.get("/apps/nobody/nothing"))
    for number in ("3", "0", "x", "-1", "٣", "1" * 30):
        assert compared(http.get(f"{tab}&n={number}")) == missing
    page(http, f"{tab}&state=odd", 422)


def test_a_proposal_says_what_it_waits_for_and_the_command_that_lands_it(
    mine: Repository, client: Client
) -> None:
    mine.branch("side", str(mine.head()))
    mine.seal({"new.txt": b"new\n"}, branch="side")
    proposal = ok(
        mine.http.post(
            f"{mine.url}/proposals", json={"title": "Bring it", "body": "Why", "head": "side", "base": "main"}
        )
    )
    run = {"seal_id": mine.head("side"), "name": "tests", "conclusion": "failure"}
    ok(mine.http.post(f"{mine.url}/runs", json=run))
    http, tab = client(), f"{at(mine)}/dev?tab=issues"
    assert "Bring it" in page(http, f"{tab}&kind=proposals")
    assert "Bring it" in page(http, tab)
    assert "Bring it" not in page(http, f"{tab}&label=bug"), "a filter is about issues alone"
    text = page(http, f"{tab}&n={proposal['number']}")
    assert "<code>side</code> into <code>main</code>" in text
    assert "✗ fail" in text
    assert f"svc pr merge {proposal['number']} -R {mine.body['full_name']}" in text
    assert "✗ fail" in page(http, f"{at(mine)}/dev?tab=workflows")


def test_releases_and_their_files(mine: Repository, client: Client) -> None:
    body = {"version": "v1.0", "seal_id": mine.head(), "notes": "**New** things"}
    ok(mine.http.post(f"{mine.url}/releases", json=body))
    http = client()
    text = page(http, f"{at(mine)}/dev?tab=releases")
    assert "<strong>New</strong>" in text
    assert "not signed" in text
    shown = page(http, at(mine))
    assert "v1.0" in shown
    assert "Download" not in shown, "nothing is signed"
    assert "v1.0" in page(http, f"{at(mine)}/dev")


def test_a_listed_repository_shows_its_screenshots(mine: Repository, client: Client) -> None:
    mine.seal({"shots/one.png": b"\x89PNG\r\n\x1a\n"})
    body = {"name": "Tides", "category": "Tools", "screenshots": ["shots/one.png"], "readme_images": "none"}
    ok(mine.http.put(f"{mine.url}/listing", json=body))
    assert f'src="{mine.url}/raw/{mine.head()}/shots/one.png"' in page(client(), at(mine))
    ok(mine.http.put(f"{mine.url}/listing", json={**body, "screenshots": []}))
    assert "one.png" not in page(client(), at(mine))


def test_rules_of_branches_and_dependencies_are_shown(mine: Repository, client: Client) -> None:
    rule = {"require_review": True, "required_approvals": 2, "lock_writes": True, "require_checks": True}
    mine.seal({"requirements.txt": b"requests==2.31.0 # <b>\n"})
    ok(mine.http.put(f"{mine.url}/protections/main", json=rule))
    http = client()
    text = page(http, f"{at(mine)}/dev?tab=security")
    assert "no direct pushes · approvals: 2 · checks pass" in text
    assert f"svc repo reports create -R {mine.body['full_name']}" in text
    assert "The community edition has no franking" in text
    text = page(http, f"{at(mine)}/dev?tab=insights")
    assert "requests" in text
    assert "==2.31.0" in text


def test_an_empty_list_says_whether_it_was_filtered(account: Maker, client: Client) -> None:
    http, tab = client(), f"{at(own(account, client, visibility='public'))}/dev?tab=issues"
    assert "No issue is open" in page(http, tab)
    assert "No proposal is open" in page(http, f"{tab}&kind=proposals")
    for filtered in ("label=bug", "author=nobody", "search=word", "state=all"):
        assert "Nothing matches" in page(http, f"{tab}&{filtered}")


@pytest.mark.parametrize("tab", ["issues", "workflows", "releases", "security", "insights"])
def test_an_empty_tab_says_so(account: Maker, client: Client, tab: str) -> None:
    mine = own(account, client, visibility="public")
    page(client(), f"{at(mine)}/dev?tab={tab}")
