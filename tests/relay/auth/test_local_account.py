"""Accounts by password, the pages around them, handles, script tokens."""

from __future__ import annotations

import pytest

from localstore.core.identity.bearer import parse_script_token, to_text
from tests.relay.auth.people import PASSWORD, Terminal

HANDLE, TOKENS = "/api/v1/handles/me", "/api/v1/auth/tokens"


def test_sign_up_and_in(browser, name):
    handle = name()
    browser().sign_up(handle.upper())
    one = browser()
    assert one.sign_in(handle).status_code == 303
    assert one.get(HANDLE).json()["handle"] == handle
    taken = browser().post("/auth/sign-up", data={"handle": handle, "password": PASSWORD})
    assert taken.status_code == 409
    assert "taken" in taken.text


def test_a_wrong_password_and_nobody_are_one_answer(browser, name):
    handle = name()
    browser().sign_up(handle)
    wrong, nobody = browser().sign_in(handle, "not this one"), browser().sign_in(name(), "not this one")
    assert wrong.status_code == nobody.status_code == 401
    assert "the handle or the password is wrong" in wrong.text
    assert "the handle or the password is wrong" in nobody.text
    assert "set-cookie" not in wrong.headers


@pytest.mark.parametrize("hidden", ["\x1b", "\u202e", "\u2066"])
@pytest.mark.parametrize("path", ["/auth/login", "/auth/sign-up"])
def test_a_handle_comes_back_without_what_turns_a_page_around(browser, path, hidden):
    answer = browser().post(path, data={"handle": f"ann{hidden}moc", "password": PASSWORD})
    assert answer.status_code in (401, 422)
    assert "ann" in answer.text
    assert hidden not in answer.text


@pytest.mark.parametrize("password", ["", "short", "aaaaaaaaaaaa", "x" * 2000])
def test_passwords_that_protect_nothing(browser, name, password):
    assert browser().post("/auth/sign-up", data={"handle": name(), "password": password}).status_code == 422


@pytest.mark.parametrize("handle", ["", "admin", "a/b", "..", "ａdmin", "x" * 65, "-a", "a\0b"])
def test_names_nobody_gets(browser, handle):
    answer = browser().post("/auth/sign-up", data={"handle": handle, "password": PASSWORD})
    assert answer.status_code == 422


def test_a_handle_in_the_password_is_refused(browser, name):
    handle = name()
    assert (
        browser().post("/auth/sign-up", data={"handle": handle, "password": f"my {handle}"}).status_code
        == 422
    )


@pytest.mark.parametrize(
    "target",
    [
        "//evil.example",
        "/\\evil.example",
        "https://evil.example",
        "evil",
        "",
        "/\t/evil.example",
        "/a\r\nX: y",
    ],
)
def test_open_redirects(browser, name, target):
    one = browser()
    assert one.get("/auth/login", params={"return_to": target}).status_code == 400
    handle = name()
    browser().sign_up(handle)
    answer = one.sign_in(handle, return_to=target)
    assert answer.status_code == 400
    assert "set-cookie" not in answer.headers


def test_a_path_of_ours_is_returned_to(browser, name):
    handle = name()
    browser().sign_up(handle)
    answer = browser().sign_in(handle, return_to="/settings?tab=tokens")
    assert answer.headers["location"] == "/settings?tab=tokens"


def test_signing_in_leads_to_a_page(browser, name):
    handle = name()
    browser().sign_up(handle)
    one = browser()
    answer = one.post("/auth/login", data={"handle": handle, "password": PASSWORD}, follow_redirects=True)
    assert answer.status_code == 200
    assert "Yours" in answer.text


def test_no_provider_is_configured(client):
    assert client().get("/auth/login?provider=google").status_code == 400


@pytest.mark.parametrize("origin", ["https://evil.example", "null", None])
def test_a_foreign_page_signs_nobody_in(browser, name, origin):
    handle = name()
    browser().sign_up(handle)
    one = browser()
    del one.headers["Origin"]
    headers = {"Origin": origin} if origin else {}
    for path in ("/auth/login", "/auth/sign-up"):
        answer = one.post(path, data={"handle": handle, "password": PASSWORD}, headers=headers)
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers


def test_pages_run_nothing_and_cannot_be_framed(browser, name):
    one = browser()
    for path in ("/auth/login", "/auth/sign-up"):
        policy = one.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert one.get(path).headers["cache-control"] == "no-store"


def test_the_stylesheet_is_small(browser):
    answer = browser().get("/assets/style.css")
    assert answer.headers["content-type"].startswith("text/css")
    assert answer.headers["content-encoding"] == "gzip"
    assert "@media(max-width" not in answer.text and ":root{color-scheme:light dark;" in answer.text
    assert len(answer.content) <= 12 * 1024 and int(answer.headers["content-length"]) <= 4_000


def test_what_was_typed_is_escaped(browser):
    answer = browser().sign_in('"><script>alert(1)</script>')
    assert "<script>" not in answer.text


def test_change_of_handle(browser, name):
    first, second = name(), name()
    one, other = browser().sign_up(first), browser().sign_up(second)
    taken = one.put(HANDLE, json={"handle": second})
    assert (taken.status_code, taken.json()["code"]) == (409, "name_taken")
    assert one.put(HANDLE, json={"handle": "admin"}).status_code == 422
    third = name()
    assert one.put(HANDLE, json={"handle": third.upper()}).json()["handle"] == third
    assert one.get(HANDLE).json()["handle"] == third
    assert other.put(HANDLE, json={"handle": first}).status_code == 200, "it had no repositories to lead to"


def test_a_former_handle_with_repositories_stays_reserved(relay, browser, name):
    from sqlalchemy import insert, select

    from relay.db.schema.repo import repo, repo_alias

    first = name()
    one, other = browser().sign_up(first), browser().sign_up(name())
    me = one.get(HANDLE).json()["user_id"]

    async def own(repo_id):
        async with relay.node.db.write() as tx:
            await tx.run(
                insert(repo),
                id=repo_id,
                owner_id=me,
                name="kept",
                kind="app",
                description="",
                default_branch="main",
                state="active",
                resume_state=None,
                parent_id=None,
                tree_key=bytes(32),
                tree_key_id="k",
                created_at=0,
                updated_at=0,
                deleted_at=None,
                purge_at=None,
                policy=None,
                partial=None,
                **{"class": "private_plaintext"},
            )

    async def aliases():
        async with relay.node.db.read() as tx:
            return await tx.all(select(repo_alias.c.owner, repo_alias.c.name, repo_alias.c.repo_id))

    relay.run(own(me))
    assert one.put(HANDLE, json={"handle": name()}).status_code == 200
    assert (first, "kept", me) in {tuple(row) for row in relay.run(aliases())}
    assert other.put(HANDLE, json={"handle": first}).status_code == 409
    assert one.put(HANDLE, json={"handle": first}).status_code == 200, "its owner may have it back"


def script(relay, text):
    _, raw, key = parse_script_token(text)
    return Terminal(relay.url, key, raw)


def test_script_token_works_and_is_shown_once(relay, browser, name):
    handle = name()
    one = browser().sign_up(handle)
    made = one.post(TOKENS, json={"label": "nightly", "days": 7, "access": "write"}).json()
    runner = script(relay, made["token"])
    assert runner.send("GET", HANDLE).json()["handle"] == handle
    listed = one.get(TOKENS).text
    assert "nightly" in listed
    assert to_text(runner.token) not in listed
    assert runner.send("PUT", HANDLE, {"handle": name()}).status_code == 403, "write is not admin"
    one.delete(f"{TOKENS}/{made['id']}")
    assert runner.send("GET", HANDLE).status_code == 401


def test_script_token_outlives_the_browser_session(relay, browser, name):
    one = browser().sign_up(name())
    runner = script(relay, one.post(TOKENS, json={"label": "ci"}).json()["token"])
    one.post("/auth/logout")
    assert runner.send("GET", HANDLE).status_code == 200


def test_what_a_script_token_may(relay, browser, name):
    one = browser().sign_up(name())
    expected = {"read": (200, 403), "write": (200, 403), "admin": (200, 201)}
    for access, codes in expected.items():
        runner = script(relay, one.post(TOKENS, json={"label": "x", "access": access}).json()["token"])
        reading, pairing = runner.send("GET", HANDLE), runner.send("POST", "/api/v1/auth/pairing-codes")
        assert (reading.status_code, pairing.status_code) == codes
        assert runner.send("POST", TOKENS, {"label": "y"}).status_code == 403, "tokens make no tokens"


@pytest.mark.parametrize(
    "body",
    [
        {"label": ""},
        {"label": "a\nb"},
        {"label": "x", "days": 0},
        {"label": "x", "days": 366},
        {"label": "x" * 65},
    ],
)
def test_tokens_that_are_not_made(browser, name, body):
    assert browser().sign_up(name()).post(TOKENS, json=body).status_code == 422


def test_token_form_is_the_same_route(browser, name):
    one = browser().sign_up(name())
    answer = one.post(TOKENS, data={"label": "form", "days": "3", "access": "read"})
    assert answer.status_code == 201
    assert answer.json()["token"].startswith("svct2_")
