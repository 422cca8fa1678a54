"""Whom `svc tui --web` answers: the browser that brought the token, and nobody else."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.request import urlopen

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.patience import PATIENCE, until
from tests.svc.conftest import Svc
from tests.tui.web.serving import Web, alive, serving

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are read from /proc")


@pytest.fixture
def web(alice: Svc) -> Iterator[Web]:
    with serving() as found:
        yield found


def open_socket(web: Web, path: str, cookie: tuple[str, str] | None, origin: str | None) -> ClientConnection:
    return connect(
        f"ws://127.0.0.1:{web.port}{path}ws?width=80&height=24",
        origin=origin,
        additional_headers=[cookie] if cookie else [],
        open_timeout=PATIENCE,
        proxy=None,
    )


def test_the_token_counts_once(web: Web) -> None:
    for wrong in (
        "/",
        "/?token=",
        "/?token=wrong",
        f"/?token={web.token}&token={web.token}",
        "/?token=%C3%A9",
    ):
        assert web.get(wrong).status == 403, wrong
    assert web.get(f"/?token={web.token}", method="HEAD").status in (403, 405)
    entered = web.get(f"/?token={web.token}")
    assert entered.status == 200
    (cookie,) = entered.all("Set-Cookie")
    for flag in ("HttpOnly", "SameSite=Strict"):
        assert flag in cookie
    path = re.search(r"Path=(/[\w-]{22}/)", cookie)
    assert path, "no other server of this machine is asked for such a path"
    assert web.token not in cookie
    for again in (f"/?token={web.token}", "/?token="):
        refused = web.get(again)
        assert (refused.status, refused.all("Set-Cookie")) == (403, [])
        assert "svc tui --web" in refused.text


def test_every_other_request_is_refused(web: Web) -> None:
    path, cookie = web.enter()
    files = ["", "page.js", "page.css", "static/js/textual.js", "static/css/xterm.css"]
    for name in files:
        answer = web.get(path + name, cookie)
        assert answer.status == 200, name
        for header in ("Content-Security-Policy", "X-Frame-Options", "Referrer-Policy", "Cache-Control"):
            assert len(answer.all(header)) == 1, (name, header)
    for name in [*files, "ws", "static/", "none"]:
        assert web.get(path + name).status == 403, name
        assert web.get(path + name, ("Cookie", "svc_app=wrong")).status == 403, name
        assert web.get("/" + name, cookie).status == 403, name
    for name in ("none", "static/", "static/../server.py", "static/%2e%2e/server.py", "server.py"):
        assert web.get(path + name, cookie).status in (403, 404), name
    assert web.get(path, cookie, method="POST").status == 405
    assert "fonts.googleapis" not in web.get(path, cookie).text, "nothing comes from elsewhere"


def test_pages_of_other_sites_are_refused(web: Web) -> None:
    token = f"/?token={web.token}"
    for host in (
        "evil.example",
        f"evil.example:{web.port}",
        "127.0.0.1",
        f"127.0.0.1:{web.port + 1}",
        "[::1]",
    ):
        assert web.get(token, host=host).status == 403, f"{host} was rebound to this machine"
    assert web.get(token, ("Host", "evil.example")).status in (400, 403)
    path, cookie = web.enter()
    own = f"http://127.0.0.1:{web.port}"
    assert web.get(path, cookie, host="evil.example").status == 403
    assert web.get(path, cookie, host=f"localhost:{web.port}").status == 200, "what one may type"
    for origin in (
        "null",
        "https://evil.example",
        f"https://127.0.0.1:{web.port}",
        f"http://localhost:{web.port}",
    ):
        assert web.get(path, cookie, ("Origin", origin)).status == 403, origin
    assert web.get(path, cookie, ("Origin", own), ("Origin", "https://evil.example")).status in (400, 403)
    for site in ("cross-site", "same-site"):
        assert web.get(path, cookie, ("Sec-Fetch-Site", site)).status == 403
    assert web.get(path, cookie, ("Sec-Fetch-Site", "same-origin")).status == 200


def test_sockets_are_for_the_own_page(web: Web) -> None:
    path, cookie = web.enter()
    own = f"http://127.0.0.1:{web.port}"
    for brought, origin in [
        (None, own),
        (("Cookie", "svc_app=wrong"), own),
        (cookie, None),
        (cookie, "null"),
        (cookie, "https://evil.example"),
        (cookie, f"http://127.0.0.1:{web.port + 1}"),
        (cookie, f"http://localhost:{web.port}"),
    ]:
        with pytest.raises(InvalidStatus) as refused:
            open_socket(web, path, brought, origin)
        assert refused.value.response.status_code == 403
    assert web.apps() == []
    with open_socket(web, path, cookie, own) as page:
        assert b"\x1b[?1049h" in page.recv(PATIENCE)
        assert len(web.apps()) == 1


def test_apps_end_with_their_pages_and_with_the_server(web: Web) -> None:
    path, cookie = web.enter()
    own = f"http://127.0.0.1:{web.port}"
    with open_socket(web, path, cookie, own) as page:
        page.recv(PATIENCE)
        (first,) = web.apps()
    until(lambda: not alive(first), "the app of a page that was closed ended")
    with ExitStack() as pages:
        opened = [pages.enter_context(open_socket(web, path, cookie, own)) for _ in range(8)]
        with open_socket(web, path, cookie, own) as ninth:
            assert b"open in 8 windows" in ninth.recv(PATIENCE)
            with pytest.raises(ConnectionClosed):
                ninth.recv(PATIENCE)
        apps = until(lambda: found if len(found := web.apps()) == 8 else [], "eight apps run")
        for page in opened[:6]:
            page.recv(PATIENCE)
        code, said = web.end(signal.SIGINT)
    assert code == 0, said
    assert "Traceback" not in said
    assert [one for one in apps if alive(one)] == []


def test_apps_end_when_the_server_is_killed(web: Web) -> None:
    path, cookie = web.enter()
    with open_socket(web, path, cookie, f"http://127.0.0.1:{web.port}") as page:
        page.recv(PATIENCE)
        (app,) = web.apps()
        web.end(signal.SIGKILL)
    until(lambda: not alive(app), "the app ended")


def test_what_a_page_should_not_send_is_passed_over(web: Web) -> None:
    path, cookie = web.enter()
    with open_socket(web, path, cookie, f"http://127.0.0.1:{web.port}") as page:
        page.recv(PATIENCE)
        for text in (
            *(
                "",
                "[",
                "null",
                "[]",
                "{}",
                "7",
                '"x"',
                "[null]",
                '["resize"]',
                '["resize", {"width": 1e999}]',
            ),
            *(
                '["resize", {"width": Infinity, "height": 5}]',
                '["resize", {"width": -5, "height": 99999999}]',
            ),
            *(
                '["stdin"]',
                '["stdin", 7]',
                '["stdin", "\\ud800"]',
                '["ping", {}]',
                '[["a"], 1]',
                "[" * 50_000,
            ),
        ):
            page.send(text)
        page.send(b"\0\xff")
        page.send('["ping", "12"]')
        answers = iter(lambda: page.recv(PATIENCE), '["pong", "12"]')
        assert all(isinstance(answer, bytes) for answer in answers)
        assert len(web.apps()) == 1
    code, said = web.end()
    assert (code, "Traceback" in said) == (0, False)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be another user")
def test_other_users_of_the_machine_are_refused(web: Web) -> None:
    os.seteuid(65534)  # a socket belongs to who makes it
    try:
        theirs = socket.socket()
    finally:
        os.seteuid(0)
    with theirs:
        theirs.connect(("127.0.0.1", web.port))
        theirs.sendall(f"GET /?token={web.token} HTTP/1.0\r\nHost: 127.0.0.1:{web.port}\r\n\r\n".encode())
        assert b" 403 " in theirs.recv(100)
    with urlopen(web.url) as answer:
        assert answer.status == 200, "the token is still good for the user"
