"""The commands `svc repo release list|create|view|edit|delete`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from localstore.core.encoding import is_hex_digest
from localstore.core.errors import NotFound, SvcError, UsageError
from localstore.core.model import release as releases
from localstore.core.model.limits import NOTES_BYTES
from localstore.core.model.release import Release, ReleaseCreate, ReleaseEdit
from localstore.core.model.repo import Repo
from localstore.core.paths import terminal_safe
from localstore.core.words import count
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.cmd.frame.text_options import text_of
from svc.cmd.issue.words import author
from svc.console import Column, answers
from svc.console.table import size
from svc.flows.place.refs import explained_not_found, find_abbreviated, is_relative, seal_of
from svc.http.checked import require_valid

LIST = "svc repo release list"
Notes = Annotated[str | None, typer.Option("-n", "--notes", metavar="TEXT", help="The notes")]
NotesFile = Annotated[
    str | None,
    typer.Option("-F", "--notes-file", metavar="FILE", help="The file that holds them; - is standard input"),
]


def notes_of(text: str | None, file: str | None) -> str | None:
    """Return the notes from `--notes` or `--notes-file`; None if neither is given. Raises UsageError if both
    are given, if the file cannot be read, or if the notes are too long."""
    return text_of(text, file, ("--notes", "--notes-file"), "the text of the notes", NOTES_BYTES)


def files(record: dict[str, Any]) -> int:
    return len(record["assets"])


def is_signed(record: dict[str, Any]) -> bool:
    return bool(record["publication"]["signed"])


COLUMNS = (
    Column("version", kind="name"),
    Column("seal_id", kind="id"),
    Column("files", files),
    Column("signed", is_signed),
    Column("author", author, spare=1),
    Column("created_at", kind="time"),
)
Version = Annotated[str, typer.Argument(help="The version, such as v1.0.0")]


@answers(COLUMNS, Release)
def list_releases(ctx: Ctx, limit: Limit = 30) -> None:
    """List releases

    The newest release comes first.

    Examples:
    svc repo release list -R alice/notes
    """
    repo = ctx.readable_repo
    rows = ctx.reader.items(releases.LIST, limit=limit, id=repo.id)
    ctx.out.rows(rows, COLUMNS, Release, empty="no releases")


@answers(COLUMNS, Release)
def create(
    ctx: Ctx,
    version: Version,
    paths: Annotated[list[str] | None, typer.Argument(metavar="[FILE]...", help="Files to upload")] = None,
    seal: Annotated[
        str, typer.Option("--seal", "--commit", metavar="SEAL", help="The seal that it names, by its id")
    ] = "",
    ref: Annotated[
        str,
        typer.Option(
            "--from", "--target", metavar="REF", help="The newest seal of a branch, or that of a tag"
        ),
    ] = "",
    notes: Notes = None,
    notes_file: NotesFile = None,
    sign: Annotated[bool, typer.Option("--sign", help="Sign it with its files")] = False,
) -> None:
    """Create a release of an exact seal

    Without --seal or --from, the newest seal of the default branch is released, even if this folder is on
    another branch. The seal of a release never changes; its notes can be edited.

    Examples:
    svc repo release create v1.0.0 --notes "First release" dist/app.tar.gz
    svc repo release create v1.0.1 --seal 3f2a91 --notes-file CHANGES.md
    """
    from svc.flows.assets.local import local_files
    from svc.flows.assets.upload import upload
    from svc.flows.catalog import publication

    if seal and ref:
        raise UsageError("--seal and --from both name a seal; use one of them")
    text = notes_of(notes, notes_file) or ""
    local = local_files(paths or [])
    if sign and not local:
        raise UsageError("--sign signs files; name those of the release")
    repo = ctx.repo
    source = ref or repo.default_branch
    at = _seal(ctx, repo, seal) if seal else seal_of(ctx.obj, repo, source)
    body = require_valid(ReleaseCreate(version=version, seal_id=at, notes=text))
    release = ctx.api.send(releases.CREATE, body, id=repo.id)
    try:
        for _ in upload(ctx.api, repo.id, version, local, False, ctx.obj.progress):
            pass
    except (SvcError, KeyboardInterrupt):
        names = " ".join(terminal_safe(path) for path in paths or [])
        ctx.out.note(
            f"svc: release {version} is there without all of its files; "
            f"to go on: svc repo release upload {version} {names}"
        )
        raise
    if local:
        release = ctx.api.send(releases.GET, id=repo.id, v=version)
    if sign:
        release = publication.sign(ctx.api, repo.id, release, ctx.obj.sessions.signing_key(), local)
    what = f" with {len(local)} files" if len(local) > 1 else " with 1 file" if local else ""
    named = "" if seal else f" ({terminal_safe(source)})"
    sentence = f"Created release {release.version} of {release.seal_id[:12]}{named}{what}"
    ctx.out.done(sentence, release, COLUMNS, Release, value=release.version)


@answers((*COLUMNS, Column("notes")), Release)
def view(
    ctx: Ctx,
    version: Annotated[str, typer.Argument(metavar="[VERSION]", help="The version; else the newest")] = "",
) -> None:
    """Show a release

    Prints its seal, its notes and its files. If it is signed, the signature is verified.

    Examples:
    svc repo release view v1.0.0
    svc repo release view --json assets
    """
    from svc.flows.catalog import publication

    repo = ctx.readable_repo
    release = find(ctx, repo, version)
    if (fault := publication.fault_of(repo.id, release)) is not None:
        ctx.out.note(f"svc: {fault}")
    lines = [release.notes.rstrip()] if release.notes.strip() else []
    if release.assets:
        width = max(len(terminal_safe(asset.name)) for asset in release.assets)
        listed = (
            f"{terminal_safe(asset.name):{width}}  {size(asset.size):>9}  {asset.blake3[:12]}"
            for asset in release.assets
        )
        lines.append("\n".join(listed))
    ctx.out.record(release, COLUMNS, Release, body="\n\n".join(lines), text="notes")


@answers(COLUMNS, Release)
def edit(ctx: Ctx, version: Version, notes: Notes = None, notes_file: NotesFile = None) -> None:
    """Rewrite the notes of a release

    Examples:
    svc repo release edit v1.0.0 --notes "Mends the parser"
    svc repo release edit v1.0.0 --notes-file CHANGES.md
    """
    text = notes_of(notes, notes_file)
    if text is None:
        raise UsageError("say the new notes: --notes TEXT or --notes-file FILE")
    repo = ctx.repo
    with explained_not_found(repo, f"release {version}", LIST):
        release = ctx.api.send(releases.EDIT, require_valid(ReleaseEdit(notes=text)), id=repo.id, v=version)
    ctx.out.done(f"Rewrote the notes of release {version}", release, COLUMNS, Release, value=version)


@answers((Column("version"),))
def delete(ctx: Ctx, version: Version) -> None:
    """Delete a release and its assets

    The seal of the release is not deleted.

    Examples:
    svc repo release delete v1.0.0 --yes
    """
    repo = ctx.repo
    with explained_not_found(repo, f"release {version}", LIST):
        release = ctx.api.send(releases.GET, id=repo.id, v=version)
        ctx.confirm(
            f"Deleting release {version} of {repo.full_name} and its {count(len(release.assets), 'asset')}"
        )
        ctx.api.send(releases.DELETE, id=repo.id, v=version)
    ctx.out.done(f"Deleted release {version}", {"version": version}, (Column("version"),), value=version)


def find(ctx: Ctx, repo: Repo, version: str) -> Release:
    """Return the release with this version. If the version is empty, return the newest. Raises NotFound if
    there is none."""
    if version:
        with explained_not_found(repo, f"release {version}", LIST):
            return ctx.reader.send(releases.GET, id=repo.id, v=version)
    for newest in ctx.reader.items(releases.LIST, limit=1, id=repo.id):
        return newest
    raise NotFound(f"{repo.full_name} has no releases")


def _seal(ctx: Ctx, repo: Repo, typed: str) -> str:
    """Return the full id of the seal that `typed` names, by its id, the beginning of the id, or HEAD~N.
    Raises NotFound if there is no such seal."""
    if is_relative(typed):
        return seal_of(ctx.obj, repo, typed)
    seal = typed if is_hex_digest(typed) else find_abbreviated(ctx.obj, repo, typed)
    if seal is None:
        raise NotFound(f"{repo.full_name} has no seal {typed}; --from takes the names of branches and tags")
    return seal
