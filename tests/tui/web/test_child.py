"""The process of one page's app: what it says, and that it ends."""

from __future__ import annotations

import sys

import pytest

from tests.tui.web.serving import alive
from tui.web import child
from tui.web.child import Child


def python(text: str) -> Child:
    return Child([sys.executable, "-c", text])


async def shown(one: Child) -> bytes:
    return b"".join([text async for text in one.output()])


async def test_messages_after_the_line_that_begins_them() -> None:
    words = "import sys; sys.stdout.buffer.write(b'noise\\n__GANGLION__\\n' + {} ); sys.stdout.flush()"
    for sent, expected in [
        (r"b'D\0\0\0\2hi' + b'M\0\0\0\2{}' + b'D\0\0\0\1!'", b"hi!"),
        (r"""b'D\0\0\0\2hi' + b'M\0\0\0\17{"type":"exit"}' + b'D\0\0\0\1!'""", b"hi"),
        (r"b'D\0\0\0\2hi' + b'D\xff\xff\xff\xff'", b"hi"),
        (r"b'D\0\0\0\2hi' + b'D\0\0'", b"hi"),
        (r"b'M\0\0\0\1['", b""),
    ]:
        one = python(words.format(sent))
        await one.start(80, 24)
        assert await shown(one) == expected, sent
        assert await one.end() == ""


async def test_an_app_that_fails_says_why() -> None:
    one = python("import sys; sys.exit('svc: the screen \\x1b[2J is gone')")
    await one.start(80, 24)
    assert await shown(one) == b""
    said = await one.end()
    assert said.startswith("svc: the screen ")
    assert "\x1b" not in said


async def test_a_program_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError):
        await Child(["/no/such/program"]).start(80, 24)


async def test_an_app_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "END_SECONDS", 0.3)
    one = python(
        "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "print('__GANGLION__', flush=True); sys.stdout.buffer.write(b'D\\0\\0\\0\\1x'); sys.stdout.flush(); "
        "time.sleep(600)"
    )
    await one.start(80, 24)
    async for text in one.output():
        assert text == b"x"
        break
    await one.end()
    assert not alive(one._running.pid)
