"""A session over SSH. It runs the app on a pseudo-terminal, or one command of svc, in a confined process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import asyncssh

from localstore.core.errors import SvcError
from relay.base.logs import logger
from relay.ssh import people, terminal
from relay.ssh.agent import Agent, kind_of
from relay.ssh.link import Link
from relay.ssh.people import KeyHolder, Visit
from relay.ssh.process import Confined
from relay.ssh.pump import Input, Output

if TYPE_CHECKING:
    from relay.ssh.front import Front

EXIT_USAGE, EXIT_FAILED = 2, 1
LOOK_SECONDS = 2.0  # between two looks whether the session still holds
VARIABLES = 32  # of the client's environment that are kept
VARIABLE_BYTES = 1024  # of one with its name
LAST_SECONDS = 5.0  # that a client has to leave by itself
DRAIN_SECONDS = 5.0  # for the last output of a process that ended
REFUSED = (
    "there is no shell here, and nothing is run but words of svc, such as: ssh HOST repo list; "
    "to open the app, give the session a terminal: ssh -t HOST"
)


STOPPED = "the relay stops; connect again in a moment"


class Session(asyncssh.SSHServerSession[bytes]):
    """A session over SSH. `user`: the user name that the SSH client sent. `address`: the address of the
    client. `close`: ends the connection."""

    def __init__(
        self,
        front: Front,
        person: KeyHolder,
        agent: Agent,
        user: str,
        address: str,
        close: Callable[[], None],
    ) -> None:
        self._close, self._agent = close, agent
        self._front, self._person, self._user, self._address = front, person, user, address
        self._channel: Any = None
        self._term: str | None = None
        self._size = (80, 24)
        self._line: str | None = None
        self._input: Input | None = None
        self._outputs: list[Output] = []
        self._terminal = -1
        self._work: asyncio.Task[None] | None = None
        self._heard = 0.0
        self._early = bytearray()
        self._ended = False  # the client said that no more input comes

    @property
    def begun(self) -> bool:
        """Whether the client has requested a program or a shell."""
        return self._work is not None

    def dismiss(self) -> bool:
        """Restore the terminal, write that the relay stops, and end the session. Returns whether a session
        had begun."""
        if self._work is None:
            return False
        if not self._work.done():
            self._leave_screen()
            self._say(STOPPED)
            self._work.cancel()
        return True

    # --- what the client asks

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = chan
        chan._env = Variables()  # asyncssh keeps as many as are sent

    def pty_requested(
        self, term_type: str, term_size: tuple[int, int, int, int], term_modes: Mapping[int, int]
    ) -> bool:
        self._term, self._size = term_type, term_size[:2]
        return True

    def shell_requested(self) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        self._line = command
        return True

    def subsystem_requested(self, subsystem: str) -> bool:
        return False

    def session_started(self) -> None:
        self._heard = self._front.now()
        self._work = asyncio.get_running_loop().create_task(self._run())

    def data_received(self, data: bytes, datatype: int | None) -> None:
        self._heard = self._front.now()
        if self._input is not None:
            self._input.feed(data)
        elif len(self._early) < terminal.LINE_CHARS:
            self._early += data

    def eof_received(self) -> bool:
        self._ended = True
        if self._input is not None and self._term is None:
            self._input.end()
        return True

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        self._size = (width, height)
        if self._terminal >= 0:
            terminal.resize(self._terminal, width, height)

    def break_received(self, msec: int) -> bool:
        return False

    def pause_writing(self) -> None:
        for output in self._outputs:
            output.pause()

    def resume_writing(self) -> None:
        for output in self._outputs:
            output.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._work is not None:
            self._work.cancel()

    # --- carrying it out

    async def _run(self) -> None:
        code = EXIT_FAILED
        try:
            code = await self._run_seated()
        except SvcError as error:
            code = EXIT_USAGE if error.exit == EXIT_USAGE else EXIT_FAILED
            self._say(error.detail)
        except OSError as error:
            logger().error("ssh session failed", error=str(error))
            self._say("the relay could not start a session; try again later")
        finally:
            with suppress(OSError):
                self._channel.exit(code)
            asyncio.get_running_loop().call_later(LAST_SECONDS, self._close)

    async def _run_seated(self) -> int:
        """Run the session, or tell the user why it may not begin. Returns the exit code."""
        refusal = self._person.refusal or self._front.seat(self._person)
        if refusal:
            self._say(refusal)
            return EXIT_FAILED
        began = self._front.now()
        try:
            return await self._run_visit()
        finally:
            self._front.rise(self._person)
            seconds = round(self._front.now() - began, 1)
            logger().info("ssh session ended", account=self._person.account_id, seconds=seconds)

    async def _run_visit(self) -> int:
        node, person = self._front.node, self._person
        words = terminal.words_of(self._line) if self._line is not None else []
        if self._line is not None and not words:
            words = ["--help"]
        if not words and self._term is None:
            self._say(REFUSED)
            return EXIT_USAGE
        if self._user and await people.is_somebody_else(node, person, self._user):
            self._say(
                f"this key is {person.handle}'s and you connected as {self._user}; connect as "
                f"{person.handle}@, or with a key of {self._user}"
            )
            return EXIT_FAILED
        visit = await people.begin(node, person, self._address)
        link = Link(self._front.door, self._address, self._sign)
        confined: Confined | None = None
        try:
            files = self._open_files()
            try:
                confined = await self._front.processes.start(
                    files,
                    link.theirs.fileno(),
                    terminal.environment_of(self._channel.get_environment_bytes(), self._term),
                )
            finally:
                for fd in set(files):
                    os.close(fd)
            link.theirs.close()
            own_user, signs = self._front.processes.own_user, self._agent.forwarded
            link.begin(visit.welcome(node, words, self._term is not None, own_user, signs))
            return await self._until_over(visit, confined)
        finally:
            await asyncio.shield(self._end(visit, link, confined))

    async def _sign(self, message: bytes) -> bytes:
        """Sign with the user's ssh-agent. Raises SignatureRefused."""
        person = self._person
        kind = kind_of(message, self._front.node.config.public_url, person.account_id, person.key_id)
        signature = await self._agent.sign(message)
        logger().info("ssh agent signed", account=person.account_id, key=person.key_id, what=kind)
        return signature

    def _open_files(self) -> tuple[int, int, int]:
        """Open the standard input, output and error of the process: a pseudo-terminal, or pipes. Start to
        copy between them and the SSH channel. Returns the three descriptors for the process."""
        if self._term is not None:
            self._terminal, theirs = terminal.open_terminal(*self._size)
            self._outputs = [Output(os.dup(self._terminal), self._channel.write)]
            ours_in, files = self._terminal, (theirs, theirs, theirs)
        else:
            read_in, ours_in = os.pipe()
            out, write_out = os.pipe()
            errors, write_errors = os.pipe()
            self._outputs = [
                Output(out, self._channel.write),
                Output(errors, self._channel.write_stderr),
            ]
            files = (read_in, write_out, write_errors)
        self._input = Input(ours_in, self._channel.pause_reading, self._channel.resume_reading)
        self._input.feed(bytes(self._early))
        if self._ended and self._term is None:
            self._input.end()
        return files

    async def _until_over(self, visit: Visit, confined: Confined) -> int:
        """Wait until the process ends, the session ends, or the user has pressed no key for too long. Returns
        the exit code."""
        over = asyncio.Event()
        loop = asyncio.get_running_loop()
        pid = os.pidfd_open(confined.process.pid)
        loop.add_reader(pid, over.set)
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await over.wait()
                    break
                why = await people.why_ended(self._front.node, visit)
                if not why and self._front.now() - self._heard > self._front.settings.idle:
                    why = f"nobody pressed a key for {_duration(self._front.settings.idle)}; connect again"
                if why:
                    self._leave_screen()
                    self._say(why)
                    return EXIT_FAILED
        finally:
            loop.remove_reader(pid)
            os.close(pid)
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                for output in self._outputs:
                    await output.closed.wait()
        code = confined.process.wait()
        return code if code >= 0 else EXIT_FAILED

    async def _end(self, visit: Visit, link: Link, confined: Confined | None) -> None:
        for output in self._outputs:
            output.close()
        if self._input is not None:
            self._input.close()
        self._terminal = -1
        link.close()
        try:
            if confined is not None:
                await self._front.processes.end(confined)
        finally:
            await people.end(self._front.node, visit)

    def _leave_screen(self) -> None:
        """Restore the client's terminal, because an app that was killed could not."""
        for output in self._outputs:
            output.close()
        if self._term is not None:
            self._write(b"\x1b[?1049l\x1b[?7h\x1b[?25h\x1b[?1000;1002;1003;1006;2004l\x1b[0m\r\n")

    def _say(self, sentence: str) -> None:
        self._write(f"svc: {sentence}\r\n".encode())

    def _write(self, data: bytes) -> None:
        with suppress(OSError):
            self._channel.write_stderr(data)


class Variables(dict[bytes, bytes]):
    """The environment variables that a client sends. Only the first ones are kept, limited in number and
    size."""

    def __setitem__(self, name: bytes, value: bytes) -> None:
        if (len(self) < VARIABLES or name in self) and len(name) + len(value) <= VARIABLE_BYTES:
            super().__setitem__(name, value)


def _duration(seconds: int) -> str:
    """A duration in words, such as "4 hours" or "90 s"."""
    hours, rest = divmod(seconds, 3600)
    return f"{seconds} s" if rest or not hours else f"{hours} hours" if hours > 1 else "an hour"
