"""Drafts: texts that the user has typed and not sent yet, stored in files.

drafts.keep("REPO-41", "What about")
drafts.read("REPO-41")"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,100}")  # a server gives the ids in the names of drafts


class Drafts:
    """Drafts by name in a folder of SVC_HOME. Each change is written to its file before the next key is
    handled."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def file(self, name: str) -> Path:
        """Returns the path of the file of a draft. Makes its folder if there is none."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self._path(name)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name if _PLAIN.fullmatch(name) else _short(name)}.md"

    def read(self, name: str) -> str:
        """Returns the text of a draft. Returns "" if there is no such draft or it cannot be read."""
        try:
            return self.file(name).read_text("utf-8", "replace")
        except OSError:
            return ""

    def exists(self, name: str) -> bool:
        """Returns whether there is such a draft."""
        return self._path(name).exists()

    def keep(self, name: str, text: str) -> None:
        """Replace the text of a draft. An empty text deletes the draft. If the disk is full, only this change
        is lost."""
        with suppress(OSError):
            file = self.file(name)
            if not text.strip():
                file.unlink(missing_ok=True)
                return
            temporary = file.with_suffix(f".{os.getpid()}")
            with open(temporary, "w", encoding="utf-8", opener=_private) as opened:
                opened.write(text)
            temporary.replace(file)


def name_draft(repo_id: str, number: int, *words: object) -> str:
    """Returns the name of the draft of a text about issue or proposal `number`. `words`: the kind of text,
    such as "verdict"."""
    end = f"-{_short(repr(words))}" if words else ""
    return f"{repo_id}-{number}{end}"


def _short(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
