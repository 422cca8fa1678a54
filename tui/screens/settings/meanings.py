"""Explanations of the rows of the settings, each in one or two sentences. They are looked up by panel, and by
field or kind of row."""

from __future__ import annotations

MEANINGS: dict[tuple[str, str], str] = {
    ("General", "description"): "One line about the repository, which lists and the catalog show.",
    ("General", "default_branch"): (
        "The branch that people see first, and that proposals are for unless they name another."
    ),
    ("General", "name"): "The part of OWNER/NAME after the slash.",
    ("General", "kind"): "What the repository holds, such as an app, a library or a model.",
    ("Listing", "name"): "The name under which the catalog shows the repository.",
    ("Listing", "category"): "Where in the catalog it stands.",
    ("Listing", "screenshots"): "Pictures of the repository that the catalog shows, in this order.",
    ("Listing", "readme_images"): "Which pictures of the README the catalog shows.",
    ("Listing", "private"): (
        "The catalog lists public repositories only. Visibility is a row of Lifecycle, further down."
    ),
    ("Listing", "remove"): "Take the repository out of the catalog. The repository itself stays as it is.",
    ("Access", "person"): "Somebody with a role here. Enter changes the role, or takes it away.",
    ("Access", "invited"): "An offer of a role that was not answered yet. Enter takes it back.",
    ("Access", "request"): "Somebody asks for a role. Enter grants it or declines.",
    ("Access", "invite"): "Offer a role to somebody. Rights begin when they accept.",
    ("Access", "member"): (
        "A member of the organisation. Its admins have the rights of the owner in all its repositories."
    ),
    ("Access", "join"): "Invite somebody into the organisation.",
    ("Access", "path"): "Who sees a path and what is below it. Others see digests in its place.",
    ("Automation", "hook"): (
        "An address that is told what happens here, in signed messages. Enter shows what it was "
        "sent, switches it off or deletes it."
    ),
    ("Automation", "add"): "Have another program told what happens here. Its secret is shown once.",
    ("Checks", "check"): (
        "A required check has to pass on the newest seal of a proposal before it is merged, where the rule "
        "of the base branch asks for required checks. Until it has run there, it counts as missing."
    ),
    ("Checks", "choose"): "Choose among the checks that have run here, or type the name of another one.",
    ("Branch rules", "rule"): (
        "What a branch, or all branches of a pattern, ask of a merge: approvals, checks, resolved threads. A "
        "branch with a rule is never deleted."
    ),
    (
        "Branch rules",
        "protect",
    ): "Name a branch or a pattern of branches, and say what a merge needs.",
    ("rule", "required_approvals"): (
        "How many people have to approve a proposal before it is merged; with 0, none. From 1 on, nobody "
        "pushes to the branch or edits it directly."
    ),
    ("rule", "fresh_approvals"): (
        "An approval no longer counts once the proposal has changed after it: only approvals of the newest "
        "version do."
    ),
    ("rule", "require_resolution"): "Every thread of the proposal has to be resolved before it is merged.",
    ("rule", "require_checks"): (
        "Every required check has to pass on the newest seal of the proposal. Nobody pushes to the branch or "
        "edits it directly."
    ),
    ("rule", "checks"): (
        "Which checks are required. The list is the repository's: every rule that asks for required checks "
        "uses it. Enter or c chooses; S saves the list together with this rule, and U brings both back."
    ),
    ("rule", "lock_writes"): "Nothing is written to the branch: no push, no edit, and no merge either.",
    ("rule", "deletion"): (
        "Nobody deletes a branch that a rule matches, whatever else the rule says. Removing the rule (x) "
        "allows it again."
    ),
    ("rule", "branches"): (
        "The branches here whose names match. * matches characters between two slashes, ** slashes too. If "
        "several rules match a branch, the strictest counts."
    ),
    ("rule", "save"): "Send the changes of this rule to the server.",
    ("Lifecycle", "visibility"): "Who may look. Public means everybody, and the whole history.",
    ("Lifecycle", "archive"): "An archived repository can be read and takes no writes.",
    ("Lifecycle", "transfer"): "Offer the repository to another owner, who has seven days to accept.",
    ("Lifecycle", "offered"): "The offer to another owner was not answered yet. Enter takes it back.",
    ("Lifecycle", "delete"): (
        "Delete the repository with its issues, proposals and releases. It can be restored for 30 days."
    ),
}


def meaning(panel: str, kind: str, name: str) -> str:
    """Returns the explanation of a row of the settings. Returns "" if the row needs none."""
    return MEANINGS.get((panel, name)) or MEANINGS.get((panel, kind), "")
