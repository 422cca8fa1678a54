"""Follows links in texts inside the app."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from localstore.core.model.repo import Repo
from tui import contents
from tui.screens.code.clipboard import copy

if TYPE_CHECKING:
    from tui.screens.base import Base

SEAL = "seal:"  # begins the target of a seal
NUMBER = "number:"  # begins that of an issue or a proposal
_NUMBER = re.compile(r"number:(?P<repo>[^#]*)#(?P<number>[0-9]{1,9})")


def follow(screen: Base, target: str) -> None:
    """Open the target of a link if it is an issue, a proposal or a seal. Copy any other target (an address, a
    handle or a path), because the app opens nothing on other servers."""
    repo = screen.subject()[0]
    number = _NUMBER.fullmatch(target)
    if target.startswith(SEAL) and repo is not None:
        screen.svc.run_words(["show", target.removeprefix(SEAL), "-R", repo.full_name])
    elif number is not None and repo is not None and number["repo"] in ("", repo.full_name):
        open_number(screen, repo, int(number["number"]))
    else:
        words = target.removeprefix(SEAL).removeprefix(NUMBER)
        copy(screen, words)


def open_number(screen: Base, repo: Repo, number: int) -> None:
    """Open the issue or proposal with this number. As issues and proposals share their numbers, the issue is
    requested first, and the proposal if there is no such issue."""
    from tui.screens.proposal.screen import ProposalScreen
    from tui.screens.talk.issue import IssueScreen

    opened: list[bool] = []

    def issue(_found: object, _at: float) -> None:
        if not opened and screen.in_front:
            opened.append(True)
            screen.app.push_screen(IssueScreen(repo, number))

    def proposal(_found: object, _at: float) -> None:
        if not opened and screen.in_front:
            opened.append(True)
            screen.app.push_screen(ProposalScreen(repo, number))

    svc = screen.svc
    svc.load(
        contents.issue(repo.id, number),
        issue,
        lambda _: svc.load(contents.proposal(repo.id, number), proposal),
    )
