"""The fields of the forms on a repository's pages, and functions that read them. Also has `Attempt`, a form
that was refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from localstore.core.errors import SvcError
from localstore.core.model.base import Sent


class ActForm(Sent, frozen=True):
    """A form on a repository's page. `act`: a name of `acts.ACTS`, and for some buttons a space and what the
    act is applied to, such as a name. `key`: differs for each form that was shown, so that a form sent twice
    takes effect once. The reader types the other fields, and each act reads those it needs.

    `n`: number of an issue or proposal. `comment`, `thread`: id of a comment or thread in it. `path`, `side`,
    `start`, `end`: lines of a proposal. `suggestion`: the lines to replace them with, if `suggest` is ticked.
    """

    act: str = ""
    key: str = ""
    n: str = ""
    comment: str = ""
    thread: str = ""
    title: str = ""
    text: str = ""
    labels: str = ""
    handle: str = ""
    role: str = ""
    verdict: str = ""
    seal: str = ""
    path: str = ""
    side: str = ""
    start: str = ""
    end: str = ""
    suggest: str = ""
    suggestion: str = ""
    head: str = ""
    base: str = ""
    name: str = ""
    confirm: str = ""
    branch: str = ""
    kind: str = ""
    images: str = ""
    url: str = ""
    secret: str = ""
    events: str = ""
    approvals: str = ""
    require_checks: str = ""
    lock_writes: str = ""
    require_resolution: str = ""
    fresh_approvals: str = ""

    @property
    def name_of_act(self) -> str:
        return self.act.partition(" ")[0]

    @property
    def object_of_act(self) -> str:
        """The object of the act, such as a name, which the pressed button appended to `act`; "" for none."""
        return self.act.partition(" ")[2]


@dataclass(frozen=True, slots=True)
class Attempt:
    """A form that was refused, with the reason. The page shows the reason and the typed text."""

    form: ActForm
    problem: SvcError


def lines(text: str) -> str:
    """The text of a form, with LF instead of the CRLF that browsers send."""
    return text.replace("\r\n", "\n")


def names(typed: str) -> list[str]:
    """The names in a text that separates names by commas."""
    return [name for part in typed.split(",") if (name := part.strip())]
