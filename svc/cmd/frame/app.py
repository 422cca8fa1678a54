"""One run of `svc`: takes the arguments, runs the command, prints its error, and returns the exit code."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer.exceptions import Abort, TyperException

from localstore.core.errors import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_USAGE,
    SvcError,
)
from localstore.errors import FolderGone
from svc.cmd.frame.command import Group
from svc.cmd.frame.context import Run
from svc.console import Out
from svc.console.output import ReaderLeft, discard

_DASHED_KEY_ID = r"-[A-Za-z0-9_-]{42}"


def run(words: list[str], failed: Callable[[SvcError], None] = lambda error: None) -> int:
    """Run one command. Returns its exit code, which is 0 unless an error occurred. `failed`: called with an
    error of svc, before it is printed."""
    out = Out(os.environ)
    debug = os.environ.get("SVC_DEBUG") == "1"
    try:
        code = _call(words, out)
        out.flush()
        return code
    except (BrokenPipeError, ReaderLeft, SystemExit):  # the last one is what Typer makes of the first
        discard(sys.stdout)  # the reader has seen enough: `svc log | head`
        return EXIT_OK
    except SvcError as error:
        failed(error)
        if debug:
            raise
        out.error(error)
        return error.exit
    except TyperException as error:
        return _usage(out, error)
    except (KeyboardInterrupt, Abort):
        out.fail("interrupted; the same command goes on where it stopped" if out.goes_on else "interrupted")
        return EXIT_INTERRUPTED
    except OSError as error:
        if debug:
            raise
        if isinstance(error, FileNotFoundError) and _folder()[1]:
            out.error(FolderGone())
            return EXIT_FAILED
        what = f"{error.filename}: " if error.filename else ""
        out.fail(f"{what}{error.strerror or error}")
        return EXIT_FAILED
    except Exception as error:
        if debug:
            raise
        out.fail(f"something broke inside svc ({type(error).__name__}: {error}); SVC_DEBUG=1 shows where")
        return EXIT_FAILED


def normalise(words: list[str]) -> list[str]:
    """Rewrite words of the command line that the parser would misunderstand. `svc help WORDS` becomes `svc
    WORDS --help`. Two kinds of words would be taken for options: a device key id that begins with a dash gets
    the prefix `=`, and the reaction -1 is replaced by its name."""
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    if words[:2] == ["auth", "device"] and "--" not in words:
        words = [f"={word}" if re.fullmatch(_DASHED_KEY_ID, word) else word for word in words]
    if words[1:2] == ["react"]:
        words = ["thumbs_down" if word == "-1" else word for word in words]
    return words


def _call(words: list[str], out: Out) -> int:
    folder, gone = _folder()
    state = Run(out, os.environ, folder)
    state.gone = gone
    try:
        code = Group("").main(normalise(words), prog_name="svc", standalone_mode=False, obj=state)
    finally:
        state.close()
    if code == EXIT_INTERRUPTED:  # Typer's own answer to Ctrl-C
        raise KeyboardInterrupt
    return code if isinstance(code, int) else EXIT_OK


def _folder() -> tuple[Path, bool]:
    """Return the current folder, and whether it has been deleted. If it has, the root of the file system is
    returned instead."""
    try:
        return Path.cwd(), False
    except FileNotFoundError:
        return Path("/"), True


def _usage(out: Out, error: Any) -> int:
    """Print what is wrong with the arguments, the usage of the command, and where to read more. Returns the
    exit code."""
    say = getattr(error, "format_message", lambda: str(error))
    context = getattr(error, "ctx", None)
    instead = _instead(error)
    if instead:
        error.possibilities = None  # the most similar spellings of options that do something else
    out.fail(str(say()).rstrip(".") + instead)
    if context is not None:
        out.note(context.command.get_usage(context).strip())
        out.note(f"Read on: {context.command_path} --help")
    return EXIT_USAGE


def _instead(error: Any) -> str:
    """Return advice for an option or command of git or gh that svc lacks: what to type in svc. "" for any
    other mistake."""
    context, option = getattr(error, "ctx", None), getattr(error, "option_name", None)
    extra = "unexpected extra argument" in str(error)
    if context is None or (option is None and not extra):
        return ""
    from svc.cmd.frame.foreign_commands import option_hint

    hint = option_hint(context.command_path.partition(" ")[2], option)
    return f"; {hint}" if hint else ""
