"""The program `svc`. `--version` is answered before anything else is imported."""

from __future__ import annotations

import _thread
import codecs
import contextlib
import gc
import io
import os
import sys
import time
from typing import NoReturn

from svc import UTF8_NAMES, __version__

INTERRUPTED = 130  # as a shell says it
INTERRUPTED_AGAIN = 0.01  # seconds after a lost Ctrl-C
COLLECTED_AFTER = 200_000  # new objects: a command on 20,000 files makes fewer, next to none of it garbage


def main() -> NoReturn:
    """Run the command of this process's arguments and exit."""
    gc.set_threshold(COLLECTED_AFTER)
    repeat_lost_interrupts()
    _require_utf8_names()
    _open_outputs()
    _prepare_streams()
    try:
        leave(answer(sys.argv[1:]))
    except KeyboardInterrupt:  # while modules are imported; `run` answers for all that comes after
        ignore_interrupts()
        sys.stderr.write("svc: interrupted\n")
        leave(INTERRUPTED)


def answer(words: list[str]) -> int:
    """Run the command `words`. Returns the exit code."""
    if words == ["--version"]:
        return _print_text(f"svc {__version__}\n")
    if os.environ.get("SVC_COMPLETE"):  # a shell asks what can stand at the cursor
        from pathlib import Path

        from svc.cmd.frame.complete import answer as complete

        return _print_text(complete(words, os.environ, Path.cwd()))
    from svc.cmd.frame.app import run

    return run(words)


def ignore_interrupts() -> None:
    """Ignore every further Ctrl-C, because the command is ending after one."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


def repeat_lost_interrupts() -> None:
    """Interrupt the main thread again when a Ctrl-C was lost. Python drops a KeyboardInterrupt that arrives
    in a destructor or in a callback of a weak reference, which imports have, too. The command would go on."""
    main_thread = _thread.get_ident()

    def interrupt() -> None:
        import signal

        time.sleep(INTERRUPTED_AGAIN)
        signal.pthread_kill(main_thread, signal.SIGINT)

    def hook(dropped: sys.UnraisableHookArgs) -> None:
        if dropped.exc_type is KeyboardInterrupt:
            _thread.start_new_thread(interrupt, ())
        else:
            sys.__unraisablehook__(dropped)

    sys.unraisablehook = hook


def _require_utf8_names() -> None:
    """Restart in Python's UTF-8 mode if the locale has another encoding. File names are bytes on the disk,
    and svc reads them as UTF-8 in every locale. So a file has the same name on every machine."""
    if sys.getfilesystemencoding() != "utf-8" and not sys.flags.utf8_mode:
        os.execv(sys.executable, [sys.executable, *UTF8_NAMES, *sys.orig_argv[1:]])  # noqa: S606


def _prepare_streams() -> None:
    """Set the encodings of standard input and output and of the arguments. Output never fails: characters
    that the terminal's encoding lacks are escaped. Input, output and arguments use the encoding of the
    locale, even if Python runs in UTF-8 mode, because people type and read them."""
    spoken = _spoken_encoding()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=spoken, errors="backslashreplace")
    if spoken is not None:
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(encoding=spoken)
        sys.argv[1:] = [_decode_word(word, spoken) for word in sys.argv[1:]]


def _spoken_encoding() -> str | None:
    """Return the name of the locale's encoding if Python, in UTF-8 mode, ignores that encoding. None if the
    locale's encoding is UTF-8 or ASCII, or if the user chose an encoding with PYTHONIOENCODING."""
    if "utf8" not in sys._xoptions or os.environ.get("PYTHONIOENCODING"):
        return None
    import locale

    encoding = codecs.lookup(locale.getencoding()).name
    return None if encoding in ("utf-8", "ascii") else encoding


def _decode_word(word: str, spoken: str) -> str:
    try:
        word.encode("utf-8")
    except UnicodeEncodeError:
        return os.fsencode(word).decode(spoken, "surrogateescape")
    return word


def _open_outputs() -> None:
    """Open /dev/null as stdout or stderr if the caller closed that stream (`svc status >&-`). Otherwise the
    next file that svc opens would get the stream's number, and output would be written into it."""
    for fd, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), fd)
            setattr(sys, name, os.fdopen(fd, "w"))


def _print_text(text: str) -> int:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader has seen enough
    except OSError as error:  # a full disk
        sys.stderr.write(f"svc: {error.strerror}\n")
        return 1
    return 0


def leave(code: int) -> NoReturn:
    """Flush the output and exit at once with this exit code. Python's own shutdown is skipped, because it
    takes a sixth of a short command's time. The command must have closed its files before."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
