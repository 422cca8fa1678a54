"""The command `svc show`."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
import typer

from localstore.core.errors import ServerMisbehaved
from localstore.core.model.history import ChangedFile, Seal
from localstore.core.model.limits import CHUNKED_FILE
from svc.cmd.frame import changes
from svc.cmd.frame.context import Ctx
from svc.cmd.log import author
from svc.console import Column, Out, answers
from svc.flows.history.show import show as show_seal
from svc.flows.place.refs import default_ref, seal_of

COLUMNS = (
    Column("id"),
    Column("author", author),
    Column("device"),
    Column("created_at"),
    Column("verified"),
    Column("parents"),
    Column("message"),
    Column("files"),
)


@answers(COLUMNS, Seal)
def show(
    ctx: Ctx,
    seal: Annotated[
        str, typer.Argument(metavar="[SEAL[:PATH]]", help="A branch, tag or seal; else this folder's branch")
    ] = "",
    stat: Annotated[bool, typer.Option("--stat", help="Line counts instead of the patch")] = False,
    name_only: Annotated[bool, typer.Option("--name-only", help="Only the paths that changed")] = False,
) -> None:
    """Show a seal: its message, who made it on which device, and what it changed

    The signature of the seal is verified on this machine. If that fails, the output says so and the exit code
    is 1. SEAL:PATH prints the bytes of that file instead.

    Examples:
    svc show
    svc show v1.0 --stat
    svc show 3f2a91 --json message,verified
    svc show v1.0:src/main.py
    """
    repo = ctx.readable_repo
    ref, path = _split_argument(seal)
    seal_id = seal_of(ctx.obj, repo, ref or default_ref(ctx.obj, repo))
    if path:
        where = ctx.path_in_repo(path)
        ctx.out.binary([ctx.reader.history.raw(repo.id, seal_id, where, CHUNKED_FILE)])
        return
    result = show_seal(ctx.obj, repo, seal_id)
    seal_record, fault, files = result.seal, result.fault, result.files
    if ctx.out.format.as_data:
        record = msgspec.to_builtins(seal_record) | {
            "device": seal_record.provenance.device_key_id,
            "verified": fault is None,
            "files": msgspec.to_builtins(files),
        }
        ctx.out.record(record, COLUMNS, Seal)
    else:
        ctx.out.text(_text(seal_record, fault, files, stat, name_only, ctx.out), diff=True)
    if fault is not None:
        raise ServerMisbehaved(f"this seal does not verify: {fault}")


def _text(
    seal: Seal, fault: str | None, files: list[ChangedFile], stat: bool, name_only: bool, out: Out
) -> str:
    head, _, rest = changes.heading(seal, out).partition("\nDate:")
    verified = f"no: {fault}" if fault else "yes, by the signature of this device, checked here"
    if fault is None and seal.key.revoked_at is not None:
        verified += f"; its key was revoked {out.when(seal.key.revoked_at)}"
    text = f"{head}\nDevice: {seal.provenance.device_key_id}\nVerified: {verified}\nDate:{rest}\n"
    if name_only:
        return text + changes.names(files)
    text += changes.stat(files, out.width)
    return text if stat else f"{text}\n{changes.patches(files)}"


def _split_argument(typed: str) -> tuple[str, str]:
    """Return (REF, PATH) from an argument REF:PATH, as git writes it. The ref may be pr:12, which itself has
    a colon. PATH is "" if there is none."""
    whole = re.fullmatch(r"(pr:[0-9]+|[^:]*)(?::(.*))?", typed, re.DOTALL)
    return (whole[1], whole[2] or "") if whole else (typed, "")
