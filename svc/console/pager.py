"""Shows long answers in the user's pager."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress

DEFAULT = "less -FRX"


def page(pieces: Iterable[str], environment: Mapping[str, str]) -> bool:
    """Show a text in SVC_PAGER, PAGER or less, each piece as soon as it is known. Returns False, and takes no
    piece, if there is no such program. Ctrl-C while a piece is awaited ends the text. KeyboardInterrupt is
    then raised once the user has left the pager."""
    words = shlex.split(environment.get("SVC_PAGER") or environment.get("PAGER") or DEFAULT)
    program = shutil.which(words[0]) if words else None
    if program is None or words == ["cat"]:
        return False
    settings = {**os.environ, "LESSCHARSET": "utf-8"}
    with subprocess.Popen([program, *words[1:]], stdin=subprocess.PIPE, env=settings) as process:
        assert process.stdin is not None  # noqa: S101 - it is a pipe
        stopped = writing = False
        try:
            for piece in pieces:
                writing = True
                process.stdin.write(piece.encode("utf-8", "replace"))
                process.stdin.flush()
                writing = False
        except BrokenPipeError:  # the reader has seen enough
            pass
        except KeyboardInterrupt:
            stopped = not writing
        with suppress(BrokenPipeError):
            process.stdin.close()
        with suppress(KeyboardInterrupt):
            process.wait()
    if stopped:
        raise KeyboardInterrupt
    return True
