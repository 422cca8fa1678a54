"""The caller and its view of a repository: the first argument of every service function.

    async def delete(view: View, name: str) -> None:
        view.require("write")
        async with view.write() as tx: ...

The gate creates both for each request. A job that merges later for a caller creates them again
(`relay.domain.merging.auto`).
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import msgspec

from localstore.core.errors import Conflict, Forbidden, NotBound, NotFound, Unauthorized
from localstore.core.model import limits
from localstore.core.model.auth import IdentityLevel
from localstore.core.model.repo import FilteredView, RepositoryArchived
from localstore.core.model.rights import RANK, Operation
from localstore.core.tree.policy import Policy
from relay.base.clock import now_ms
from relay.capacity import creation
from relay.db import repo as repos
from relay.db.engine.database import Author, Row, Tx, UniqueViolation
from relay.db.identity import gate
from relay.db.identity import nonce as nonces
from relay.db.repo import RepoRow, Role
from relay.http.address import network_of
from relay.http.buffers import Buffers, Lease
from relay.node import Node
from relay.once import NEVER_BEFORE, AnsweredBefore, Once, StoredAnswer


def account_name(account_id: str) -> str:
    """The name under which a write transaction locks an account (see `Database.write`)."""
    return f"account {account_id}"


def repo_name(repo_id: str) -> str:
    """The name under which a write transaction locks a repository."""
    return f"repo {repo_id}"


class Principal(msgspec.Struct, frozen=True):
    """A signed-in caller. `via`: how the caller authenticated (cookie, token, or the device key itself).
    `narrowed`: the holder of the token restricted it. `expires_at`: when the credential ends; `session_ends`:
    when its session ends, which may be later. Both are in milliseconds."""

    account_id: str
    handle: str | None
    kind: Literal["user", "guest"]
    phase: str
    session_id: str
    session_kind: str
    expires_at: int
    caps: frozenset[str]
    device_key_id: str | None
    via: Literal["cookie", "bearer", "self"]
    narrowed: bool = False
    session_ends: int = 0

    @property
    def is_guest(self) -> bool:
        return self.kind == "guest"


class Sight(NamedTuple):
    """The repository that the route's path names, as the caller sees it. `row`: None if the repository is
    missing or hidden."""

    row: Row | None


@dataclass(slots=True)
class Caller:
    """The caller of one request.

    `nonce`: (key id, nonce) of a signed request, recorded as used when the request takes effect. `lease`:
    memory reserved for the request; a service reserves more before it loads much. `sight`: the repository's
    row, if the gate has read it together with the session. `once`: the request's Idempotency-Key. `turn`: the
    name that a program gave to the piece of its work that this request belongs to (SVC_TURN). `_held`: the
    transaction with the effect of the request; it stays open until the answer is stored in it.
    """

    node: Node
    principal: Principal | None
    address: str
    nonce: tuple[str, str] | None = None
    lease: Lease = field(default_factory=lambda: Lease(Buffers(), ""))
    sight: Sight | None = None
    once: Once = NEVER_BEFORE
    turn: str | None = None
    _held: tuple[AbstractAsyncContextManager[Tx], Tx] | None = field(default=None, init=False)

    @property
    def me(self) -> Principal:
        """The signed-in caller. Raises Unauthorized for an anonymous one, which the gate allows on open
        routes only."""
        if self.principal is None:
            raise Unauthorized("sign in first; run: svc login")
        return self.principal

    def require_me(self, account_id: str) -> str:
        """The id of the caller's account. Raises NotFound if `account_id` is the id of a different one."""
        if account_id != self.me.account_id:
            raise NotFound
        return account_id

    @property
    def payer(self) -> str:
        """The name under which the work of this request is counted. It is the account id of a user. For
        guests and anonymous callers it is their network, because one person may act as many guests."""
        if self.principal is None or self.principal.is_guest:
            return self.network
        return self.principal.account_id

    @property
    def network(self) -> str:
        """The name under which the caller's address is counted for limits: the address itself for IPv4, its
        /64 network for IPv6."""
        return network_of(self.address)

    def role_of(self, row: Row) -> Role | None:
        """The caller's role in the repository of this row; None if the caller has none. A credential may
        limit the role: with a read-only token it is `read`."""
        role = repos.to_role(row)
        if role is None or self.principal is None or "admin" in self.principal.caps:
            return role
        most: Role = "write" if "write" in self.principal.caps else "read"
        return min(role, most, key=RANK.__getitem__)

    def read(self, snapshot: bool = False, *, near: bool = False) -> AbstractAsyncContextManager[Tx]:
        """A context with a read-only transaction. `snapshot` and `near`: as in `Database.read`."""
        return self.node.db.read(snapshot, near=near)

    @property
    def author(self) -> Author:
        """The author that is recorded with every event of this request."""
        who = self.principal
        return Author(who.account_id, who.device_key_id, self.turn) if who else Author(turn=self.turn)

    @contextlib.asynccontextmanager
    async def write(self, *names: str, effect: bool = True) -> AsyncIterator[Tx]:
        """A context with a write transaction. It locks `names` and the caller's account; a `View` locks its
        repository instead of the account.

        The transaction records the request's nonce as used, so that a replay is refused, and repeats the
        gate's checks of session, repository and role under the lock. For a request with an Idempotency-Key
        the transaction stays open until `conclude` stores the answer in it. AnsweredBefore is raised if the
        request was carried out before. `effect=False`: commit at once; the rows are not the effect of the
        request and stay even if the request fails.
        """
        await self.conclude(None)
        transaction = self.node.db.write(*self._lock_names(), *names)
        tx = await transaction.__aenter__()
        try:
            tx.author = self.author
            if self.nonce is not None:
                await self._spend(tx, *self.nonce)
            if (answer := await self.once.find(tx.one)) is not None:
                raise AnsweredBefore(answer)
            await self._look_again(tx)
            yield tx
            self._require_proven()
        except BaseException as error:
            await transaction.__aexit__(type(error), error, error.__traceback__)
            raise
        if effect and self.once.key is not None:
            self._held = (transaction, tx)
            return
        await transaction.__aexit__(None, None, None)
        self.nonce = None

    async def count_created(self, tx: Tx, what: str, new: int = 1) -> None:
        """Count `new` resources of the kind `what` that the caller creates in this transaction
        (`relay.capacity.creation`). Raises RateLimited above the limit."""
        await creation.count(tx, self.me.account_id, what, self.node.config.quota.creations, new)

    async def conclude(self, answer: StoredAnswer | None) -> None:
        """Commit the transaction in which the request made its changes, and which was kept open until now.
        `answer`: the answer to store in the same transaction, or None."""
        if self._held is None:
            return
        (held, tx), self._held = self._held, None
        try:
            if answer is not None:
                await self.once.keep(tx, answer)
        except BaseException as error:
            await held.__aexit__(type(error), error, error.__traceback__)
            raise
        await held.__aexit__(None, None, None)
        self.nonce = None

    async def abandon(self, error: BaseException) -> None:
        """Roll back the open transaction with the effect of the request, because its answer cannot be sent.
        The client may send the request again."""
        if self._held is not None:
            (held, _), self._held = self._held, None
            with contextlib.suppress(type(error)):
                await held.__aexit__(type(error), error, error.__traceback__)

    async def spend_nonce(self) -> None:
        """Record the nonce of this request as used, so that the request cannot be replayed. Called if the
        answer is already stored, because then no other transaction does it."""
        if self.nonce is not None:
            async with self.node.db.write(*self._lock_names()) as tx:
                await self._spend(tx, *self.nonce)
            self.nonce = None

    async def _look_again(self, tx: Tx) -> None:
        """Repeat the gate's checks of the session inside the transaction, because the session may have ended
        while the request waited. Raises Unauthorized."""
        if self.principal is not None:
            await self.recheck(tx)

    async def recheck(self, tx: Tx, repo_id: str = "") -> Row:
        """The repository's row as the caller sees it in this transaction. If the repository is hidden or
        missing, all columns are null. Raises Unauthorized if, since the gate's check, the session was ended,
        its key revoked or its account disabled."""
        me = self.me
        statement = gate.LIVE_BY_KEY if me.via == "self" else gate.LIVE_BY_SESSION
        row = await tx.one(statement, repo_id=repo_id, credential=me.session_id, account=me.account_id)
        if row is None:
            raise Unauthorized("the session has ended; run: svc login", reason="ended")
        return row

    def _require_proven(self) -> None:
        """Raise an error if the operation is allowed only to an author, and the service has not checked who
        is the author (`View.require_author`). Called before each commit."""

    async def refuse_replay(self) -> None:
        """Raise NotBound if an earlier request has used the same nonce, so that this request is a replay.
        Called for requests that end with a refusal before any write transaction has checked the nonce."""
        if self.nonce is None:
            return
        key_id, value = self.nonce
        async with self.read() as tx:
            if await tx.one(nonces.SPENT, key_id=key_id, nonce=value) is not None:
                raise _replay_error()

    def _lock_names(self) -> list[str]:
        return [account_name(self.principal.account_id)] if self.principal else []

    async def _spend(self, tx: Tx, key_id: str, value: str) -> None:
        keep = (limits.SIGNATURE_MAX_AGE + limits.SIGNATURE_MAX_SKEW) * 2000
        try:
            await tx.run(nonces.INSERT, key_id=key_id, nonce=value, expires_at=now_ms() + keep)
        except UniqueViolation:
            raise _replay_error() from None


def _replay_error() -> NotBound:
    return NotBound("this request was already carried out; sign it again to repeat it")


@dataclass(slots=True)
class View(Caller):
    """A caller and one repository it may see, for one operation on it.

    `role`: the caller's role there; None for somebody without a role, who reads it because it is public.
    `policy`: the rules that hide paths from this caller; None if all paths are seen. Every query for content
    checks `sees`; operations that need all paths call `require_whole`.
    """

    repo: RepoRow = None  # type: ignore[assignment]  # dataclass order; the gate always sets it
    role: Role | None = None
    operation: Operation = None  # type: ignore[assignment]  # likewise
    policy: Policy | None = None
    _unproven: bool = False

    def _lock_names(self) -> list[str]:
        """The names that a write transaction locks: only that of the repository, so that its writers run one
        after the other."""
        return [repo_name(self.repo.id)]

    async def _look_again(self, tx: Tx) -> None:
        """Set `repo` and `role` to their state in this transaction, and repeat the checks of the gate. A
        credential that merely expired while the request waited is accepted. Raises NotFound if the repository
        is now hidden or missing."""
        row = await self.recheck(tx, self.repo.id)
        if row[0] is None:
            raise NotFound
        self.repo, self.role = repos.to_row(row), self.role_of(row)
        self.require_allowed()
        if (what := creation.COUNTED.get(self.operation.name)) is not None:
            await self.count_created(tx, what)
        await self.load_policy(tx)

    def require_allowed(self) -> None:
        """Raise an error unless the table of rights allows the operation, for this caller and this state of
        the repository. Some operations are also allowed to the author of a thing, such as a comment. For
        these a missing role is no error here: the service must then check the authorship by
        `require_author`."""
        may = self.operation
        me = self.principal
        if me is not None and me.is_guest and not may.guest:
            raise IdentityLevel("a guest session cannot write; sign in with an account: svc login")
        if may.least is not None and not self._has_right(may):
            if not may.author or me is None:
                self.require(may.least)
            self._unproven = True
        if not may.archived:
            self.require_active()

    def may(self, operation: Operation) -> bool:
        """Whether the caller may request this operation on the repository, as `require_allowed` checks it.
        Pages call this for each of their controls."""
        me = self.principal
        if me is not None and me.is_guest and not operation.guest:
            return False
        if not self._has_right(operation) and not (operation.author and me is not None):
            return False
        return operation.archived or self.repo.state != "archived"

    def _has_right(self, may: Operation) -> bool:
        """Whether the caller's role suffices for the operation, or the operation is open to all readers of a
        public repository."""
        return may.least is None or self.has(may.least) or self._as_public(may)

    def _as_public(self, may: Operation) -> bool:
        """Whether a caller without a role may perform the operation because the repository is public."""
        me = self.principal
        return may.anonymous if me is None else may.guest if me.is_guest else may.stranger

    def require_author(self, account_id: str) -> None:
        """Raise Forbidden unless the caller is the account `account_id` or has the role that the operation
        needs. Every operation that the table of rights allows to an `author` calls this inside its
        transaction."""
        may = self.operation
        if may.least is not None and not self.has(may.least) and self.me.account_id != account_id:
            self.require(may.least)
        self._unproven = False

    def _require_proven(self) -> None:
        if self._unproven:
            raise TypeError(f"{self.operation.name} asked nobody whether the caller is the author")

    async def load_policy(self, tx: Tx | None = None) -> None:
        """Load the rules that hide paths from this caller. Nothing is hidden from the role `write` and
        above."""
        number = self.repo.policy
        if number is None or self.has("write"):
            self.policy = None
        elif self.policy is None or self.policy.number != number:
            if tx is None:
                async with self.read() as own:
                    rules = await own.all(repos.POLICY, repo_id=self.repo.id)
            else:
                rules = await tx.all(repos.POLICY, repo_id=self.repo.id)
            self.policy = Policy(number, dict(map(tuple, rules)))

    def sees(self, path: str) -> bool:
        """Whether the caller may see files at this path. This is the same for all seals."""
        return self.policy is None or self.policy.sees(path)

    def require_whole(self) -> None:
        """Raise FilteredView if paths are hidden from the caller. Called for answers that cannot be given
        without these paths."""
        if self.policy is not None:
            raise FilteredView(
                f"some paths of {self.repo.full_name} are for its writers only, and this is not "
                "answered in part; read files by their paths"
            )

    def has(self, role: Role) -> bool:
        return RANK[self.role] >= RANK[role]

    def require(self, role: Role) -> None:
        if not self.has(role):
            name = self.repo.full_name
            ask = "" if role == "owner" else f"; to ask for it: svc repo access request {name} --role {role}"
            raise Forbidden(f"this needs the role {role} in {name}; you have {self.role or 'none'}{ask}")

    def require_room(self, used: int, most: int, what: str, new: int = 1) -> None:
        """Raise Conflict if the repository would then have more than `most` things of a kind. `used`: how
        many it has. `new`: how many are added. `what`: the kind, as a plural for the message."""
        if used + new > most:
            raise Conflict(f"{self.repo.full_name} has {most} {what}, and no repository has more")

    def require_active(self) -> None:
        """Raise RepositoryArchived if the repository is archived."""
        if self.repo.state == "archived":
            raise RepositoryArchived(
                f"{self.repo.full_name} is archived; run: svc repo unarchive -R {self.repo.full_name}"
            )
