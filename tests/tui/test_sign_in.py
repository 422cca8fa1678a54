"""Signing in from the app, by each of the ways that its card offers."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from localstore.core.endpoint import Endpoint
from localstore.core.errors import ServerUnreachable, UsageError
from localstore.core.model import auth
from localstore.known import FILE, Store
from scripts.bench.tui import Terminal
from svc.api import Api, connect
from svc.cmd.frame.catalogue import catalogue
from svc.cmd.frame.context import Run
from svc.cmd.tui import _without_server
from svc.console import Out
from svc.flows.outbox.actions import open_outbox
from svc.flows.place.where import Where
from svc.flows.sign_in import pairing
from svc.http.session import Session, Sessions
from tests.patience import PATIENCE
from tests.relay.auth.people import Browser
from tests.svc.conftest import Svc
from tests.tui.conftest import shown
from tests.tui.test_app import Open, press, sees, settle, soon
from tui.app import SvcApp
from tui.client import Client
from tui.screens.sign_in import SignIn
from tui.sending import Sending
from tui.widgets.question import Question

APPROVE = "/api/v1/auth/cli/approve"


@pytest.fixture
def open_fresh(svc: Svc, node: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., SvcApp]:
    """Makes an app on a machine where nobody has signed in yet. `origin`: its server, "" for none."""
    monkeypatch.setenv("SVC_SERVER", node)

    def make(origin: str | None = None, account: str = "") -> SvcApp:
        home = Path(os.environ["SVC_HOME"])
        sessions, server = Sessions(home), node if origin is None else origin

        def api() -> Api:
            if not server:
                raise UsageError("no server is known yet; sign in to one: svc login --server https://NODE")
            return connect(server, sessions)

        client = Client(server, account, api, Store(home / FILE), lambda: sessions.credential(node))
        where = Where(os.environ, tmp_path)
        sending = Sending(open_outbox(where.home), where.home, None, lambda its, _: connect(its, sessions))
        run = Run(Out(os.environ), {**os.environ, "SVC_SERVER": server}, Path.cwd())
        return SvcApp(
            client,
            sending=sending,
            drafts=home / "drafts",
            commands=catalogue(run),
            account_now=lambda: client.account,
            sessions=sessions,
        )

    return make


@pytest.fixture
def handle(request: pytest.FixtureRequest) -> str:
    return "s-" + request.node.name.replace("_", "-")[5:45].strip("-")


async def test_a_first_start_without_a_server_signs_in_by_the_key_of_the_machine(
    open_fresh: Open, node: str, handle: str
) -> None:
    app = open_fresh("")
    async with app.run_test(size=(80, 24)) as pilot:
        text = await sees(pilot, "▌browser", "this machine", "QR text", "no server", "enter sign in")
        assert "Repositories" not in text, "nobody was asked for them"
        await press(pilot, "j", "enter")
        await sees(pilot, "Which server?", "node.example")
        await press(pilot, *"no node", "enter")
        await sees(pilot, "'no node' is not the address of a server")
        await press(pilot, "ctrl+u", *node, "enter")
        await sees(pilot, f"server        {node}", "name of the account")
        await press(pilot, *"a b", "enter")
        await sees(pilot, "handle", "account       a b")
        await press(pilot, "ctrl+u", *handle, "enter")
        await soon(pilot, lambda: app.reopens)
    assert (app.reopens_at, app.reopens_with) == (node, f"Signed in to {node[7:]} as {handle}")


async def test_a_session_that_cannot_be_written_is_said(
    open_fresh: Open, handle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("svc.flows.sign_in.login.by_device_key", refuse)
    app = open_fresh()
    async with app.run_test(size=(100, 30)) as pilot:
        await sees(pilot, "▌browser")
        app.sign_in()
        await sees(pilot, "─ Sign in", "▌browser")
        await press(pilot, "j", "j")
        await sees(pilot, "▌code")
        await pilot.resize_terminal(90, 30)
        await settle(pilot)
        await sees(pilot, "▌code")  # the cursor stays where it is
        await press(pilot, "k", "enter", "ctrl+u", *handle, "enter")
        await sees(pilot, "this machine cannot keep the session: Permission denied", "▌this machine")


async def test_what_comes_late_of_a_stopped_attempt_is_not_shown(open_fresh: Open) -> None:
    app = open_fresh()
    async with app.run_test(size=(100, 30)) as pilot:
        await sees(pilot, "▌browser")
        app.sign_in()
        await soon(pilot, lambda: isinstance(app.screen, SignIn))
        await settle(pilot)
        card = app.screen
        assert isinstance(card, SignIn)
        answers: list[bool] = []
        running, ended = threading.Event(), threading.Event()

        def wait() -> Session:
            ended.wait(PATIENCE)
            raise UsageError("it ended")

        card._run(running, "waiting for the device", wait)
        card._compare(running, "123456", "somebody", answers.append)
        await sees(pilot, "Does the other device show 123 456?")
        ended.set()
        await sees(pilot, "it ended", "▌browser")
        await soon(pilot, lambda: not app.screen.query(Question))
        card._compare(running, "123456", "somebody", answers.append)
        assert "Does the other device" not in await settle(pilot)
        assert answers == []


async def test_an_account_that_does_not_know_the_machine_takes_a_code(
    open_fresh: Open, alice: Svc, handle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account, code = os.environ["TEST_HANDLE"], alice("auth", "device", "add").out.split()[0]
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "other"))
    app = open_fresh()
    async with app.run_test(size=(100, 30)) as pilot:
        await sees(pilot, "▌browser", "sign in: browser", "Here you need no")
        await press(pilot, "j", "enter")
        await sees(pilot, "a free one becomes yours")
        await press(pilot, *account, "enter")
        await sees(pilot, "is taken, and does not know", f"account       {account}"[:40])
        await press(pilot, "enter")
        await sees(pilot, "BCDF-GHJK-LMNP", f"account       {account}"[:40], "code          as svc auth")
        await press(pilot, "escape")
        await sees(pilot, f"account       {account}"[:40], "enter sign in")
        await press(pilot, "enter", *"BCDF-GHJK-LMNP", "enter")
        await sees(pilot, "✗ the code is mistyped", "code          BCDF-GHJK-LMNP")
        await press(pilot, *code, "enter")  # in place of what was typed before
        await soon(pilot, lambda: app.reopens)
    assert app.reopens_with.endswith(f" as {account}")


async def test_after_a_taken_name_the_next_one_is_a_name(
    open_fresh: Open, alice: Svc, handle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "other"))
    app = open_fresh()
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, "▌browser")
        await press(pilot, "j", "enter", *os.environ["TEST_HANDLE"], "enter")
        await sees(pilot, "✗", "is taken", "Type another name.")
        await press(pilot, *handle, "enter")
        await soon(pilot, lambda: app.reopens)
    assert app.reopens_with.endswith(f" as {handle}")


async def test_a_code_for_an_account_that_nobody_has_asks_for_the_account_again(
    open_fresh: Open, handle: str
) -> None:
    app = open_fresh()
    async with app.run_test(size=(100, 30)) as pilot:
        await sees(pilot, "▌browser")
        await press(pilot, "j", "j", "enter", *handle, "enter", *"BCDF-GHJK-LMNP", "enter")
        await sees(pilot, f"✗ there is no account {handle}"[:40], f"account       {handle}"[:40])


async def test_letters_on_the_card_lead_nowhere_else(open_fresh: Open) -> None:
    app = open_fresh()
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, "▌browser")
        app.sign_in()
        await sees(pilot, "─ Sign in", "▌browser")
        for key in ("i", "w", "s", "a", "M", "colon", "space", "slash", "r"):
            await press(pilot, key)
            assert isinstance(app.screen, SignIn) and app.screen._prompt is None, key
        await sees(pilot, "r does nothing in this card")
        await press(pilot, "question_mark")
        text = await sees(pilot, "─ Keys  sign in")
        assert re.search(r"│.{1,2}inbox", text) is None
        await press(pilot, "escape", "j")
        await sees(pilot, "▌this machine", "Type the name of the account.")
        await pilot.resize_terminal(60, 20)
        await sees(pilot, "▌this machine", "server")


async def test_a_server_that_is_away_is_said_in_the_card(
    open_fresh: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def miss(*arguments: object) -> None:
        raise ServerUnreachable("cannot reach it")

    monkeypatch.setattr("svc.flows.sign_in.login.by_device_key", miss)
    app = open_fresh()
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, "▌browser")
        await press(pilot, "j", "enter", *"somebody", "enter")
        await sees(pilot, "✗ cannot reach it", "○ offline")


async def test_a_server_that_goes_away_while_the_user_approves_is_asked_again(
    open_fresh: Open, node: str, handle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = Browser(node).sign_up(handle)
    away = threading.Event()
    away.set()
    send = Api.send

    def send_unless_away(self: Api, endpoint: Endpoint[object], *arguments: object, **more: object) -> object:
        if endpoint is auth.CLAIM and away.is_set():
            raise ServerUnreachable("cannot reach it")
        return send(self, endpoint, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Api, "send", send_unless_away)
    app = open_fresh()
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, "▌browser")
        await pilot.press("enter")
        text = await sees(pilot, "type there", "the server does not answer; it is asked again")
        away.clear()
        await sees(pilot, "waiting until you approve it")
        code, fingerprint = re.search(r"type there +(\S+)", text), re.search(r"compare +(\S+)", text)
        assert code is not None and fingerprint is not None
        decision = {"user_code": code[1], "fingerprint": fingerprint[1], "decision": "approve"}
        assert web.post(APPROVE, json=decision).json() == {"status": "approved"}
        await soon(pilot, lambda: app.reopens)


async def test_a_server_that_does_not_answer_a_sign_in_is_said_to_be_slow(
    open_fresh: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = threading.Event()

    def wait(*arguments: object) -> None:
        answered.wait(PATIENCE)
        raise UsageError("it ended")

    monkeypatch.setattr("tui.screens.sign_in.SLOW", 0.1)
    monkeypatch.setattr("svc.flows.sign_in.login.by_device_key", wait)
    app = open_fresh()
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, "▌browser")
        await press(pilot, "j", "enter", *"somebody")
        await pilot.press("enter")
        await sees(pilot, "account       somebody", "the server does not answer yet; esc stops")
        await pilot.press("escape")
        await sees(pilot, "stopped; nobody was signed in", "▌this machine")
        answered.set()


async def test_a_browser_elsewhere_approves(open_fresh: Open, node: str, handle: str) -> None:
    web = Browser(node).sign_up(handle)
    app = open_fresh()
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, "▌browser")
        await pilot.press("enter")
        text = await sees(
            pilot, f"{node}/cli/authorize", "type there", "compare", "waiting until", "esc stop"
        )
        await pilot.press("escape")
        await sees(pilot, "stopped; nobody was signed in", "▌browser")
        await pilot.press("enter")
        text = await sees(pilot, "type there", "waiting until")
        code, fingerprint = re.search(r"type there +(\S+)", text), re.search(r"compare +(\S+)", text)
        assert code is not None and fingerprint is not None
        decision = {"user_code": code[1], "fingerprint": fingerprint[1], "decision": "approve"}
        assert web.post(APPROVE, json=decision).json() == {"status": "approved"}
        await soon(pilot, lambda: app.reopens)
    assert app.reopens_with.endswith(f" as {handle}")


async def test_a_code_of_two_devices_is_joined_after_comparing_digits(
    open_fresh: Open, alice: Svc, node: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = os.environ["TEST_HANDLE"]
    drawing = Sessions(Path(os.environ["SVC_HOME"]))
    session = drawing.find(node)
    assert session is not None
    drawn = SimpleNamespace(text="", digits="")
    has_text = threading.Event()

    def show(text: str) -> None:
        drawn.text = text
        has_text.set()

    def confirm(digits: str, other: str) -> bool:
        drawn.digits = digits
        return True

    thread = threading.Thread(
        target=lambda: pairing.offer(connect(node, drawing), session.user_id, "", show, confirm), daemon=True
    )
    thread.start()
    assert has_text.wait(PATIENCE)
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "other"))
    app = open_fresh()
    async with app.run_test(size=(100, 30)) as pilot:
        await sees(pilot, "▌browser")
        await press(pilot, "j", "j", "j", "enter", *"svc-pair:1:nonsense", "enter")
        await sees(pilot, "this is no pairing code")
        await press(pilot, "enter", *drawn.text)
        await pilot.press("enter")
        await sees(pilot, "Does the other device show", "Then this machine")
        assert f"{drawn.digits[:3]} {drawn.digits[3:]}" in shown(app)
        await pilot.press("y")
        await soon(pilot, lambda: app.reopens)
    assert app.reopens_with.endswith(f" as {account}")
    thread.join(PATIENCE)


async def test_an_ended_session_is_begun_again_on_the_same_screen(
    open_fresh: Open, alice: Svc, node: str
) -> None:
    account = os.environ["TEST_HANDLE"]
    assert alice("repo", "create", "mine").code == 0
    app = open_fresh(account=account)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, f"{account}/mine"[:40], "Inbox")
        session = Sessions(Path(os.environ["SVC_HOME"])).find(node)
        assert session is not None
        assert alice("auth", "token", "revoke", session.session_id, "-y").code == 0
        await press(pilot, "r")
        await sees(pilot, "Your session has ended", "Sign in again", "sign in")
        await press(pilot, "g", "enter", "j", "enter")
        await sees(pilot, f"account       {account}")
        await press(pilot, "enter")
        text = await sees(pilot, f"Signed in to {node[7:]} as {account}")
        assert "session has ended" not in await settle(pilot), text
        assert not app.reopens


async def test_login_as_a_command_opens_the_card(open_fresh: Open, node: str) -> None:
    app = open_fresh()
    async with app.run_test(size=(100, 30)) as pilot:
        await sees(pilot, "▌browser")
        await press(pilot, "colon", *"login", "enter")
        await sees(pilot, "─ Sign in ─", f"server        {node}")
        await press(pilot, "escape", "colon", *"login --server relay.example", "enter")
        await sees(pilot, "server        https://relay.example")
        await press(pilot, "G", "enter", "ctrl+u", *"http://relay.example", "enter")
        await sees(pilot, "not encrypted: others on the way can read what you send")
        await press(pilot, "escape", "space", *"svc login", "enter")
        await sees(pilot, "─ Sign in ─")


def test_an_app_that_is_opened_again_has_the_server_that_was_chosen() -> None:
    words = ["svc", "--server", "a.example", "tui", "--server=b.example", "--theme", "dark"]
    assert _without_server(words) == ["svc", "tui", "--theme", "dark"]


def test_the_first_start_on_a_terminal(svc: Svc, node: str, tmp_path: Path, handle: str) -> None:
    """The app ends and is opened again at the server, without a server in its environment."""
    terminal = Terminal([sys.executable, "-m", "svc", "tui"], tmp_path, 80, 24)
    assert terminal.shows("no server", PATIENCE)
    terminal.keys("j")
    terminal.keys("\r")
    assert terminal.shows("node.example", PATIENCE)
    terminal.keys(node)
    terminal.keys("\r")
    assert terminal.shows("name of the account", PATIENCE)
    terminal.keys(handle)
    terminal.keys("\r")
    assert terminal.shows(f"Signed in to {node[7:]} as {handle}", PATIENCE), terminal.text
    assert terminal.shows("There is no repository of yours yet.", PATIENCE), terminal.text
    terminal.close()


async def test_a_browser_elsewhere_refuses(open_fresh: Open, node: str, handle: str) -> None:
    web = Browser(node).sign_up(handle)
    app = open_fresh()
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, "▌browser")
        await pilot.press("enter")
        text = await sees(pilot, "type there", "waiting until")
        code, fingerprint = re.search(r"type there +(\S+)", text), re.search(r"compare +(\S+)", text)
        assert code is not None and fingerprint is not None
        decision = {"user_code": code[1], "fingerprint": fingerprint[1], "decision": "deny"}
        assert web.post(APPROVE, json=decision).json() == {"status": "denied"}
        text = await sees(pilot, "✗ the sign-in was denied in the browser", "▌browser")
        assert "waiting" not in text and "svc login" not in text


async def test_each_step_says_what_is_wrong_with_it_and_where_esc_leads(
    open_fresh: Open, handle: str
) -> None:
    async with open_fresh().run_test(size=(100, 30)) as pilot:
        await sees(pilot, "▌browser")
        await press(pilot, "j", "j", "enter")
        await sees(pilot, "name of the account", "esc other ways")
        await press(pilot, "enter")
        await sees(pilot, "✗ an account needs a name", "esc other ways")
        await press(pilot, *"a b", "enter")
        await sees(pilot, "✗ 'a b' is not a handle", "account       a b")
        await press(pilot, *handle, "enter")  # in place of what was typed before
        await sees(pilot, "BCDF-GHJK-LMNP", "esc the account")
        await press(pilot, *"BCDF", "enter")
        text = await sees(pilot, "✗ ", "code          BCDF", "esc the account")
        assert "no account" not in text, "the server was not asked"
        await press(pilot, "escape")
        await sees(pilot, f"account       {handle}"[:40], "esc other ways")
        await press(pilot, "escape")
        await sees(pilot, "▌code", "QR text", "server ", "esc leave")
