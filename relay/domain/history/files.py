"""Reading trees and files at a seal, and the headers with which caches may keep them."""

from __future__ import annotations

import base64
import re

from sanic.request import Request

from localstore.core.encoding import b64u
from localstore.core.model.history import Blob, Tree, TreeFile
from localstore.core.model.limits import BLOB_INLINE
from localstore.core.tree import TreeEntry, check_path
from localstore.core.tree.directory import Child, join
from relay.caller import View
from relay.db.seal import SealRow
from relay.domain.history import sealed
from relay.domain.storage import chunked
from relay.http.routing import Reply

PUBLIC_SECONDS = 60  # for which a cache may serve public bytes without asking again
LISTED_AT_ONCE, LISTED_BYTES = 1000, 500  # files for which memory is reserved together; bytes of one
_SNIFFED = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
RAW_POLICY = "default-src 'none'; sandbox"
SVG_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"  # a drawing has its own styles
SVG = re.compile(rb"(\xef\xbb\xbf)?\s*(<\?xml|<!--|<!DOCTYPE svg|<svg)")


async def list_tree(view: View, sha: str, path: str, recursive: bool) -> Tree:
    """A directory of the tree at a seal, or every file below it."""
    row = await sealed.seal(view, sha)
    key_id, key = await sealed.tree_key(view, row)
    whole = sealed.shows_all(view)
    path = path.strip("/")
    if path:
        check_path(path)
    if recursive:
        view.node.streams.require(view.payer)
    listed: list[TreeFile] = []
    if recursive:
        async for full, file in sealed.walk_files(view, row.root, path):
            if len(listed) % LISTED_AT_ONCE == 0:
                await view.lease.wait(LISTED_AT_ONCE * LISTED_BYTES)
            listed.append(wire_entry(full, file))
    else:
        listed = [
            TreeFile(path=join(path, child.name), kind=child.kind, blake3=child.digest.hex(), size=child.size)
            for child in await _directory(view, row, path)
        ]
    return Tree(
        sha=row.id,
        content_digest=row.signed_root.hex(),
        path=path,
        recursive=recursive,
        filtered=not whole,
        entries=listed,
        tree_key=b64u(key) if whole else None,
        tree_key_id=key_id if whole else None,
    )


async def list_directory(view: View, sha: str, path: str) -> list[Child]:
    """The children of a directory of the tree at a seal, sorted by name."""
    return await _directory(view, await sealed.seal(view, sha), path)


async def _directory(view: View, row: SealRow, path: str) -> list[Child]:
    if view.policy is not None:  # it walks whole trees
        view.node.streams.require(view.payer)
    return await sealed.list_children(view, row.root, path)


def wire_entry(path: str, file: TreeEntry) -> TreeFile:
    return TreeFile(path=path, kind=file.kind, blake3=file.digest.hex(), size=file.size)


async def blob(view: View, sha: str, path: str) -> Blob:
    """A file at a seal with its content

    The content is left out if it is too large for the answer.
    """
    row = await sealed.seal(view, sha)
    file = await sealed.find_entry(view, row.root, path)
    text = file.kind == "text"
    content = None
    if file.size <= BLOB_INLINE:
        await view.lease.wait(2 * file.size)  # as bytes and as text
        data = await sealed.read_content(view, file)
        content = data.decode("utf-8") if text else base64.b64encode(data).decode("ascii")
    return Blob(
        path=path,
        kind=file.kind,
        blake3=file.digest.hex(),
        size=file.size,
        encoding="utf-8" if text else "base64",
        content=content,
        truncated=content is None,
    )


async def raw(view: View, sha: str, path: str, request: Request) -> Reply:
    """The bytes of a file at a seal

    The media type is one that no browser executes. SVG has its own type only if the browser loads it as a
    picture, where no scripts run. Otherwise it is sent as text.
    """
    row = await sealed.seal(view, sha)
    file = await sealed.find_entry(view, row.root, path)
    headers = {
        "cache-control": cache_control_of(view),
        "x-content-type-options": "nosniff",
        "content-security-policy": RAW_POLICY,
    }
    if file.kind == "chunked":
        return chunked.reply(view, file.digest, file.size, headers)
    await view.lease.wait(file.size)
    data = await sealed.read_content(view, file)
    media = "text/plain; charset=utf-8" if file.kind == "text" else sniff(data)
    etag = f'"{file.digest.hex()}"'
    if file.kind == "text" and path.lower().endswith(".svg") and SVG.match(data):
        headers["vary"] = "Sec-Fetch-Dest"
        if request.headers.get("sec-fetch-dest") == "image":
            media, headers["content-security-policy"] = "image/svg+xml", SVG_POLICY
            etag = f'"{file.digest.hex()}-drawing"'  # another answer: a browser asks with it for the text
    return Reply(
        body=data,
        content_type=media,
        etag=etag,
        headers=headers,
    )


def sniff(data: bytes) -> str:
    """Find the media type of these bytes. It is one of a few types that are safe to display, else
    application/octet-stream."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if data[4:12] == b"ftypavif":
        return "image/avif"
    return next((media for magic, media in _SNIFFED if data.startswith(magic)), "application/octet-stream")


def cache_control_of(view: View) -> str:
    """The Cache-Control header of an answer about a seal id. The bytes never change, but access to them does.
    So a cache has to ask again after PUBLIC_SECONDS, and each time if the bytes are private; it then gets a
    304. With a path policy the answer depends on the caller, so it must not be shared."""
    open_to_all = view.repo.public and view.repo.policy is None
    return f"public, max-age={PUBLIC_SECONDS}" if open_to_all else "private, no-cache"


def etag_of(view: View, name: str) -> str:
    """An ETag of `name` for this caller. It differs between callers who see different paths."""
    if view.repo.policy is None:
        return f'"{name}"'
    return f'"{name}-{view.repo.policy}-{"whole" if view.policy is None else "filtered"}"'
