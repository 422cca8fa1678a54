"""An operation: one thing that can be asked of a relay, and who may ask for it.

A route names its operation, the gate and the write transaction ask it, and the reference and the tests are
made from it. It stands in the kernel because it is a rule and nothing else: the relay's gate and `View` need
it, which may not import each other, and a client can say beforehand what will be refused.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

Role = Literal["owner", "admin", "write", "triage", "read"]
Capability = Literal["read", "write", "admin"]
Edition = Literal["self-hosted-community", "self-hosted-business", "managed"]
About = Literal["repository", "account", "browser", "node"]
Who = Literal["owner", "admin", "write", "triage", "read", "author", "stranger", "guest", "anonymous"]

CALLERS: tuple[Who, ...] = get_args(Who)
"""The columns of the table. `author`: who wrote what is changed, and may read the repository; `stranger`:
signed in, with no role in a public repository."""
EDITIONS: tuple[Edition, ...] = get_args(Edition)
RANK: dict[str | None, int] = {None: 0, "read": 1, "triage": 2, "write": 3, "admin": 4, "owner": 5}


class Operation(msgspec.Struct, frozen=True):
    """`about` repository: `least` is the lowest role that may; `stranger`, `guest` and `anonymous` may too
    where the repository is public; `author`: so may who wrote the subject, which the service proves
    (`View.require_author`). While archived only if `archived`; suspended, killed or deleted it is the
    constant 404 for everybody.

    `about` account: a session, of a guest too if `guest`. Browser: a session by cookie, which no token
    replaces. Node: anybody.

    `needs`: what the credential must include. `edition`: the least edition that has it. `grows`: puts
    something into a repository that counts, which a nearly full node refuses."""

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
        """Whether the table lets this caller through, where it sees the repository and that is active."""
        if who == "author":
            return self.author or self.stranger
        if who in ("stranger", "guest", "anonymous"):
            return bool(getattr(self, who))
        return self.least is None or RANK[who] >= RANK[self.least]

    def in_edition(self, edition: str) -> bool:
        return EDITIONS.index(edition) >= EDITIONS.index(self.edition)


def reading(name: str, least: Role = "read", *, anonymous: bool = True, guest: bool = True) -> Operation:
    """Reads a repository. Beyond the role `read` nobody else may."""
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
    edition: Edition = "self-hosted-community",
) -> Operation:
    """Changes a repository. What the role `read` may, a stranger may who can read it; a guest stars and
    watches."""
    return Operation(
        name,
        "repository",
        least,
        author=author,
        stranger=least == "read",
        guest=guest,
        archived=archived,
        needs="admin" if least in ("owner", "admin") else "write",
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
    """About an account, of whoever is signed in."""
    return Operation(name, "account", stranger=True, guest=guest, needs=needs, edition=edition)


def in_browser(name: str) -> Operation:
    """A page, or a decision, that takes a session by cookie."""
    return Operation(name, "browser", stranger=True, needs="write")


def open_to_all(name: str) -> Operation:
    """About the node; anybody may ask."""
    return Operation(name, "node", stranger=True, guest=True, anonymous=True)
