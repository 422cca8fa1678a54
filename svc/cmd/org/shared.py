"""What the commands on organisations have in common."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import StrEnum

from localstore.core.errors import NotFound
from localstore.core.names import handle
from svc.http.checked import argument


class MemberRoleName(StrEnum):
    admin = "admin"
    member = "member"


def handle_of(typed: str) -> str:
    """A handle as somebody types it. Raises Invalid for what none can be."""
    return argument(handle, typed.removeprefix("@"))


@contextlib.contextmanager
def explained(org: str) -> Iterator[None]:
    """Explain the bare 404 of an organisation that is missing, or not the caller's; one that says what is
    missing stays as it is."""
    try:
        yield
    except NotFound as error:
        if not error.bare:
            raise
        raise NotFound(f"you are not a member of an organisation {org}; see: svc org list") from None
