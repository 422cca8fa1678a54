"""The commands `svc conflicts` and `svc resolve`."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from localstore.core.diff.text_merge import has_markers, mark_conflicts
from localstore.core.errors import EXIT_FAILED, ClientError, UsageError
from localstore.core.storage.file_kind import kind_of
from localstore.sync.owning import open_copy
from localstore.sync.working_copy import WorkingCopy
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.editor import draft
from svc.console import Column, answers
from svc.flows.editor import editor, is_named, run
from svc.flows.merge import resolve as flow
from svc.flows.place.folder import turn

LIST = (
    Column("path", kind="name"),
    Column("kept_as", kind="name"),
    Column("lines", spare=2),
    Column("kept_lines", spare=3),
    Column("by", spare=1),
)
SENTENCES = {
    "mine": "Resolved {path}: it is your version now",
    "theirs": "Resolved {path}: it stays as it is",
    "edited": "Resolved {path} as you wrote it",
    "tool": "Resolved {path} as the program left it",
    "other": "Resolved {path}: it is the other version now",
    "absent": "Resolved {path}: it stays deleted",
    "gone": "The conflict in {path} is over: {kept} was deleted",
}
INSTEAD = "add --mine, --theirs or --tool CMD"
COLUMNS = (Column("path"), Column("how"), Column("kept_as"), Column("trash"))


@answers(LIST)
def conflicts(ctx: Ctx) -> None:
    """List files in conflict

    The file at PATH has the version that arrived first, and KEPT_AS is the copy with your version. LINES and
    KEPT_LINES are the line numbers where the two texts differ. BY is the author of the version that arrived
    first. svc resolve PATH ends a conflict. If a path has several conflicts, give svc resolve the path of the
    copy instead. Exits 1 if there is a conflict.

    Examples:
    svc conflicts
    svc conflicts --json path,kept_as
    """
    with _folder(ctx) as copy:
        records, over = flow.conflicts(copy)
    for record in over:
        ctx.out.note(f"the conflict in {record.path} is over: {record.kept_as} was deleted")
    ctx.out.rows([record._asdict() for record in records], LIST, empty="no conflicts")
    if records:
        ctx.exit(EXIT_FAILED)


@answers(COLUMNS)
def resolve(
    ctx: Ctx,
    path: Annotated[str, typer.Argument(metavar="PATH", help="The file, or the copy that kept your version")],
    mine: Annotated[bool, typer.Option("--mine", help="The file becomes your version, as kept")] = False,
    theirs: Annotated[bool, typer.Option("--theirs", help="The file stays as it is")] = False,
    tool: Annotated[
        str, typer.Option("--tool", metavar="CMD", help="Merge with this program, as git mergetool does")
    ] = "",
) -> None:
    """Choose or write the version that a file in conflict gets

    Without an option your editor opens (VISUAL, EDITOR; without a terminal this can be a script). It shows
    one text, which is merged where possible and has both versions between markers elsewhere. When you save it
    without markers, it becomes the file. Your copy moves to a trash folder, whose name is printed. On the
    branch this is an ordinary edit.

    A program that --tool names gets the files BASE LOCAL REMOTE MERGED, in this order. If CMD contains $BASE,
    $LOCAL, $REMOTE or $MERGED, the names of the files are put there instead. LOCAL is your version, and what
    the program writes to MERGED becomes the file.

    Examples:
    svc resolve app.py
    svc resolve app.py --theirs
    svc resolve app.py --tool 'vimdiff $LOCAL $REMOTE $MERGED'
    """
    if mine + theirs + bool(tool) > 1:
        raise UsageError("--mine, --theirs and --tool are three ways; use one of them")
    repo_path = ctx.path_in_repo(path)
    with _folder(ctx) as copy:
        conflict = flow.open_conflict(copy, repo_path)
        if conflict.over:
            _report(ctx, flow.end(copy, conflict))
            return
        if theirs:
            _report(ctx, flow.resolve(copy, conflict, "theirs"))
            return
        if mine:
            _report(ctx, flow.resolve(copy, conflict, "mine"))
            return
        if not tool and not ctx.out.interactive and not is_named(ctx.obj.environment):
            raise UsageError(f"there is no terminal for an editor; {INSTEAD}")
        texts = flow.texts(copy, conflict)
    _by_hand(ctx, conflict, texts, tool)


def _by_hand(ctx: Ctx, conflict: flow.OpenConflict, texts: flow.Texts, tool: str) -> None:
    """Let the user merge the texts of a conflict in an editor or a `tool`, and store the result. While they
    work, the folder is not locked. If storing fails, their text is kept in its file."""
    record = conflict.record
    by = f"@{record.by}'s version" if record.by else "the branch's version"
    text = mark_conflicts(texts.base, texts.theirs, texts.mine, by, f"yours, kept as {record.kept_as}")
    if text == texts.theirs:  # somebody brought all of it in by hand
        with _folder(ctx) as copy:
            _report(ctx, flow.resolve(copy, conflict, "mine" if conflict.copy_is_theirs else "theirs"))
        return
    command = [] if tool else editor(ctx.obj.environment, INSTEAD)
    with _merge_file(ctx, conflict, text) as file:
        if tool:
            _run_tool(tool, file, {"BASE": texts.base, "LOCAL": texts.mine, "REMOTE": texts.theirs})
        else:
            run(command, file, "nothing was changed")
        content = file.read_bytes()
        if kind_of(content) != "text":
            raise ClientError(f"what was saved is not text; {record.path} stays as it was")
        if has_markers(content):
            raise ClientError(
                f"what was saved still has markers (<<<<<<< or >>>>>>>); {record.path} stays as it was"
            )
        with _folder(ctx) as copy:
            done = flow.resolve(copy, conflict, "tool" if tool else "edited", content)
    _report(ctx, done)


def _merge_file(ctx: Ctx, conflict: flow.OpenConflict, text: bytes) -> AbstractContextManager[Path]:
    """A context that yields a temporary file with the text that the user merges by hand. If an error ends the
    context after the user changed the file, the file is kept and its path is printed."""

    def say_where(file: Path, _: BaseException) -> None:
        root = ctx.obj.linked_folder()[0]
        target, name = (
            shlex.quote(os.path.relpath(root / path, ctx.obj.folder))
            for path in (conflict.record.path, conflict.name)
        )
        ctx.out.note(
            f"what you wrote is kept in {file}; to use it, finish it there, then: "
            f"cp {shlex.quote(str(file))} {target} && svc resolve {name} --theirs"
        )

    return draft(Path(conflict.record.path).name, text, say_where)


def _run_tool(tool: str, merged: Path, versions: dict[str, bytes]) -> None:
    """Run a merge program on the file `merged` and on the files `versions`. `versions` has the bytes for
    BASE, LOCAL and REMOTE, which are written beside `merged`. Raises ClientError if the program fails."""
    names = {"MERGED": merged}
    for name, data in versions.items():
        names[name] = merged.with_name(f"{merged.stem}.{name}{merged.suffix}")
        names[name].write_bytes(data)
    order = [str(names[name]) for name in (*versions, "MERGED")]
    uses = re.search(r"\$\{?(BASE|LOCAL|REMOTE|MERGED)\b", tool)
    command = tool if uses else f'{tool} "$@"'
    variables = {name: str(file) for name, file in names.items()}
    code = subprocess.run(["sh", "-c", command, "sh", *order], env={**os.environ, **variables}).returncode
    if code != 0:
        raise ClientError(f"the program {tool} ended with {code}; {merged.name} stays as it was")


@contextmanager
def _folder(ctx: Ctx) -> Iterator[WorkingCopy]:
    """A context that yields the working copy of this folder without a connection to the server. Conflicts are
    stored only on this machine."""
    root, _ = ctx.obj.linked_folder()
    with open_copy(root, ctx.obj.home, progress=ctx.out.meter, turn=turn(ctx.obj)) as copy:
        yield copy


def _report(ctx: Ctx, done: flow.ResolveResult) -> None:
    outcome: str = done.how
    if done.absent and done.how in ("mine", "theirs"):
        outcome = "absent"
    elif done.renamed and done.how == "theirs":
        outcome = "other"
    sentence = SENTENCES[outcome].format(path=done.path, kept=done.kept_as)
    if done.trash and done.renamed:
        ctx.out.note(f"what {done.path} held before is in {done.trash}")
    elif done.trash:
        what = f" and what {done.path} held before are" if done.replaced else " is"
        ctx.out.note(f"{done.kept_as}{what} in {done.trash}")
    record = {
        "path": done.path,
        "how": done.how,
        "kept_as": done.kept_as,
        "trash": str(done.trash) if done.trash else None,
    }
    ctx.out.done(sentence, record, COLUMNS, value=done.path)
