"""Capability tokens: Biscuit v2, made by the token signer of a relay. Only the class `Guard` reads them.

The first block of a token is `user(hex); sid(hex); [cnf(hex);] caps({...}); check if time($t), $t < exp`,
with the Ed25519 key that the token is bound to in `cnf`. The holder may append blocks offline that narrow the
token.

Blocks contain rules in the language Datalog. A stranger's rules can run for minutes and cannot be stopped. So
`Guard` first checks that all statements of appended blocks have one of two harmless shapes (`_CHECK`). Before
that it evaluates nothing. A token has many encodings, so it is revoked by its revocation ids and not by a
digest of its bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from biscuit_auth import (
    AuthorizationError,
    AuthorizerBuilder,
    Biscuit,
    BiscuitBuilder,
    BlockBuilder,
    KeyPair,
    PrivateKey,
    PublicKey,
)

from localstore.core.errors import Forbidden, Invalid, Unauthorized, Unavailable
from localstore.core.identity.keys import KEY_BYTES, check_ed25519
from localstore.core.model.limits import (
    REF_NAME_BYTES,
    TOKEN_BLOCKS_MAX,
    TOKEN_MINTED_MAX,
    TOKEN_MINTED_MIN,
    TOKEN_RAW_MAX,
    TOKEN_STATEMENTS_MAX,
)

ID_BYTES = 16  # of user, session and repository ids
AUTHORIZE_TIME = timedelta(milliseconds=20)  # the library's 1 ms refuses good tokens on a busy machine
AUTHORIZE_TRIES = 3  # it is time on the clock: others may have had the processor
GRANTED = 256  # verdicts that are kept with a token: one for each operation and repository

_T = TypeVar("_T")

_POLICY = "allow if caps($c), op($o), $c.contains($o)"

_CAP = r"[a-z][a-z0-9:._-]{0,31}"
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"
_NAME = rf"[A-Za-z0-9._/@+:-]{{1,{REF_NAME_BYTES}}}"
_ATOM = rf'(?:(?:op|ref|aud)\("{_NAME}"\)|(?:repo|req)\(hex:[0-9a-f]{{0,64}}\))'
_CONJUNCTION = rf"{_ATOM}(?:, {_ATOM}){{0,4}}"
_CHECK = re.compile(
    rf"check if (?:{_CONJUNCTION}(?: or {_CONJUNCTION}){{0,15}}|time\(\$t\), \$t < (?P<expires>{_DATE}))"
)
_AUTHORITY = re.compile(
    r"user\(hex:(?P<user>[0-9a-f]{32})\);\n"
    r"sid\(hex:(?P<session>[0-9a-f]{32})\);\n"
    r"(?:cnf\(hex:(?P<bound_key>[0-9a-f]{64})\);\n)?"
    rf'caps\((?P<caps>\{{(?:,|"{_CAP}"(?:, "{_CAP}")*)\}})\);\n'
    rf"check if time\(\$t\), \$t < (?P<expires>{_DATE});\n"
)


@dataclass(frozen=True, slots=True)
class Capability:
    """The content of a token. `expires`: when the token ends, which is the earliest time that one of its
    blocks sets.

    `bound_key`: the Ed25519 key that must sign requests which change something; None for an unbound token.
    `revocation_ids`: one id of 64 bytes for each block, the first block first. The token is revoked if one of
    its ids is revoked."""

    user: bytes
    session: bytes
    bound_key: bytes | None
    caps: frozenset[str]
    expires: datetime
    revocation_ids: tuple[bytes, ...]


class Token:
    """A token that `Guard.inspect` has verified, ready to authorize requests. Callers cache it by the digest
    of its bytes. It remembers which operations it allows, but checks in every call whether it has expired."""

    __slots__ = ("_biscuit", "_granted", "capability")

    def __init__(self, capability: Capability, biscuit: Biscuit) -> None:
        self.capability = capability
        self._biscuit = biscuit
        self._granted: set[tuple[object, ...]] = set()

    def authorize(
        self,
        op: str,
        now: datetime,
        *,
        repo: bytes | None = None,
        ref: str | None = None,
        audience: str | None = None,
        request: bytes | None = None,
    ) -> None:
        """Return without a result if the token grants the operation `op`.

        Raises Unauthorized (`reason="expired"`) if the token has ended. Raises Forbidden if it does not
        include the operation, or was narrowed to other requests. Raises Unavailable if the check took too
        long. `repo`: repository id; `ref`: name of the branch or tag; `audience`: authority (host and port)
        of the relay; `request`: digest of the request."""
        if now >= self.capability.expires:
            raise Unauthorized("the session has expired; run: svc login", reason="expired")
        if op not in self.capability.caps:
            raise Forbidden(
                f"this session does not include {op!r}; do this where svc login signed you in, without "
                f"SVC_TOKEN, or with a token that includes {op!r}: /settings?tab=tokens of the server"
            )
        question = (op, repo, ref, audience, request)
        if question in self._granted:
            return
        facts = {"op": op, "repo": repo, "ref": ref, "aud": audience, "req": request}
        given = {name: value for name, value in facts.items() if value is not None}
        source = "time({now}); " + "".join(f"{name}({{{name}}}); " for name in given) + _POLICY
        if not self._allows(source, {"now": now, **given}):
            raise Forbidden(f"this session was narrowed and does not allow {op!r} here")
        if len(self._granted) >= GRANTED:
            self._granted.clear()
        self._granted.add(question)

    def _allows(self, source: str, parameters: dict[str, Any]) -> bool:
        """Whether the token allows a request. `source`, `parameters`: the request as facts in Datalog, the
        language of the token's rules. Raises Unavailable if the check does not end in time, even after
        several tries."""
        for _ in range(AUTHORIZE_TRIES):
            try:
                _guard(lambda: self._run(source, parameters))
                return True
            except AuthorizationError as error:
                if "limits" not in str(error):
                    return False
        raise Unavailable("the request could not be authorized in time; try again")

    def _run(self, source: str, parameters: dict[str, Any]) -> None:
        """Check a request against the rules of the token, in at most AUTHORIZE_TIME. `source`, `parameters`:
        the request as facts in Datalog, the language of the rules. Raises the errors of the library for
        tokens."""
        authorizer: Any = AuthorizerBuilder(source, parameters)
        limits = authorizer.limits()
        limits.max_time = AUTHORIZE_TIME
        authorizer.set_limits(limits)
        authorizer.build(self._biscuit).authorize()


class Guard:
    """The only reader of tokens. `root_public_keys`: for each root key id the Ed25519 public key (32 bytes)
    that verifies tokens."""

    def __init__(self, root_public_keys: Mapping[int, bytes]) -> None:
        self._roots: dict[int | None, PublicKey] = {
            number: _root_public_key(public) for number, public in root_public_keys.items()
        }

    def inspect(self, raw: bytes) -> Token:
        """The token with these bytes. Its signatures and its shape are verified, but no rule in it is
        evaluated, so the result depends on the bytes only.

        Raises Unauthorized for an invalid token, and for one to which a holder has added anything except
        harmless checks."""
        if len(raw) > TOKEN_RAW_MAX:
            raise _refusal(f"it is longer than {TOKEN_RAW_MAX} bytes")
        if b"check if" in raw:  # a name that would print as a statement
            raise _refusal("a name in it is not allowed")
        biscuit = _unauthorized_on_failure(lambda: Biscuit.from_bytes(raw, self._roots.__getitem__))
        return _unauthorized_on_failure(lambda: _inspect(biscuit))

    def check(
        self,
        raw: bytes,
        now: datetime,
        op: str,
        repo: bytes | None = None,
        ref: str | None = None,
    ) -> Capability:
        """Reads the token with the bytes `raw` (`inspect`) and checks that it grants the operation `op`
        (`Token.authorize`), for callers that do not cache tokens. Returns its content."""
        token = self.inspect(raw)
        token.authorize(op, now, repo=repo, ref=ref)
        return token.capability


def new_root_key() -> bytes:
    """A new root key of the token signer: the private half, 32 bytes."""
    return bytes(KeyPair().private_key.to_bytes())


def root_public(root_private: bytes) -> bytes:
    """The public half of the root key `root_private`, 32 bytes."""
    return bytes(KeyPair.from_private_key(_root_private_key(root_private)).public_key.to_bytes())


def mint(
    root_private: bytes,
    *,
    user: bytes,
    session: bytes,
    bound_key: bytes | None,
    caps: Iterable[str],
    expires: datetime,
    root_key_id: int,
) -> bytes:
    """A new token of TOKEN_MINTED_MIN to TOKEN_MINTED_MAX raw bytes.

    `root_private`: the key that signs the token, and `root_key_id` its id. `user` and `session`: ids of 16
    bytes; `bound_key`: an Ed25519 key, None for an unbound token; `caps`: the capabilities. Raises Invalid
    for malformed values, and if the capabilities do not fit."""
    names = set(caps)
    if len(user) != ID_BYTES or len(session) != ID_BYTES:
        raise Invalid(f"user and session ids have {ID_BYTES} bytes")
    if not all(re.fullmatch(_CAP, name) for name in names):
        raise Invalid(f"capability names match {_CAP}")
    facts: dict[str, Any] = {
        "user": user,
        "session": session,
        "caps": names,
        "expires": _whole_second(expires),
    }
    bound = ""
    if bound_key is not None:
        check_ed25519(bound_key)
        facts["bound_key"], bound = bound_key, "cnf({bound_key}); "
    source = f"user({{user}}); sid({{session}}); {bound}caps({{caps}}); check if time($t), $t < {{expires}}"
    builder = BiscuitBuilder(source, facts)
    builder.set_root_key_id(root_key_id)
    raw = bytes(builder.build(_root_private_key(root_private)).to_bytes())
    if not TOKEN_MINTED_MIN <= len(raw) <= TOKEN_MINTED_MAX:
        raise Invalid(f"a token has {TOKEN_MINTED_MIN} to {TOKEN_MINTED_MAX} bytes; these take {len(raw)}")
    return raw


def attenuate(
    raw: bytes,
    root_public_keys: Mapping[int, bytes],
    *,
    ops: Iterable[str] | None = None,
    repo: bytes | None = None,
    ref: str | None = None,
    expires: datetime | None = None,
) -> bytes:
    """The token `raw`, narrowed to some operations, one repository, one branch or tag, or an earlier end. A
    parameter that is None does not narrow it. No relay is needed for this.

    Raises Invalid for a malformed name or a result that is too long, Unauthorized if none of the keys
    verifies `raw`."""
    operations = sorted(set(ops or ()))
    if not all(re.fullmatch(_NAME, name) for name in (*operations, *([] if ref is None else [ref]))):
        raise Invalid(f"names of operations and refs in a token match {_NAME}")
    checks: list[str] = []
    if ops is not None:
        checks.append("check if " + " or ".join(f'op("{name}")' for name in operations))
    place = [f"repo(hex:{repo.hex()})"] if repo is not None else []
    if ref is not None:
        place.append(f'ref("{ref}")')
    if place:
        checks.append("check if " + ", ".join(place))
    if expires is not None:
        checks.append(f"check if time($t), $t < {_whole_second(expires):%Y-%m-%dT%H:%M:%SZ}")
    if not checks or not all(_CHECK.fullmatch(check) for check in checks):
        raise Invalid(
            "a token can be narrowed to operations, a repository, a ref and an end; one is unusable"
        )
    roots: dict[int | None, PublicKey] = {n: _root_public_key(key) for n, key in root_public_keys.items()}
    token = _unauthorized_on_failure(lambda: Biscuit.from_bytes(raw, roots.__getitem__))
    block = BlockBuilder("; ".join(checks))
    narrowed = bytes(
        _unauthorized_on_failure(lambda: token.append(block)).to_bytes()
    )  # a sealed token refuses
    if len(narrowed) > TOKEN_RAW_MAX or token.block_count() >= TOKEN_BLOCKS_MAX:
        raise Invalid("the token was narrowed too often; start from a fresh one")
    return narrowed


def _inspect(biscuit: Biscuit) -> Token:
    blocks = biscuit.block_count()
    if blocks > TOKEN_BLOCKS_MAX:
        raise _refusal(f"it has more than {TOKEN_BLOCKS_MAX} blocks")
    if any(biscuit.block_external_key(index) is not None for index in range(blocks)):
        raise _refusal("it has a third-party block")
    authority = _AUTHORITY.fullmatch(biscuit.block_source(0))
    if authority is None:
        raise _refusal("its first block has another form")
    ends = [authority["expires"]]
    for index in range(1, blocks):
        ends += _ends_of(biscuit.block_source(index))
    bound_key = authority["bound_key"]
    capability = Capability(
        user=bytes.fromhex(authority["user"]),
        session=bytes.fromhex(authority["session"]),
        bound_key=bytes.fromhex(bound_key) if bound_key else None,
        caps=frozenset(re.findall(rf'"({_CAP})"', authority["caps"])),
        expires=datetime.fromisoformat(min(ends)),
        revocation_ids=tuple(bytes.fromhex(each) for each in _revocation_ids(biscuit)),
    )
    return Token(capability, biscuit)


def _ends_of(source: str) -> list[str]:
    """The end times that one block of a token sets, which a holder has added. `source`: the block as Datalog,
    the language of its rules. Raises Unauthorized if it contains anything except harmless checks."""
    statements = source.removesuffix(";\n").split(";\n") if source else []
    if len(statements) > TOKEN_STATEMENTS_MAX:
        raise _refusal(f"a block has more than {TOKEN_STATEMENTS_MAX} statements")
    matches = [_CHECK.fullmatch(statement) for statement in statements]
    if None in matches:
        raise _refusal("a block holds a statement that is not allowed")
    return [match["expires"] for match in matches if match is not None and match["expires"]]


def _revocation_ids(biscuit: Biscuit) -> list[str]:
    ids: Any = biscuit.revocation_ids  # a property, although the library's types say method
    return list(ids)


def _guard(work: Callable[[], _T]) -> _T:
    """Calls `work`, which uses the library for tokens, and returns its result. A panic of the library, which
    is a BaseException, becomes Unauthorized."""
    try:
        return work()
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            raise _refusal("it cannot be read") from None
        raise


def _unauthorized_on_failure(work: Callable[[], _T]) -> _T:
    """Calls `work`, in which the library for tokens reads untrusted bytes, and returns its result. Any error
    becomes Unauthorized."""
    try:
        return _guard(work)
    except Unauthorized:
        raise
    except Exception:
        raise _refusal("it is damaged or was not signed here") from None


def _refusal(why: str) -> Unauthorized:
    return Unauthorized(f"the token was refused: {why}; run: svc login", reason="token")


def _whole_second(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise Invalid("an end needs a time zone")
    return moment.astimezone(UTC).replace(microsecond=0)


def _root_private_key(private: bytes) -> PrivateKey:
    if len(private) != KEY_BYTES:
        raise Invalid(f"a root key has {KEY_BYTES} bytes")
    return PrivateKey(f"ed25519-private/{private.hex()}")


def _root_public_key(public: bytes) -> PublicKey:
    check_ed25519(public)
    return PublicKey(f"ed25519/{public.hex()}")
