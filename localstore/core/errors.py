"""One error tree for all rooms: what went wrong, its HTTP status, its exit code, and what to do.

    SvcError
    ├── BadRequest 400        the request cannot be read
    ├── Unauthorized 401      no credential, or an invalid one           (exit 4)
    │   └── NotBound          a bearer mutation without a fresh request signature
    ├── Forbidden 403         visible, but not allowed
    ├── NotFound 404          missing, hidden or switched off: always the same answer
    ├── Conflict 409          the state has changed
    ├── Gone 410              it existed and has expired
    ├── TooLarge 413          over a named limit
    ├── Invalid 422           well-formed but wrong: a field, a digest, a signature, a path
    ├── RateLimited 429
    ├── EditionLacks 501
    ├── Unavailable 503       a dependency is down
    ├── NoSpace 507           the node is short of disk space
    │   └── QuotaExceeded     an account has used up its quota
    └── ClientError           raised on this machine, never sent over the wire
        └── UsageError        exit 2

The errors of a noun are subclasses of these, in the module of the noun (`localstore/core/model/ref.py`:
RefExists); those of working copies are in `localstore/errors.py`.

Every class has a `code` (stable snake_case), a `status` (HTTP) and an `exit` (process exit code). The message
is one sentence that says what happened and why; if a command helps, the sentence ends with it. The exit codes
are listed in docs/design/009."""

from __future__ import annotations

import re
from typing import Any, ClassVar

_CODE = re.compile(r"[a-z][a-z0-9_]{0,63}")

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_SIGN_IN, EXIT_PENDING, EXIT_INTERRUPTED = 0, 1, 2, 4, 8, 130


class SvcError(Exception):
    """Base of all errors. It is raised itself only for an error of the server that has no class of its own.

    `detail` is the sentence for a person. `extra` has further members of the answer for programs (RFC 9457),
    such as the current head or the list of conflicting files."""

    code: ClassVar[str] = "failed"
    status: ClassVar[int] = 500
    exit: ClassVar[int] = EXIT_FAILED
    title: ClassVar[str] = "Failed"

    def __init__(self, detail: str = "", **extra: Any) -> None:
        super().__init__(detail or self.title)
        self.detail = detail
        self.extra = extra


class BadRequest(SvcError):
    """The request cannot be read: its JSON, encoding or headers are malformed."""

    code, status, title = "malformed", 400, "Bad Request"


class Unauthorized(SvcError):
    """No credential was sent, or it is not valid; sign in."""

    code, status, title, exit = "sign_in_required", 401, "Unauthorized", EXIT_SIGN_IN


class NotBound(Unauthorized):
    """A request that changes something has a bearer token and no valid signature: the signature is absent,
    too old, used before or wrong."""

    code = "request_not_bound"


class Forbidden(SvcError):
    """The caller can see the resource but may not do this with it."""

    code, status, title = "forbidden", 403, "Forbidden"


class NotFound(SvcError):
    """The resource is missing, hidden from the caller, or switched off on this relay; the answer is the same
    for all three."""

    code, status, title = "not_found", 404, "Not Found"

    @property
    def bare(self) -> bool:
        """Whether the message of the error is only the general title. A caller may then replace it by a
        specific sentence. The server always sends only the title, so that missing and hidden resources
        look alike."""
        return self.args == (self.title,)


class MethodNotAllowed(SvcError):
    """The path exists, but not with this method; the header `Allow` lists the methods that it has."""

    code, status, title = "method_not_allowed", 405, "Method Not Allowed"


class TooSlow(SvcError):
    """The body of the request arrived too slowly."""

    code, status, title = "too_slow", 408, "Request Timeout"


class Conflict(SvcError):
    """The request does not fit the current state of the resource."""

    code, status, title = "conflict", 409, "Conflict"


class Gone(SvcError):
    """The resource existed and has expired."""

    code, status, title = "expired", 410, "Gone"


class TooLarge(SvcError):
    """The request, or a file in it, is larger than a named limit."""

    code, status, title = "too_large", 413, "Content Too Large"


class UnsupportedMediaType(SvcError):
    """The body has a content type that this route does not accept."""

    code, status, title = "unsupported_media_type", 415, "Unsupported Media Type"


class RangeUnsatisfiable(SvcError):
    """The requested byte range lies outside the file."""

    code, status, title = "range_unsatisfiable", 416, "Range Not Satisfiable"


class Invalid(SvcError):
    """A field is wrong. `pointer` is an RFC 6901 JSON pointer into the body, '' for the whole body."""

    code, status, title = "invalid", 422, "Unprocessable Content"

    def __init__(self, detail: str = "", pointer: str | None = None, **extra: Any) -> None:
        if pointer is not None:
            extra["errors"] = [{"pointer": pointer, "detail": detail}]
        super().__init__(detail, **extra)


class DigestMismatch(Invalid):
    """The digest of the bytes differs from the announced one."""

    code = "digest_mismatch"


class SignatureInvalid(Invalid):
    """A signature does not verify with the key it names."""

    code = "signature_invalid"


class PathInvalid(Invalid):
    """A path is unsafe or not allowed in a repository."""

    code = "path_invalid"


class NotText(Invalid):
    """The file was declared as text and is not valid UTF-8, or is too large for text."""

    code = "not_text"


class RateLimited(SvcError):
    """Too many requests; `retry_after` is the number of seconds to wait."""

    code, status, title = "rate_limited", 429, "Too Many Requests"

    def __init__(
        self, detail: str = "", retry_after: int = 1, limit: int | None = None, window: int = 60
    ) -> None:
        """At most `limit` requests in `window` seconds are allowed; the next one is allowed in `retry_after`
        seconds."""
        super().__init__(detail, retry_after=retry_after)
        if limit is not None:
            self.extra |= {"limit": limit, "window": window}


class EditionLacks(SvcError):
    """This build of the relay does not contain the feature."""

    code, status, title = "edition_lacks_feature", 501, "Not Implemented"


class Unavailable(SvcError):
    """A dependency is down, or the server is overloaded; try again later."""

    code, status, title = "unavailable", 503, "Service Unavailable"


class NoSpace(SvcError):
    """The node's disk is nearly full: uploads are refused; reading and deleting still work."""

    code, status, title = "no_space", 507, "Insufficient Storage"


class QuotaExceeded(NoSpace):
    """A quota is used up. `what`: which quota (bytes, objects or repositories of an owner, or accounts of an
    address). `used` and `limit`: how much is used, and how much is allowed."""

    code = "quota_exceeded"

    def __init__(self, detail: str, what: str = "", used: int = 0, limit: int = 0) -> None:
        super().__init__(detail, what=what, used=used, limit=limit)


class ClientError(SvcError):
    """An error of this machine; it is never sent over the wire."""

    code, status = "client", 0


class UsageError(ClientError):
    """The command line is wrong."""

    code, exit, title = "usage", EXIT_USAGE, "Usage"


class ConfirmationNeeded(UsageError):
    """The command needs a confirmation, and there is no terminal on which to ask for it; add --yes.
    `action`: what is to be confirmed, such as "Deleting alice/notes"."""

    code = "confirmation_needed"

    def __init__(self, action: str) -> None:
        self.action = action
        super().__init__(f"{action}: there is no terminal to ask on; add --yes to confirm")


class ServerUnreachable(ClientError):
    """The server could not be reached, or did not answer in time. `sent`: the request may have arrived."""

    code = "server_unreachable"

    def __init__(self, detail: str = "", sent: bool = True) -> None:
        super().__init__(detail)
        self.sent = sent


class ServerMisbehaved(ClientError):
    """The server's answer does not verify or cannot be read, so nothing was written."""

    code = "server_misbehaved"


class Cancelled(ClientError):
    """The caller has cancelled the request."""

    code = "cancelled"


class Interrupted(ClientError):
    """The command was interrupted."""

    code, exit = "interrupted", EXIT_INTERRUPTED


def _tree(root: type[SvcError]) -> dict[str, type[SvcError]]:
    classes = {root.code: root}
    for child in root.__subclasses__():
        classes.update(_tree(child))
    return classes


def by_code(code: str, status: int) -> type[SvcError]:
    """The error class for a problem document's `code`; for an unknown code, the nearest class for the HTTP
    status."""
    classes = _tree(SvcError)
    if code in classes:
        return classes[code]
    return next((k for k in classes.values() if k.status == status and k.__base__ is SvcError), SvcError)


def from_problem(problem: dict[str, Any], status: int) -> SvcError:
    """The error that the relay raised, rebuilt from its problem document for the client."""
    code = str(problem.get("code", ""))
    kind = by_code(code, status)
    error = kind.__new__(kind)
    Exception.__init__(error, str(problem.get("detail") or problem.get("title") or kind.title))
    error.detail = str(problem.get("detail") or problem.get("title") or kind.title)
    skip = {"type", "title", "status", "detail", "code"}
    if kind.code != code and _CODE.fullmatch(code):  # of a noun whose module this command did not load
        vars(error)["code"] = code
    error.extra = {k: v for k, v in problem.items() if k not in skip}
    return error
