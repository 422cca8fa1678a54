"""One error tree for the whole house: what went wrong, its HTTP status, its exit code, the way out.

    SvcError
    ├── BadRequest 400        the request cannot be read
    ├── Unauthorized 401      no credential, or one that is not good     (exit 4)
    │   └── NotBound          a bearer mutation without a fresh request signature
    ├── Forbidden 403         visible, but you may not
    ├── NotFound 404          missing, hidden or switched off: always the same answer
    ├── Conflict 409          the state moved
    │   ├── StaleHead, StaleUpdate, NameTaken, HandleTaken, RepositoryArchived …
    ├── Gone 410              it was there and has expired
    ├── TooLarge 413          over a named limit
    ├── Invalid 422           well-formed but wrong: a field, a digest, a signature, a path
    ├── RateLimited 429
    ├── EditionLacks 501
    ├── Unavailable 503       a dependency is down
    ├── NoSpace 507           the node keeps the room it has left
    │   └── QuotaExceeded     an account has used up its own
    └── ClientError           raised on this machine, never sent over the wire
        ├── UsageError        exit 2
        ├── LocalEdits, NotLinked, UnpulledSeal, …

Every leaf owns `code` (stable snake_case), `status` (HTTP) and `exit` (process exit code). The message is
one sentence that says what happened and why; when something mends it, the sentence ends in the command.
The exit codes are told in docs/design/009.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_SIGN_IN, EXIT_PENDING, EXIT_INTERRUPTED = 0, 1, 2, 4, 8, 130


class SvcError(Exception):
    """Base of all errors; as a code, an error of the server that has no better name.

    `detail` is the sentence for a person. `extra` holds further members of the problem document (RFC 9457)
    for programs: the current head, the list of conflicting files.
    """

    code: ClassVar[str] = "failed"
    status: ClassVar[int] = 500
    exit: ClassVar[int] = EXIT_FAILED
    title: ClassVar[str] = "Failed"

    def __init__(self, detail: str = "", **extra: Any) -> None:
        super().__init__(detail or self.title)
        self.detail = detail
        self.extra = extra


class BadRequest(SvcError):
    """The request cannot be read: malformed JSON, encoding or headers."""

    code, status, title = "malformed", 400, "Bad Request"


class GrantError(BadRequest):
    """The device authorization grant was refused; the member `error` repeats the code (RFC 8628 §3.5)."""

    code = "invalid_grant"

    def __init__(self, detail: str = "", **extra: Any) -> None:
        super().__init__(detail, error=self.code, **extra)


class AuthorizationPending(GrantError):
    """Nobody has approved or denied the sign-in yet; poll again after the interval."""

    code = "authorization_pending"


class SlowDown(GrantError):
    """Polled too soon; `interval` is the new number of seconds to wait."""

    code = "slow_down"


class AccessDenied(GrantError):
    """The person denied the sign-in."""

    code = "access_denied"


class ExpiredToken(GrantError):
    """The device code has expired; start the sign-in again."""

    code = "expired_token"


class UnsupportedGrantType(GrantError):
    """`grant_type` is not the one of the device authorization grant."""

    code = "unsupported_grant_type"


class Unauthorized(SvcError):
    """No credential was sent, or it is not valid; sign in."""

    code, status, title, exit = "sign_in_required", 401, "Unauthorized", EXIT_SIGN_IN


class NotBound(Unauthorized):
    """A change with a bearer token has no valid request signature: it is absent, stale, replayed or wrong."""

    code = "request_not_bound"


class Forbidden(SvcError):
    """The caller can see the resource and may not do this with it."""

    code, status, title = "forbidden", 403, "Forbidden"


class IdentityLevel(Forbidden):
    """Guests may read, star and use documents; this needs an account."""

    code = "identity_level"


class SignUpClosed(Forbidden):
    """Accounts of this node are made by its operator."""

    code = "sign_up_closed"


class GuestNoRefresh(Forbidden):
    """A guest session ends after a day; there is nothing to refresh it with."""

    code = "guest_no_refresh"


class HandleTaken(Forbidden):
    """The handle belongs to an account that has not registered this device key."""

    code = "handle_taken"


class ReplicaUnknown(Forbidden):
    """A replica id that this branch never gave to this device: the branch was made again, or the relay came
    back from a backup. The client goes on under a new one by itself."""

    code = "replica_unknown"


class NotFound(SvcError):
    """The resource is missing, hidden, or behind a flag that is off; the answer is the same for all three."""

    code, status, title = "not_found", 404, "Not Found"


class NoBranch(NotFound):
    """The repository has no branch of this name. `default`: its default branch."""

    code = "no_branch"

    def __init__(self, branch: str, default: str = "main") -> None:
        super().__init__(f"there is no branch {branch}; see: svc repo branch", branch=branch, default=default)


class MethodNotAllowed(SvcError):
    """The path exists and does not take this method; `Allow` lists those it takes."""

    code, status, title = "method_not_allowed", 405, "Method Not Allowed"


class TooSlow(SvcError):
    """The body of the request arrived too slowly."""

    code, status, title = "too_slow", 408, "Request Timeout"


class Conflict(SvcError):
    """The request does not fit the current state of the resource."""

    code, status, title = "conflict", 409, "Conflict"


class StaleHead(Conflict):
    """A compare-and-swap failed: `head` is where the ref is now (null: the branch has no seal yet)."""

    code = "stale_head"

    def __init__(self, ref: str, head: str | None, remedy: str = "run: svc pull") -> None:
        super().__init__(f"{ref} moved to {(head or 'nothing')[:12]}; {remedy}", ref=ref, head=head)


class LaneMoved(Conflict):
    """An edit made from a file, of a text that others have changed since: it is merged, then sent again."""

    code = "lane_moved"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"others changed {path} after the version that this edit was made from; "
            "run: svc pull --merge, then push again"
        )


class RefExists(Conflict):
    """A branch or tag with this name already exists."""

    code = "ref_exists"


class TagExists(RefExists):
    """A tag is made and deleted, never moved."""

    code = "tag_exists"


class NameTaken(Conflict):
    """Another repository of this owner has the name, or had it less than 90 days ago."""

    code = "name_taken"


class RepositoryArchived(Conflict):
    """The repository is archived and takes no writes; unarchive it first."""

    code = "repository_archived"


class ClassImmutable(Conflict):
    """The class of a repository cannot change after its first seal."""

    code = "class_immutable"


class ForkIsPublic(Conflict):
    """A fork of a public repository stays public."""

    code = "fork_is_public"


class DeviceKeyExists(Conflict):
    """This device key is already registered."""

    code = "device_key_exists"


class ClockReused(Conflict):
    """A replica sent an update number that was already used: its local store was restored from a copy."""

    code = "clock_reused"


class Gone(SvcError):
    """The resource existed and has expired."""

    code, status, title = "expired", 410, "Gone"


class PrepareExpired(Gone):
    """The prepared seal has expired; nothing was sealed. Prepare it again."""

    code = "prepare_expired"


class TooLarge(SvcError):
    """The request, or a file in it, is larger than a named limit."""

    code, status, title = "too_large", 413, "Content Too Large"


class SealBudgetExceeded(TooLarge):
    """The tree to be sealed is larger than its repository's class allows."""

    code = "seal_budget_exceeded"


class UnsupportedMediaType(SvcError):
    """The body has a content type that this route does not take."""

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
    """The bytes do not have the digest that was announced for them."""

    code = "digest_mismatch"


class SignatureInvalid(Invalid):
    """A signature does not verify with the key it names."""

    code = "signature_invalid"


class PayloadMissing(Invalid):
    """An update or a tree names bytes that this repository does not hold; `missing` lists their digests."""

    code = "payload_missing"


class PathInvalid(Invalid):
    """A path is unsafe or not allowed in a repository."""

    code = "path_invalid"


class UpdateInvalid(Invalid):
    """A CRDT update that does not belong to its lane, or breaks the strict grammar."""

    code = "update_invalid"


class NotText(Invalid):
    """The file was declared as text and is not valid UTF-8, or is too large for text."""

    code = "not_text"


class RateLimited(SvcError):
    """Too many requests; `retry_after` is the number of seconds to wait."""

    code, status, title = "rate_limited", 429, "Too Many Requests"

    def __init__(
        self, detail: str = "", retry_after: int = 1, limit: int | None = None, window: int = 60
    ) -> None:
        """`limit` requests fit into `window` seconds; the next one does in `retry_after` seconds."""
        super().__init__(detail, retry_after=retry_after)
        if limit is not None:
            self.extra |= {"limit": limit, "window": window}


class EditionLacks(SvcError):
    """This build of the relay does not contain the feature."""

    code, status, title = "edition_lacks_feature", 501, "Not Implemented"


class Unavailable(SvcError):
    """A dependency is down, or the server is overloaded; try again later."""

    code, status, title = "unavailable", 503, "Service Unavailable"


class E2eeUnavailable(Unavailable):
    """End-to-end encryption is not available on this server."""

    code = "e2ee_unavailable"


class NoSpace(SvcError):
    """The node's disk is nearly full: uploads are refused, reading and deleting go on."""

    code, status, title = "no_space", 507, "Insufficient Storage"


class QuotaExceeded(NoSpace):
    """`used` and `limit` of `what`: bytes, objects, repositories of the owner; accounts of an address."""

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
    """The command asks for confirmation and there is no terminal to ask on; add --yes."""

    code = "confirmation_needed"

    def __init__(self, action: str) -> None:
        super().__init__(f"{action} needs a yes and there is no terminal to ask on; add --yes")


class NotLinked(ClientError):
    """The folder is not linked to a repository."""

    code = "not_linked"

    def __init__(self, folder: str = "this folder") -> None:
        super().__init__(f"{folder} is not linked to a repository; run: svc repo init OWNER/NAME")


class LocalEdits(ClientError):
    """The command would overwrite local edits. `paths` lists them, `command` names the command."""

    code = "local_edits"

    def __init__(self, paths: list[str], command: str = "pull") -> None:
        shown = ", ".join(paths[:5]) + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")
        super().__init__(
            f"{command} would overwrite local edits in {shown}; run: svc {command} --merge to join them "
            f"(svc {command} --force to move them to the trash)",
            paths=paths,
        )


class BranchGone(ClientError):
    """The branch that the folder is on was deleted. `base`: the folder's last seal."""

    code = "branch_gone"

    def __init__(self, branch: str, base: str | None, default: str) -> None:
        start = base[:12] if base else default
        super().__init__(
            f"branch {branch} was deleted on the server; this folder keeps its files and your edits. "
            f"Turn it to another branch: svc switch {default}; or make the branch again: "
            f"svc repo branch {branch} --from {start}, then: svc pull --merge",
            branch=branch,
        )


class BranchReplaced(ClientError):
    """The branch that the folder is on was deleted, and another one has its name now."""

    code = "branch_replaced"

    def __init__(self, branch: str) -> None:
        super().__init__(
            f"branch {branch} was deleted and made again: it is another branch now, and this folder is still "
            "on the old one; nothing was sent. To take the folder and its edits onto the new one, run: "
            "svc pull --merge",
            branch=branch,
        )


class ReadOnlyLook(ClientError):
    """The folder shows a seal, not a branch, and something was to be sent from it."""

    code = "read_only_look"

    def __init__(self, seal: str, branch: str) -> None:
        short = seal[:12]
        super().__init__(
            f"this folder shows the seal {short}, which never changes; nothing was sent. To keep edits on a "
            f"branch of their own: svc repo branch NAME --from {short}, then: svc switch NAME; "
            f"to go back: svc switch {branch}",
            seal=seal,
        )


class UnpulledSeal(ClientError):
    """The branch has a seal that this folder has not pulled."""

    code = "unpulled_seal"

    def __init__(self, branch: str, head: str | None) -> None:
        super().__init__(
            f"{branch} has a seal you have not pulled ({(head or 'none')[:12]}); run: svc pull "
            "(with local edits: svc pull --merge), then push again",
            head=head,
        )


class NotSealed(ClientError):
    """Another seal landed between this push's edits and its seal; the edits are live and not sealed."""

    code = "not_sealed"

    def __init__(self, branch: str) -> None:
        super().__init__(
            f"{branch} was sealed by somebody else just now: your edits are live, not sealed; "
            "run: svc pull, then push again"
        )


class EditsConflict(ClientError):
    """A push that met an edit which cannot be merged with ours. `conflicts`: what is in the folder twice, or
    would be, of a dry run (`foretold`)."""

    code = "edits_conflict"

    def __init__(self, path: str, by: str | None, conflicts: Sequence[Any], foretold: bool = False) -> None:
        self.conflicts = conflicts
        others = f" (and {len(conflicts) - 1} more)" if len(conflicts) > 1 else ""
        whose = f"@{by}'s live edit" if by else "a live edit by others"
        stands = "would not be sealed" if foretold else "not sealed"
        after = "run: svc pull --merge, " if foretold else ""
        super().__init__(
            f"{stands}: {path}{others} conflicts with {whose}; {after}look at both files, then push again"
        )


class LinkDamaged(ClientError):
    """A file in `.svc/` cannot be read."""

    code = "link_damaged"

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(
            f"{path} is damaged ({reason}); move the .svc folder away and run: svc repo init OWNER/NAME "
            "(your files stay as they are)"
        )


class CopyBusy(ClientError):
    """Another process is working in this folder."""

    code = "copy_busy"

    def __init__(self, folder: object, owner: str) -> None:
        super().__init__(
            f"another svc ({owner}) is working in {folder}; wait for it or end it, then try again"
        )


class NotWatchable(ClientError):
    """The folder is on a file system that does not report changes."""

    code = "not_watchable"


class FolderNotEmpty(ClientError):
    """The target folder of a clone is not empty."""

    code = "folder_not_empty"

    def __init__(self, folder: object) -> None:
        super().__init__(
            f"{folder} is not empty; choose another folder, or link it: svc repo init OWNER/NAME"
        )


class DiskTrouble(ClientError):
    """A local file could not be read or written; the sentence says what, where, and what helps."""

    code = "disk_trouble"


class ServerUnreachable(ClientError):
    """The server could not be reached, or did not answer in time."""

    code = "server_unreachable"


class ServerMisbehaved(ClientError):
    """The server's answer does not verify or cannot be read; nothing was written because of it."""

    code = "server_misbehaved"


class Interrupted(ClientError):
    """The command was interrupted."""

    code, exit = "interrupted", EXIT_INTERRUPTED


def _tree(root: type[SvcError]) -> dict[str, type[SvcError]]:
    found = {root.code: root}
    for child in root.__subclasses__():
        found.update(_tree(child))
    return found


def by_code(code: str, status: int) -> type[SvcError]:
    """The class for a problem document's `code`, else the nearest one for its HTTP status."""
    known = _tree(SvcError)
    if code in known:
        return known[code]
    return next((k for k in known.values() if k.status == status and k.__base__ is SvcError), SvcError)


def from_problem(problem: dict[str, Any], status: int) -> SvcError:
    """Rebuild the error that the relay raised from its problem document, as the client sees it."""
    kind = by_code(str(problem.get("code", "")), status)
    error = kind.__new__(kind)
    Exception.__init__(error, str(problem.get("detail") or problem.get("title") or kind.title))
    error.detail = str(problem.get("detail") or problem.get("title") or kind.title)
    skip = {"type", "title", "status", "detail", "code"}
    error.extra = {k: v for k, v in problem.items() if k not in skip}
    return error
