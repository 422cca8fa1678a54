"""What `svc tui --web` refuses before it listens."""

from __future__ import annotations

import json
import socket
import sys

import pytest

from tests.svc.conftest import Svc


def test_without_the_extra(alice: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    for needed in ("aiohttp", "textual_serve"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, needed, None)
            told = alice("tui", "--web")
            assert (told.code, told.out) == (1, "")
            assert "the extra web of svc" in told.err
            assert "pip install '.[web]'" in told.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--port", "8123"], "--port goes with --web"),
        (["--no-browser"], "--no-browser goes with --web"),
        (["--web", "--plain"], "--plain"),
        (["--web", "--images", "kitty"], "omit --images kitty"),
        (["--web", "--port", "65536"], "65536 is not a port"),
        (["--web", "--port", "-1"], "-1 is not a port"),
        (["--web", "--theme", "pink"], "pink is not a theme"),
    ],
)
def test_options_that_do_not_fit(alice: Svc, words: list[str], said: str) -> None:
    told = alice("tui", *words)
    assert (told.code, told.out) == (2, "")
    assert said in told.err


def test_a_port_that_is_taken(alice: Svc) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = alice("tui", "--web", "--port", str(port))
    assert (told.code, told.out) == (1, "")
    assert f"port {port} of this machine cannot be used" in told.err


def test_no_server(svc: Svc) -> None:
    told = svc("tui", "--web")
    assert told.code == 2
    assert "svc login" in told.err


def test_the_agent_does_not_serve_pages(alice: Svc) -> None:
    told = alice("invoke", "tui", "--args", json.dumps({"web": True}))
    assert told.code != 0
    assert "tui goes on until it is ended" in told.out + told.err
    assert alice("watch", "stop", "--all").code == 0
