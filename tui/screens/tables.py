"""The actions of each place in the app (a screen or a tab). Also checks the user's keys for them."""

from __future__ import annotations

from collections.abc import Mapping

from localstore.core.errors import UsageError
from tui.actions import EVERYWHERE, Action, clashes, remap
from tui.offers import OFFERS
from tui.screens.code.code import Code
from tui.screens.code.comparison import Comparison
from tui.screens.code.edit_keys import EDIT_ACTIONS
from tui.screens.code.overview import Overview
from tui.screens.home import Home
from tui.screens.lists.inbox import Inbox
from tui.screens.lists.insights import Insights
from tui.screens.lists.new_release import NewRelease
from tui.screens.lists.releases import Releases, ReleaseScreen
from tui.screens.lists.runs import RunScreen, Workflows
from tui.screens.lists.security import Security
from tui.screens.machine.machine import MachineScreen
from tui.screens.proposal.files import Files
from tui.screens.proposal.merge import Merge
from tui.screens.proposal.screen import ProposalScreen
from tui.screens.repo import RepoScreen
from tui.screens.settings.account import Account
from tui.screens.settings.rule import RuleScreen
from tui.screens.settings.settings import Settings
from tui.screens.sync import Sync
from tui.screens.talk.editing import Editing
from tui.screens.talk.issue import IssueScreen
from tui.screens.talk.issues import Issues
from tui.screens.talk.new_issue import NewIssue
from tui.screens.talk.new_proposal import NewProposal

PLACES: dict[str, tuple[tuple[Action, ...], ...]] = {
    "home": (Home.ACTIONS, EVERYWHERE),
    "overview": (Overview.ACTIONS, RepoScreen.ACTIONS, EVERYWHERE),
    "code": (Code.ACTIONS, RepoScreen.ACTIONS, EVERYWHERE),
    "comparison": (Comparison.ACTIONS, EVERYWHERE),
    "edit": (EDIT_ACTIONS,),
    "issues": (Issues.ACTIONS, RepoScreen.ACTIONS, EVERYWHERE),
    "edit a text": (Editing.ACTIONS, EVERYWHERE),
    "new issue": (NewIssue.ACTIONS, EVERYWHERE),
    "new proposal": (NewProposal.ACTIONS, EVERYWHERE),
    "new release": (NewRelease.ACTIONS, EVERYWHERE),
    "issue": (IssueScreen.ACTIONS, EVERYWHERE),
    "releases": (Releases.ACTIONS, RepoScreen.ACTIONS, EVERYWHERE),
    "release": (ReleaseScreen.ACTIONS, EVERYWHERE),
    "inbox": (Inbox.ACTIONS, EVERYWHERE),
    "proposal": (ProposalScreen.ACTIONS, EVERYWHERE),
    "merge": (Merge.ACTIONS, EVERYWHERE),
    "files": (Files.ACTIONS, EVERYWHERE),
    "workflows": (Workflows.ACTIONS, RepoScreen.ACTIONS, EVERYWHERE),
    "run": (RunScreen.ACTIONS, EVERYWHERE),
    "security": (Security.ACTIONS, RepoScreen.ACTIONS, EVERYWHERE),
    "insights": (Insights.ACTIONS, RepoScreen.ACTIONS, EVERYWHERE),
    "settings": (Settings.ACTIONS, RepoScreen.ACTIONS, EVERYWHERE),
    "rule": (RuleScreen.ACTIONS, EVERYWHERE),
    "account": (Account.ACTIONS, EVERYWHERE),
    "sync": (Sync.ACTIONS, EVERYWHERE),
    "machine": (MachineScreen.ACTIONS, EVERYWHERE),
}


def actions_in(place: str) -> list[Action]:
    """Returns the actions of a place in the app (a screen or a tab). If several have the same id, the first
    one counts."""
    by_id: dict[str, Action] = {}
    for table in (*PLACES[place], OFFERS):
        for action in table:
            by_id.setdefault(action.id, action)
    return list(by_id.values())


def commands_with_rights() -> dict[str, str]:
    """Returns which right each command of svc needs: the name of an operation in the table of rights, by
    command. Only commands that an action of the app stands for are included."""
    rights: dict[str, str] = {}
    for place in PLACES:
        for action in actions_in(place):
            words = [word for word in action.command.split()[1:] if word[0] not in "-{" and word.islower()]
            if action.right:
                rights.setdefault(" ".join(words), action.right)
    return rights


def require_keys(keys: Mapping[str, tuple[str, ...]], source: str) -> None:
    """Check the user's keys, which are given by the id of the action. Raises UsageError for an unknown
    action, and if two actions have the same key. `source`: the file, for the message."""
    ids = {action.id for place in PLACES for action in actions_in(place)}
    unknown = sorted(set(keys) - ids)
    if unknown:
        raise UsageError(
            f"{source} names {unknown[0]}, which is not an action; known: {', '.join(sorted(ids))}"
        )
    for place in PLACES:
        sentences = clashes(remap(actions_in(place), keys))
        if sentences:
            raise UsageError(f"{source}: two actions on one key in {place}: {sentences[0]}")
