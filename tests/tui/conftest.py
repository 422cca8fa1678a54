"""The app against a real relay."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from localstore.known import FILE, Store
from svc.api import Api, connect
from svc.cmd.frame.catalogue import catalogue
from svc.cmd.frame.context import Run
from svc.console import Out
from svc.flows.outbox.actions import open_outbox
from svc.flows.place.where import Where
from svc.http.session import Sessions
from tests.svc.conftest import Svc
from tests.svc.conftest import alice as alice
from tests.svc.conftest import node as node
from tests.svc.conftest import svc as svc
from tui.app import SvcApp
from tui.client import Client
from tui.machine import Machine, Place
from tui.sending import Sending


@pytest.fixture
def open_app(alice: Svc, node: str, tmp_path: Path) -> Callable[..., SvcApp]:
    """Makes an app of this test's account."""

    def make(origin: str = "", place: Place | None = None) -> SvcApp:
        home = Path(os.environ["SVC_HOME"])
        sessions = Sessions(home)
        store = Store(home / FILE)
        client = Client(
            node,
            os.environ["TEST_HANDLE"],
            lambda: connect(origin or node, sessions),
            store,
            lambda: sessions.credential(node),
        )
        where = Where(os.environ, tmp_path)
        session = sessions.find(node)

        def api(its: str, _account: str) -> Api:
            return connect(origin if origin and its == node else its, sessions)

        sending = Sending(open_outbox(where.home), where.home, session, api)
        drafts, machine = home / "drafts", Machine(where.home)
        commands = catalogue(Run(Out(os.environ), {**os.environ, "SVC_SERVER": node}, Path.cwd()))
        return SvcApp(
            client,
            place or Place(),
            sending=sending,
            drafts=drafts,
            machine=machine,
            commands=commands,
            account_now=lambda: client.account,
        )

    return make


def shown(app: SvcApp) -> str:
    """The screen as text."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips())
