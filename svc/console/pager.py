"""Shows long answers in the user's pager."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping

DEFAULT = "less -FRX"


def page(text: str, environment: Mapping[str, str]) -> bool:
    """Show `text` in SVC_PAGER, PAGER or less. Returns False if there is no such program."""
    words = shlex.split(environment.get("SVC_PAGER") or environment.get("PAGER") or DEFAULT)
    program = shutil.which(words[0]) if words else None
    if program is None or words == ["cat"]:
        return False
    settings = {**os.environ, "LESSCHARSET": "utf-8"}
    with subprocess.Popen([program, *words[1:]], stdin=subprocess.PIPE, env=settings) as process:
        try:
            process.communicate(text.encode("utf-8", "replace"))
        except (BrokenPipeError, KeyboardInterrupt):
            process.wait()
    return True
