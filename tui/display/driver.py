"""The terminal in which the app runs. Modes of the terminal that the app has switched on are switched off
again, whichever way the app ends."""

from __future__ import annotations

import os
import signal
import termios
import threading
from contextlib import suppress
from typing import Any

from textual.drivers.linux_driver import LinuxDriver

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
GRACE = 3.0  # seconds that the app may take to end after such a signal
# Paste and resize reports off, lines wrap, keyboard as it was, mouse and alternate screen off, cursor shown.
RESTORED = "\x1b[?2004l\x1b[?2048l\x1b[?7h\x1b[<u\x1b[?1000l\x1b[?1006l\x1b[?1004l\x1b[?1049l\x1b[?25h\x1b[m"


class TerminalDriver(LinuxDriver):
    """Textual's driver for terminals, which also cares for the end of the app. After a signal, it restores
    the terminal before the app ends. If the terminal does not accept output any more, it ends the app.
    `ended_by`: number of the signal that ended the app, 0 if none did."""

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        self.ended_by = 0
        self._leaves = False

    def start_application_mode(self) -> None:
        super().start_application_mode()  # type: ignore[no-untyped-call]
        for number in ENDING:
            signal.signal(number, self._end)

    def write(self, data: str) -> None:
        if self._writer_thread is not None and self._writer_thread.is_alive():
            super().write(data)
        else:  # the thread ended with an error: nobody reads the terminal
            self._leave()

    def _end(self, number: int, _frame: object) -> None:
        self.ended_by = number
        # An app that does not get round to it, or waits for a terminal that is gone, ends without.
        waits = threading.Timer(GRACE, self._die)
        waits.daemon = True
        waits.start()
        self._leave()

    def _leave(self) -> None:
        """Make the app exit. Later calls do nothing."""
        if not self._leaves:
            self._leaves = True
            with suppress(RuntimeError):  # its loop has ended
                self._loop.call_soon_threadsafe(self._app.exit)

    def _die(self) -> None:
        if self._writer_thread is not None and self._writer_thread.is_alive():  # else an editor has it
            with suppress(OSError):
                os.set_blocking(self._writer_thread.fileno(), False)
                os.write(self._writer_thread.fileno(), RESTORED.encode())
        if self.attrs_before is not None:
            with suppress(termios.error, OSError):
                termios.tcsetattr(self.fileno, termios.TCSANOW, self.attrs_before)
        os._exit(128 + self.ended_by)

    # Presses and the wheel (1000), in a form without a limit of columns (1006). Every motion (1003), which
    # Textual asks for, would be bytes over SSH and is of no use here.

    def _enable_mouse_support(self) -> None:
        if self._mouse:
            self.write("\x1b[?1000h\x1b[?1006h")

    def _disable_mouse_support(self) -> None:
        if self._mouse:
            self.write("\x1b[?1000l\x1b[?1006l")


def die_of(number: int) -> None:
    """End this process by the signal `number`, so that its parent process sees why it ended."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
