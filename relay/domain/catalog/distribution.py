"""Builds of the client, from the folder that the operator gives (`TR_CLIENT_BUILDS`).

`release.json` in that folder lists the builds; a file that it does not list cannot be downloaded. The folder
is read at each request, so that a new release needs no restart: put the new files there first and replace
`release.json` last.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from localstore.core.errors import NotFound, Unavailable
from localstore.core.model.distribution import Build, ClientRelease
from localstore.core.model.limits import MIB
from relay.caller import Caller
from relay.http.routing import Reply

LIST_BYTES = 1 * MIB
PIECE = 1 * MIB
_SCRIPTS = Path(__file__).parents[2] / "pages"
_TYPES = {"install.sh": "text/x-shellscript; charset=utf-8", "install.ps1": "text/plain; charset=utf-8"}
ASKED_AGAIN = {"cache-control": "no-cache"}


async def release(caller: Caller) -> ClientRelease:
    """The newest builds of the client: size, SHA-256 and source commit of each

    Raises NotFound if the node offers no builds, Unavailable if its list cannot be read.
    """
    folder = caller.node.config.client_builds
    if folder is None:
        raise NotFound
    try:
        client_release = await asyncio.to_thread(_read_list, folder / "release.json")
    except FileNotFoundError:
        raise NotFound from None
    except (OSError, ValueError, msgspec.MsgspecError):
        raise Unavailable("the list of builds on this node cannot be read; tell its operator") from None
    at = f"{caller.node.config.public_url}/cli/download/"
    return replace(
        client_release, artifacts=[replace(build, url=at + build.name) for build in client_release.artifacts]
    )


async def download(caller: Caller, name: str) -> Reply:
    """One build of the client; with ETag and ranges

    The ETag is the SHA-256 of the build, which the client verifies.
    """
    build = next((each for each in (await release(caller)).artifacts if each.name == name), None)
    folder = caller.node.config.client_builds
    if build is None or folder is None:
        raise NotFound
    path = folder / build.name
    size = await asyncio.to_thread(_size_of, path)
    if size is None:
        raise NotFound
    if size != build.size:
        raise Unavailable("this build is not the one that the list names; tell the operator of the node")

    def section(start: int, end: int) -> AsyncIterator[bytes]:
        return _stream_bytes(path, start, end)

    return Reply(
        content_type="application/octet-stream",
        stream=section(0, build.size),
        section=section,
        length=build.size,
        etag=f'"{build.sha256}"',
        headers={**ASKED_AGAIN, "content-disposition": f'attachment; filename="{build.name}"'},
    )


async def script(caller: Caller, name: str) -> Reply:
    """The installation script `name`, with the list of builds and their digests filled in."""
    client_release = await release(caller)
    text = await asyncio.to_thread((_SCRIPTS / name).read_text, "utf-8")
    table = "\n".join(_format_row(build) for build in client_release.artifacts)
    text = text.replace("@ORIGIN@", caller.node.config.public_url)
    text = text.replace("@VERSION@", client_release.version).replace("@BUILDS@", table)
    return Reply(text.encode(), content_type=_TYPES[name], headers=ASKED_AGAIN)


def _format_row(build: Build) -> str:
    return f"{build.os} {build.arch} {build.name} {build.sha256}"


def _read_list(path: Path) -> ClientRelease:
    with path.open("rb") as file:
        raw = file.read(LIST_BYTES + 1)
    if len(raw) > LIST_BYTES:
        raise ValueError("the list is too long")
    return msgspec.json.decode(raw, type=ClientRelease)


def _size_of(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


async def _stream_bytes(path: Path, start: int, end: int) -> AsyncIterator[bytes]:
    with await asyncio.to_thread(path.open, "rb") as file:
        file.seek(start)
        while start < end and (piece := await asyncio.to_thread(file.read, min(PIECE, end - start))):
            start += len(piece)
            yield piece
