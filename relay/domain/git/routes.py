"""`git clone https://HOST/OWNER/NAME.git`, with or without `.git` (gitprotocol-http(5)).

Refusals are plain text or a packet of the protocol, because git shows both to its user. git asks for a
password only after a 401. So a request without credentials gets 401 for both hidden and missing repositories;
with credentials it gets 404.
"""

from __future__ import annotations

import msgspec
from sanic.request import Request

from localstore.core.errors import TooLarge, Unavailable
from localstore.core.model.limits import GIT_REQUEST
from relay.caller import Caller
from relay.domain.git import serving
from relay.http.routing import REPOSITORIES, Reply, Upload, route

REFS = "application/x-git-upload-pack-advertisement"
PACK = "application/x-git-upload-pack-result"
TEXT = "text/plain; charset=utf-8"
PULLS_ONLY = "git reads from this server and cannot push to it; use svc push in a folder of svc"
NOT_DUMB = "this server answers git 1.6.6 and later, by the smart protocol of git-upload-pack"
VERSIONS = ("version=2", "version=1")


class RefsQuery(msgspec.Struct, frozen=True):
    """The query of git's first request. `service`: the git program that the next request will call. It is
    empty for old clients, which only download files and call no program on the server."""

    service: str = ""


@route(
    "GET",
    "/{owner}/{name}/info/refs",
    operation="git.fetch",
    flag=REPOSITORIES,
    password=True,
    media=REFS,
    errors=(413, 503),
    cost=5,
)
async def info_refs(caller: Caller, owner: str, name: str, query: RefsQuery, request: Request) -> Reply:
    """The answer to git's first request of a clone, a fetch or a push; NAME may end in .git"""
    view = await serving.find_view(caller, owner, name)
    if query.service != "git-upload-pack":
        return _refusal(403, PULLS_ONLY if query.service == "git-receive-pack" else NOT_DUMB)
    try:
        return Reply(stream=await serving.list_refs(view, _protocol(request)), content_type=REFS)
    except (Unavailable, TooLarge) as error:
        again = error.extra.get("retry_after")
        return _refusal(error.status, error.detail, {"retry-after": str(again)} if again else {})


@route(
    "POST",
    "/{owner}/{name}/git-upload-pack",
    operation="git.fetch",
    flag=REPOSITORIES,
    password=True,
    media=PACK,
    max_body=GIT_REQUEST,
    stream=True,
    gzip=True,
    cost=20,
)
async def upload_pack(caller: Caller, owner: str, name: str, request: Request, upload: Upload) -> Reply:
    """Send refs, or a pack of the objects that the client lacks; the body may be compressed"""
    view = await serving.find_view(caller, owner, name)
    body = await upload.whole()
    await upload.finish()
    try:
        return Reply(stream=await serving.fetch(view, body, _protocol(request)), content_type=PACK)
    except (Unavailable, TooLarge) as error:  # of other statuses git shows nothing but their number here
        return Reply(body=_error_line(error.detail), content_type=PACK)


@route(
    "POST",
    "/{owner}/{name}/git-receive-pack",
    operation="git.push",
    flag=REPOSITORIES,
    password=True,
    media=TEXT,
    max_body=GIT_REQUEST,
    stream=True,
)
async def receive_pack(caller: Caller, owner: str, name: str) -> Reply:
    """Refused: git does not push by https"""
    await serving.find_view(caller, owner, name)
    return _refusal(403, PULLS_ONLY)


def _error_line(sentence: str) -> bytes:
    """The packet that reports an error in git's protocol."""
    line = b"ERR " + sentence.encode()
    return b"%04x%s" % (4 + len(line), line)


def _refusal(status: int, sentence: str, headers: dict[str, str] | None = None) -> Reply:
    return Reply(body=f"{sentence}\n", status=status, headers=headers or {}, content_type=TEXT)


def _protocol(request: Request) -> str:
    """The version of git's protocol that the request asks for, or "" if it asks for no known version. The
    rest of the header is ignored."""
    versions = request.headers.get("git-protocol", "").split(":")
    return next((version for version in VERSIONS if version in versions), "")
