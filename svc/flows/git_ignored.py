"""Finds new files that git ignores only for this user, by rules outside the repository. Can add lines to
`.svcignore` that exclude these files."""

from __future__ import annotations

import os

import msgspec

from localstore.core.errors import Invalid, TooLarge
from localstore.core.model.limits import IGNORE_FILE_BYTES, in_words
from localstore.folder.writer import replace_file
from localstore.sync.held_back import HeldBack, new_git_ignored
from localstore.sync.working_copy import WorkingCopy

RULES = ".svcignore"


class GitIgnored(msgspec.Struct):
    """The result of `git_ignored`. `files` are the files that git ignores and a push would send. `lines` are
    the lines for `.svcignore` that exclude them. `written` says whether the lines were added."""

    files: list[HeldBack]
    lines: list[str]
    written: bool = False


def git_ignored(copy: WorkingCopy, write: bool) -> GitIgnored:
    """Find the new files that git ignores but svc does not. With `write`, lines that exclude them are added
    to `.svcignore`. Raises TooLarge if `.svcignore` would get too long, Invalid if nothing can be added to
    it."""
    files = new_git_ignored(copy)
    result = GitIgnored(files, sorted({file.line for file in files}))
    if write and result.lines:
        _add(copy, result.lines)
        result.written = True
    copy.files.forget()
    return result


def _add(copy: WorkingCopy, lines: list[str]) -> None:
    old = b""
    if copy.exists(RULES):
        data = copy.files.read_up_to(RULES, IGNORE_FILE_BYTES)
        if data is None:
            raise Invalid(f"{RULES} is no file that can be read; put one there, then try again")
        old = data
    joint = b"" if not old or old.endswith(b"\n") else b"\n"
    new = old + joint + b"".join(os.fsencode(line) + b"\n" for line in lines)
    if len(new) > IGNORE_FILE_BYTES:
        raise TooLarge(
            f"{RULES} would be larger than {in_words(IGNORE_FILE_BYTES)}; write patterns there by hand"
        )
    replace_file(copy.folder / RULES, new)
