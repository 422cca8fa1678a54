"""`svc repo api`: calls any route of the server with a signed request."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import msgspec
import typer

from localstore.core.errors import EXIT_FAILED, EXIT_SIGN_IN, ServerMisbehaved, UsageError
from localstore.core.identity.request_signature import SAFE_METHODS
from localstore.core.paths import terminal_safe
from svc.cmd.frame.context import Ctx
from svc.console import answers_any
from svc.http.answer import Raw

PREFIX = "/api/v1/"
PAGES_MAX = 10_000
_METHOD = re.compile(r"[A-Z]{3,10}")
_HEADER = re.compile(r"([A-Za-z0-9-]{1,100}): ?([!-~](?:[ -~]*[!-~])?)")
_OWN_HEADERS = frozenset(
    {"authorization", "signature", "signature-input", "content-digest", "content-length", "host"}
)


@answers_any
def api(
    ctx: Ctx,
    path: Annotated[str, typer.Argument(help="The route; {owner}, {repo} and {id} are filled in")],
    method: Annotated[
        str, typer.Option("-X", "--method", metavar="METHOD", help="GET, or POST when there is a body")
    ] = "",
    data: Annotated[
        str | None, typer.Option("-d", "--data", metavar="JSON", help="The body as it stands")
    ] = None,
    raw_field: Annotated[
        list[str] | None,
        typer.Option("-f", "--raw-field", metavar="KEY=TEXT", help="A text member of the body"),
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Option(
            "-F", "--field", metavar="KEY=VALUE", help="A member: true, false, null, a number, @file or text"
        ),
    ] = None,
    source: Annotated[
        str, typer.Option("--input", metavar="FILE", help="The body from a file; - is stdin")
    ] = "",
    header: Annotated[
        list[str] | None, typer.Option("-H", "--header", metavar="NAME: VALUE", help="One more header")
    ] = None,
    paginate: Annotated[
        bool, typer.Option("--paginate", help="Fetch every page of a list and join them")
    ] = False,
) -> None:
    """Call any route of the server

    The request has your session and is signed like every other request. A path without a leading slash is
    below /api/v1/. With GET the fields become the query. An answer with an error is printed, too, and the
    exit code is then 1, or 4 if the status is 401.

    Examples:
    svc repo api handles/me
    svc repo api repos/{id}/refs --paginate --jq '.[].name'
    svc repo api -X PATCH repos/{id} -f description="Notes on parsing"
    svc repo api repos -d '{"name": "notes"}'
    """
    body = _body(data, raw_field or [], field or [], source)
    verb = (method or ("POST" if body is not None else "GET")).upper()
    if not _METHOD.fullmatch(verb):
        raise UsageError(f"'{terminal_safe(method[:40])}' is not an HTTP method")
    target = _fill_placeholders(ctx, path)
    content: bytes | None = None
    if verb in SAFE_METHODS and isinstance(body, dict):
        target += ("&" if "?" in target else "?") + urlencode(
            {key: _query(value) for key, value in body.items()}
        )
    elif body is not None:
        content = body if isinstance(body, bytes) else msgspec.json.encode(body)
    headers = _headers(header or [], json=content is not None)
    if paginate:
        if verb != "GET":
            raise UsageError("--paginate is for GET")
        _print_all_pages(ctx, target, headers)
        return
    _print(ctx, ctx.reader.http.exchange(verb, target, content, headers))


def _body(data: str | None, raw: list[str], typed: list[str], source: str) -> dict[str, Any] | bytes | None:
    if sum((data is not None, bool(raw or typed), bool(source))) > 1:
        raise UsageError("-d, --input and fields (-f, -F) are three ways to give the body; use one of them")
    if data is not None:
        return data.encode()
    if source:
        return sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    if not raw and not typed:
        return None
    fields: dict[str, Any] = {}
    for text in (*raw, *typed):
        key, equals, _ = text.partition("=")
        if not equals or not key:
            raise UsageError(f"a field is written KEY=VALUE, not '{terminal_safe(text[:80])}'")
    for text in raw:
        key, _, value = text.partition("=")
        fields[key] = value
    for text in typed:
        key, _, value = text.partition("=")
        fields[key] = _parse_value(value)
    return fields


def _parse_value(value: str) -> Any:
    if value.startswith("@"):
        return Path(value[1:]).read_text()
    try:
        document = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return value
    return value if isinstance(document, (str, dict, list)) else document


def _query(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _headers(typed: list[str], *, json: bool) -> dict[str, str]:
    headers = {"Content-Type": "application/json"} if json else {}
    for text in typed:
        match = _HEADER.fullmatch(text)
        if match is None:
            raise UsageError(f"a header is written 'Name: value', not '{terminal_safe(text[:80])}'")
        if match[1].lower() in _OWN_HEADERS:
            raise UsageError(f"{match[1]} is set by svc itself, because requests are signed")
        headers[match[1]] = match[2]
    return headers


def _fill_placeholders(ctx: Ctx, path: str) -> str:
    """Return the path of the request, with {owner}, {repo} and {id} replaced by the owner, name and id of the
    command's repository. Raises UsageError for the address of another server."""
    origin = ctx.reader.origin
    if "://" in path:
        if not path.startswith(origin + "/"):
            raise UsageError(f"this command talks to {origin} only; give a path, or another --server")
        path = path.removeprefix(origin)
    target = path if path.startswith("/") else PREFIX + path
    if any(name in target for name in ("{owner}", "{repo}", "{id}")):
        repo = ctx.readable_repo
        for name, value in (("{owner}", repo.owner), ("{repo}", repo.name), ("{id}", repo.id)):
            target = target.replace(name, quote(value, safe=""))
    return quote(target, safe="/?&=%:@!$'()*+,;~-._")


def _print(ctx: Ctx, answer: Raw) -> None:
    value = _decode_json(answer)
    failed = answer.status >= 400
    if value is not None:
        ctx.out.data(
            value[0], filtered=not failed
        )  # a jq program for the answer does not fit a problem document
    elif answer.body:
        ctx.out.foreign(answer.body)
    if failed:
        problem = value[0] if value is not None and isinstance(value[0], dict) else {}
        reason = problem.get("detail") or problem.get("title") or ""
        ctx.out.fail(f"the server answered {answer.status}" + (f": {reason}" if reason else ""))
        ctx.exit(EXIT_SIGN_IN if answer.status == 401 else EXIT_FAILED)


def _decode_json(answer: Raw) -> tuple[Any] | None:
    """Return the JSON value of the answer as a tuple of one item, because the value itself can be null. None
    if the answer is not JSON."""
    if not answer.content_type.endswith("json"):
        return None
    try:
        return (msgspec.json.decode(answer.body),)
    except (msgspec.DecodeError, RecursionError):
        raise ServerMisbehaved("the server says JSON and sends something else") from None


def _print_all_pages(ctx: Ctx, target: str, headers: dict[str, str]) -> None:
    """Print the items of all pages as one array."""
    items: list[Any] = []
    cursor: str | None = None
    for _ in range(PAGES_MAX):
        where = (
            target
            if cursor is None
            else f"{target}{'&' if '?' in target else '?'}{urlencode({'cursor': cursor})}"
        )
        answer = ctx.reader.http.exchange("GET", where, None, headers)
        value = _decode_json(answer)
        page = value[0] if value else None
        if answer.status >= 400 or not isinstance(page, dict) or not isinstance(page.get("items"), list):
            _print(ctx, answer)
            if answer.status < 400:
                raise UsageError("this answer is not a list of pages; omit --paginate")
            return
        items += page["items"]
        following = page.get("next_cursor")
        if not isinstance(following, str) or following == cursor:
            break
        cursor = following
    ctx.out.data(items)
