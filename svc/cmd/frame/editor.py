"""Lets the user write text in an editor, as git does."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from localstore.core.errors import ClientError
from svc.flows.editor import editor, run

NAME = "COMMIT_EDITMSG"  # editors know by this name that lines with # are remarks


@contextmanager
def edit_text(remarks: list[str], environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """A context that opens an editor on an empty text with `remarks` below it. It yields the text that the
    user wrote, and its file. The file is deleted at the end, unless an error ends the context.

    Raises UsageError if there is no editor, ClientError if the editor fails or the text is empty."""
    command = editor(environment, "say the message with -m")
    folder = Path(tempfile.mkdtemp(prefix="svc-"))
    file = folder / NAME
    file.write_text("\n" + "".join(f"# {line}".rstrip() + "\n" for line in remarks), "utf-8")
    text = ""
    try:
        run(command, file, "nothing was sent; use -m")
        text = _without_remarks(file.read_text("utf-8", "replace"))
        if not text:
            raise ClientError("the message is empty; nothing was sent")
        yield text, file
        text = ""
    finally:
        if not text:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def draft(name: str, initial: bytes, say_where: Callable[[Path, BaseException], None]) -> Iterator[Path]:
    """A context that yields a file called `name` with the content `initial`, for an editor. The file is
    deleted at the end. It is kept if an error ends the context after the user changed the file. In this case
    `say_where` is called with the file and the error."""
    folder = Path(tempfile.mkdtemp(prefix="svc-"))
    file = folder / name
    is_kept = False
    try:
        file.write_bytes(initial)
        yield file
    except BaseException as error:
        with suppress(OSError):
            is_kept = file.read_bytes() not in (b"", initial)
        if is_kept:
            say_where(file, error)
        raise
    finally:
        if not is_kept:
            shutil.rmtree(folder, ignore_errors=True)


CUT = "# ------------------------ >8 ------------------------"


@contextmanager
def compose_text(
    initial: str, remarks: list[str], environment: Mapping[str, str]
) -> Iterator[tuple[str, Path]]:
    """A context that opens an editor on the text `initial`, followed by a marking line and `remarks`. Only
    what is above the marking line is the text, so the text can have lines that begin with #. It yields the
    text that the user wrote, and its file. The file is deleted at the end, unless an error ends the
    context."""
    command = editor(environment, "say it with -t and -b")
    folder = Path(tempfile.mkdtemp(prefix="svc-"))
    file = folder / "TEXT.md"
    below = [CUT, "# Everything below this line is left out.", *(f"# {line}".rstrip() for line in remarks)]
    file.write_text(f"{initial}\n\n" + "\n".join(below) + "\n", "utf-8")
    text = ""
    try:
        run(command, file, "nothing was sent; use -b")
        text = file.read_text("utf-8", "replace").partition(CUT)[0].strip()
        if not text:
            raise ClientError("the text is empty; nothing was sent")
        yield text, file
        text = ""
    finally:
        if not text:
            shutil.rmtree(folder, ignore_errors=True)


def _without_remarks(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines() if not line.startswith("#")).strip()
