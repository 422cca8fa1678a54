"""Makes answers for errors: application/problem+json (RFC 9457). The answer 404 is always the same bytes,
whether something is missing or hidden."""

from __future__ import annotations

import msgspec
from sanic.response import HTTPResponse

from localstore.core.errors import MethodNotAllowed, NotFound, RateLimited, SvcError, Unauthorized
from relay.base.clock import now_ms

_ENCODER = msgspec.json.Encoder()
MEDIA = "application/problem+json"
TEXT = "text/plain; charset=utf-8"
NO_STORE = {"cache-control": "no-store"}

# Missing, hidden, flag off, unknown path: always exactly these bytes (docs/design/008).
NOT_FOUND_BODY = _ENCODER.encode(
    {"type": "about:blank", "title": "Not Found", "status": 404, "code": "not_found"}
)
NOT_FOR_GIT = b"there is no such repository here, or this account and token may not read all of it\n"


def not_found() -> HTTPResponse:
    return HTTPResponse(NOT_FOUND_BODY, 404, headers=dict(NO_STORE), content_type=MEDIA)


def response(error: SvcError) -> HTTPResponse:
    """The answer for an error."""
    if isinstance(error, NotFound):
        return not_found()
    headers = dict(NO_STORE)
    extra = dict(error.extra)
    if isinstance(error, Unauthorized):
        headers["www-authenticate"] = 'Bearer realm="svc", error="invalid_token"'
        extra.setdefault("server_time", now_ms() // 1000)
    if "retry_after" in extra:
        headers["retry-after"] = str(extra["retry_after"])
    if isinstance(error, RateLimited):
        headers |= rate_headers(error)
        extra = {name: content for name, content in extra.items() if name not in ("limit", "window")}
    body = {
        "type": "about:blank",
        "title": error.title,
        "status": error.status,
        "code": error.code,
        "detail": error.detail,
        **extra,
    }
    return HTTPResponse(_ENCODER.encode(body), error.status, headers=headers, content_type=MEDIA)


def to_git(error: Unauthorized | NotFound) -> HTTPResponse:
    """The answer that refuses a request of git, as text, which git shows to the user. With the status 401 it
    names an authentication scheme, because otherwise git does not ask for a password."""
    if isinstance(error, NotFound):
        return HTTPResponse(NOT_FOR_GIT, 404, headers=dict(NO_STORE), content_type=TEXT)
    headers = {**NO_STORE, "www-authenticate": 'Basic realm="svc", charset="UTF-8"'}
    return HTTPResponse(f"{error.detail}\n", 401, headers=headers, content_type=TEXT)


def rate_headers(error: SvcError) -> dict[str, str]:
    """The headers of an answer 429: Retry-After, and the rate limit in two forms. RateLimit and
    RateLimit-Policy are those of the current IETF draft, RateLimit-Limit, -Remaining and -Reset those of the
    draft before. Returns {} for other errors."""
    if not isinstance(error, RateLimited):
        return {}
    wait, limit = str(error.extra["retry_after"]), error.extra.get("limit", 1)
    return {
        "retry-after": wait,
        "ratelimit-policy": f'"bucket";q={limit};w={error.extra.get("window", 60)}',
        "ratelimit": f'"bucket";r=0;t={wait}',
        "ratelimit-limit": str(limit),
        "ratelimit-remaining": "0",
        "ratelimit-reset": wait,
    }


def method_not_allowed(allow: str) -> HTTPResponse:
    answer = response(MethodNotAllowed(f"this path takes {allow}"))
    answer.headers["allow"] = allow
    return answer


def plain(status: int, title: str, detail: str) -> HTTPResponse:
    """The answer to a request that cannot be read, such as one with a malformed request line, header or
    transfer coding. Such a request never reaches the route table."""
    body = {"type": "about:blank", "title": title, "status": status, "code": "malformed", "detail": detail}
    return HTTPResponse(_ENCODER.encode(body), status, headers=dict(NO_STORE), content_type=MEDIA)


def internal(request_id: str) -> HTTPResponse:
    """The answer when the relay has a bug. The details are only in the log, under this request id."""
    body = {
        "type": "about:blank",
        "title": "Internal Server Error",
        "status": 500,
        "code": "internal",
        "detail": f"something broke on the server; its log has it under request id {request_id}",
    }
    return HTTPResponse(_ENCODER.encode(body), 500, headers=dict(NO_STORE), content_type=MEDIA)
