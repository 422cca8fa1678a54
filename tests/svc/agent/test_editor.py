"""What the clients that edit a text may send."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from localstore.agent.server import Follower, Lines
from localstore.agent.talk import Request
from localstore.core.errors import Invalid, UsageError
from svc.agent.editor import Editor, Plugin, editor_of, require_edit


@pytest.fixture
def follower() -> Iterator[Follower]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Follower(ours, Lines(ours))


def _request(**words: str) -> Request:
    return Request("edit", folder="/f", path="a.txt", **words)


def test_a_client_is_a_plugin_if_it_names_a_unit(follower: Follower) -> None:
    assert type(editor_of(_request(session="abc"), follower)) is Editor
    assert type(editor_of(_request(unit="bytes"), follower)) is Plugin


@pytest.mark.parametrize("session", ["", "a b", "../x", "a" * 65])
def test_a_session_is_a_word(session: str) -> None:
    with pytest.raises(UsageError, match="a session of letters and digits"):
        require_edit(_request(session=session))


def test_nothing_is_changed_before_the_text_was_sent(follower: Follower) -> None:
    plugin = Plugin("a.txt", "bytes", follower)
    with pytest.raises(Invalid, match="wait for it before you change it"):
        plugin.hear(b'{"n": 1, "splices": [[0, 0, "x"]]}')


@pytest.mark.parametrize("line", [b"", b"[]", b'{"n": "1"}', b'{"splices": [[0]]}', b"\xff", b"{" * 10_000])
@pytest.mark.parametrize("unit", ["", "bytes"])
def test_a_line_that_is_no_edit_is_refused(follower: Follower, unit: str, line: bytes) -> None:
    with pytest.raises(Invalid, match="this is not an edit"):
        editor_of(_request(unit=unit, session="abc"), follower).hear(line)
