"""Pages that wait until the reader has run a command, because the act needs a device's signature.

Such a page asks the browser to reload it, a limited number of times. It does so only after the reader
followed a link to wait. It has no form, so that no typed text is lost.
"""

from __future__ import annotations

from dataclasses import replace

from relay.http.routing import Reply

SECONDS = 5  # between two looks
TIMES = 60  # looks at most
MINUTES = SECONDS * TIMES // 60


def refreshing(reply: Reply, address: str, times: int) -> Reply:
    """Make the browser reload this page after some seconds. Does nothing if the reader has not chosen to wait
    (`times` is 0), or after many times. `times`: how often the page was loaded so far. `address`: the page's
    address without this number."""
    if not 0 < times < TIMES:
        return reply
    onward = f"{SECONDS}; url={address}&wait={times + 1}"
    return replace(reply, headers={**reply.headers, "refresh": onward})
