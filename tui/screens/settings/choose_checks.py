"""Lets the user choose which checks are required, among those that have run in the repository. Others can be
typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from localstore.core.model import check
from localstore.core.model.check import Check
from localstore.core.model.repo import Repo
from tui.screens.choose import ChooseSeveral
from tui.screens.proposal.words import last_run
from tui.text import Part, cut_middle, safe

if TYPE_CHECKING:
    from tui.screens.base import Base
    from tui.sending import Sending

BESIDE, LEAST = 42, 16  # columns of the terminal beside a name, and of a name at least
OTHER = ""  # the key of the row that takes a typed name


def choose_checks(
    on: Base,
    checks: Sequence[Check],
    required: Sequence[str],
    when: str,
    take: Callable[[Mapping[str, bool]], None],
) -> None:
    """Show a card with all known checks, in which the required ones are marked. `on`: the screen below the
    card. `required`: the names that are marked at first. `when`: when a change counts, for the title. `take`:
    called with what the user has changed: whether a check is required from then on, by name."""
    room = max(LEAST, on.app.size.width - BESIDE)
    names = [cut_middle(safe(each.name), room) for each in checks]
    width, now = max(map(cell_len, names), default=0) + 2, on.svc.clock()
    offered: dict[str, list[Part]] = {
        each.name: [(set_cell_size(name, width), "text"), *last_run(each, now)]
        for each, name in zip(checks, names, strict=True)
    }
    offered[OTHER] = [("another name …", "dim")]

    def take_other(typed: str) -> None:
        name = typed.strip()
        if not name:
            on.say("a check needs a name; nothing was changed", "warn")
        elif name in offered:
            take({name: True})
        else:
            wait = "Merges that need checks then wait for it."
            on.confirm(f"{safe(name)} has never run here. Require it? {wait}", lambda: take({name: True}))

    def apply(chosen: list[str], removed: list[str]) -> None:
        changes = {name: True for name in chosen if name != OTHER} | dict.fromkeys(removed, False)
        if changes:
            take(changes)
        if OTHER in chosen:
            on.ask("name of a check, such as ci/test", take_other)

    title = f"required checks of all rules, {when}"
    on.app.push_screen(ChooseSeveral(title, offered, required, apply, take_other))


def put_changes(sending: Sending, repo: Repo, changes: Mapping[str, bool]) -> None:
    """Put into the outbox which checks are required from now on. `changes`: whether one is, by name."""
    for name, is_required in changes.items():
        endpoint = check.ENABLE if is_required else check.DISABLE
        sending.put(endpoint, None, None, about=repo.full_name, id=repo.id, name=name)
