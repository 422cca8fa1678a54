"""Pages that wait until somebody has run a command, since what it does needs a device's signature.

Such a page asks the browser to load it again, a limited number of times, and only after its reader followed
the link to wait. It has no form, so that nothing that was typed is lost."""

from __future__ import annotations

from dataclasses import replace

from relay.http.routing import Reply

SECONDS = 5  # between two looks
TIMES = 60  # looks at most
MINUTES = SECONDS * TIMES // 60


def refreshing(reply: Reply, address: str, times: int) -> Reply:
    """The page with the request to load it again. `address`: without the number of looks; `times`: how often
    it was looked already, 0 if the reader has not asked to wait."""
    if not 0 < times < TIMES:
        return reply
    onward = f"{SECONDS}; url={address}&wait={times + 1}"
    return replace(reply, headers={**reply.headers, "refresh": onward})
