"""An operation: one thing that a caller can request of a relay, and the rule that says who may.

A route names its operation; the gate and the write transaction check it; the reference and tests are
generated from it. It is in `localstore.core` because it is a pure rule: the relay's gate and `View` both need
it and may not import each other, and a client can predict refusals.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, get_args

import msgspec

Role = Literal["owner", "admin", "write", "triage", "read"]
Capability = Literal["read", "talk", "write", "admin"]
Edition = Literal["self-hosted-community", "self-hosted-business", "managed"]
About = Literal["repository", "account", "browser", "node"]
Who = Literal["owner", "admin", "write", "triage", "read", "author", "stranger", "guest", "anonymous"]

CALLERS: tuple[Who, ...] = get_args(Who)
"""The columns of the table. `author`: who wrote what is changed, and may read the repository; `stranger`:
signed in, with no role in a public repository."""
EDITIONS: tuple[Edition, ...] = get_args(Edition)
RANK: dict[str | None, int] = {None: 0, "read": 1, "triage": 2, "write": 3, "admin": 4, "owner": 5}


class Operation(msgspec.Struct, frozen=True):
    """`about` repository: `least` is the lowest role that may; `stranger`, `guest` and `anonymous` also may
    if the repository is public; with `author` the author of the subject may too, which the service checks
    (`View.require_author`). In an archived repository only if `archived`; for a suspended, killed or deleted
    repository the answer is always 404.

    `about` account: needs a session; a guest's session is enough if `guest`. Browser: needs a session by
    cookie. Node: everybody may.

    `needs`: the capability that the credential must include; `talk` is included in `write`. `edition`: the
    lowest edition that has it. `grows`: adds data to a repository, which a nearly full node refuses.
    """

    name: str
    about: About
    least: Role | None = None
    author: bool = False
    stranger: bool = False
    guest: bool = False
    anonymous: bool = False
    archived: bool = True
    needs: Capability = "read"
    edition: Edition = "self-hosted-community"
    grows: bool = False

    def allows(self, who: Who) -> bool:
        """Whether the table allows this caller, in an active repository that it sees."""
        if who == "author":
            return self.author or self.stranger  # an author without a role is a stranger too
        if who in ("stranger", "guest", "anonymous"):
            return bool(getattr(self, who))
        return self.least is None or RANK[who] >= RANK[self.least]

    def in_edition(self, edition: str) -> bool:
        return EDITIONS.index(edition) >= EDITIONS.index(self.edition)


def required(needs: Capability, caps: Collection[str]) -> Capability:
    """The capability that a credential needs for an operation: `write` includes `talk`."""
    return "write" if needs == "talk" and "talk" not in caps else needs


def reading(name: str, least: Role = "read", *, anonymous: bool = True, guest: bool = True) -> Operation:
    """An operation that reads a repository. If `least` is above `read`, only roles in the repository
    count."""
    public = least == "read"
    return Operation(
        name,
        "repository",
        least,
        stranger=public,
        guest=public and guest,
        anonymous=public and guest and anonymous,
    )


def writing(
    name: str,
    least: Role = "write",
    *,
    author: bool = False,
    guest: bool = False,
    archived: bool = False,
    grows: bool = False,
    talk: bool = False,
    edition: Edition = "self-hosted-community",
) -> Operation:
    """An operation that changes a repository. With the least role `read`, strangers who can read the
    repository may too; guests may only star and watch. `talk`: a credential for reading and talking is
    enough."""
    return Operation(
        name,
        "repository",
        least,
        author=author,
        stranger=least == "read",
        guest=guest,
        archived=archived,
        needs="admin" if least in ("owner", "admin") else "talk" if talk else "write",
        edition=edition,
        grows=grows,
    )


def signed_in(
    name: str,
    needs: Capability = "write",
    *,
    guest: bool = False,
    edition: Edition = "self-hosted-community",
) -> Operation:
    """An operation about the caller's account, for any signed-in caller."""
    return Operation(name, "account", stranger=True, guest=guest, needs=needs, edition=edition)


def in_browser(name: str) -> Operation:
    """A page or decision that needs a session by cookie."""
    return Operation(name, "browser", stranger=True, needs="write")


def open_to_all(name: str) -> Operation:
    """An operation about the node, allowed for everybody."""
    return Operation(name, "node", stranger=True, guest=True, anonymous=True)
