"""The session of a browser over its seven days, with the relay's clock moved on."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from relay.pages.visit import SENT_TOO_LATE

PAGE, ME, REFRESH = "/settings?tab=tokens", "/auth/userinfo", "/auth/refresh"
MINUTE, HOUR, DAY = 60, 3600, 24 * 3600


@pytest.fixture
def visitor(browser, name):
    """A browser whose session cookie goes when its hour is over, as browsers drop it."""

    def make():
        one = browser().sign_up(name())
        one.forget = lambda: one.cookies.delete("tr_session")
        return one

    return make


def renewed(answer):
    """Whether this answer, or one that led to it, brought new cookies."""
    return any("tr_refresh=" in line for each in [*answer.history, answer] for line in _cookies(each))


def _cookies(answer):
    return answer.headers.get_list("set-cookie")


def visit(one, path=PAGE, **headers):
    return one.get(path, headers=headers, follow_redirects=True)


def test_a_page_renews_ten_minutes_before_the_end_and_no_earlier(visitor, later):
    one = visitor()
    later(49 * MINUTE)
    answer = visit(one)
    assert (answer.status_code, answer.history, renewed(answer)) == (200, [], False)
    later(51 * MINUTE)
    answer = visit(one)
    assert [each.status_code for each in answer.history] == [303, 303]
    assert (answer.status_code, str(answer.url).endswith(PAGE), renewed(answer)) == (200, True, True)
    later(100 * MINUTE)
    assert visit(one).history == [], "it has been a fresh one since"


def test_a_page_asked_for_after_the_hour_renews_too(visitor, later):
    one = visitor()
    session = one.get(ME).json()["session_id"]
    later(6 * DAY)
    one.forget()
    assert renewed(visit(one))
    assert one.get(ME).json()["session_id"] == session


def test_after_seven_days_people_sign_in_and_go_on_where_they_were(visitor, later):
    one = visitor()
    later(7 * DAY + MINUTE)
    one.forget()
    answer = visit(one)
    assert not renewed(answer)
    assert answer.url.path == "/auth/login"
    assert parse_qs(answer.url.query.decode())["return_to"] == [PAGE]


def test_the_last_ten_minutes_of_the_seven_days_are_no_circle(visitor, later):
    one = visitor()
    later(7 * DAY - 30 * MINUTE)
    one.forget()
    assert renewed(visit(one))
    later(7 * DAY - MINUTE)
    answer = visit(one)
    assert (answer.status_code, answer.history) == (200, [])


def test_a_guest_has_a_day_and_is_never_renewed(browser, later):
    one = browser()
    one.post("/auth/guest-login")
    later(24 * HOUR - MINUTE)
    answer = visit(one)
    assert (answer.status_code, answer.history) == (200, [])
    later(24 * HOUR + MINUTE)
    assert one.get(ME).status_code == 401
    assert visit(one).url.path == "/auth/login"


def test_without_its_refresh_cookie_a_session_leads_to_sign_in(visitor, later):
    one = visitor()
    one.cookies.delete("tr_refresh")
    later(51 * MINUTE)
    assert visit(one).url.path == "/auth/login"


def test_a_second_tab_waits_for_the_cookies_of_the_first(visitor, later):
    one = visitor()
    old = one.cookies["tr_refresh"]
    later(51 * MINUTE)
    new = one.get(REFRESH).cookies["tr_refresh"]
    one.cookies.delete("tr_refresh")
    one.cookies.set("tr_refresh", old)
    one.forget()
    waiting = one.get(REFRESH, params={"return_to": PAGE})
    assert waiting.status_code == 200
    assert 'http-equiv="refresh" content="1;url=/auth/refresh?return_to=' in waiting.text
    one.cookies.delete("tr_refresh")
    one.cookies.set("tr_refresh", new)
    assert visit(one, REFRESH).url.path == "/", "nobody was signed out"


@pytest.mark.parametrize(
    "target", ["//evil.example", "/\\evil.example", "https://evil.example", "/a\r\nX: y"]
)
def test_the_way_back_stays_on_this_node(visitor, later, target):
    one = visitor()
    later(51 * MINUTE)
    answer = one.get(REFRESH, params={"return_to": target})
    assert (answer.status_code, renewed(answer)) == (400, False)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_foreign_page_renews_nothing_by_itself(visitor, later, site):
    one = visitor()
    later(51 * MINUTE)
    answer = visit(one, **{"Sec-Fetch-Site": site})
    assert not renewed(answer)
    assert 'content="0;url=/auth/refresh?return_to=%2Fsettings%3Ftab%3Dtokens&amp;own=1"' in answer.text
    onward = f"{REFRESH}?return_to=%2Fsettings&own=1"
    assert visit(one, onward, **{"Sec-Fetch-Site": site}).url.path == "/auth/login", "once, not for ever"
    assert renewed(visit(one, onward, **{"Sec-Fetch-Site": "same-origin"}))


def test_a_fresh_session_is_not_rotated_for_the_asking(visitor):
    one = visitor()
    answer = one.get(REFRESH, params={"return_to": PAGE})
    assert (answer.status_code, answer.headers["location"], _cookies(answer)) == (303, PAGE, [])


def test_a_form_sent_too_late_does_nothing_and_loses_nothing(visitor, later):
    one = visitor()
    later(2 * HOUR)
    one.forget()
    form = {"label": "nightly <build>", "access": "read", "days": "7"}
    answer = one.post("/settings/tokens", data=form, follow_redirects=True)
    assert renewed(answer)
    assert SENT_TOO_LATE in answer.text
    assert 'value="nightly &lt;build&gt;"' in answer.text
    assert '<option value="read" selected>' in answer.text
    assert 'value="7"' in answer.text
    assert len(one.get("/api/v1/auth/tokens").json()["items"]) == 1, "no token was made"
    again = one.post("/settings/tokens", data=form)
    assert "Your new token" in again.text


def test_a_form_sent_after_the_seven_days_waits_behind_sign_in(visitor, later):
    one = visitor()
    later(8 * DAY)
    one.forget()
    for path, page in (
        ("/settings/tokens", "/settings"),
        (f"/settings/tokens/{'0' * 32}/revoke", "/settings"),
    ):
        answer = one.post(path, data={"label": "nightly"}, follow_redirects=True)
        assert answer.url.path == "/auth/login"
        back = urlsplit(parse_qs(answer.url.query.decode())["return_to"][0])
        assert (back.path, parse_qs(back.query)["again"]) == (page, ["1"])


def test_sign_out_on_an_old_page_ends_the_session(visitor, browser, later):
    one = visitor()
    old = one.cookies["tr_session"]
    one.forget()
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = one.post("/auth/logout", headers=form, follow_redirects=True)
    assert answer.url.path == "/auth/login"
    assert not one.cookies
    other = browser()
    other.cookies.set("tr_session", old)
    assert other.get(ME).status_code == 401


def test_a_foreign_page_signs_nobody_out(visitor):
    one = visitor()
    evil = {"Origin": "https://evil.example"}
    one.forget()  # a lax cookie does not come with a form of another site
    for path in ("/auth/logout", "/auth/refresh/logout"):
        answer = one.post(path, headers=evil, follow_redirects=True)
        assert (answer.status_code, _cookies(answer)) == (403, []), path
    assert renewed(visit(one))


def test_a_terminal_signs_in_once_a_day(terminal, later):
    one = terminal()
    for seconds, status in ((24 * HOUR - MINUTE, 200), (25 * HOUR, 401)):
        later(seconds)
        one.clock = seconds  # it signs by the same time
        answer = one.send("GET", ME)
        assert answer.status_code == status
    assert answer.json()["reason"] == "expired"
