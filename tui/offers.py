"""Actions without a key: commands for collaboration that no screen has a key for.

The palette offers them on every screen. Each opens a form, which is filled with values from the screen. The
user's `keys.toml` can give them keys, such as `label_create = "f2"`. Together with the actions that have keys
they cover every command for issues, proposals, labels, the inbox and advisories, and the commands of `svc
repo` for releases, runs, checks, reports, webhooks, people, rules, branches and tags. The test
tests/tui/test_every_action checks that."""

from __future__ import annotations

from tui.actions import Action

# Operation in the table of rights ("": everybody's) → commands.
_RIGHTS: dict[str, tuple[str, ...]] = {
    "": (
        "repo invite list",
        "repo invite accept",
        "repo invite decline",
        "repo transfer-list",
        "repo transfer-accept",
        "repo transfer-decline",
        "repo transfer-cancel",
        "repo access request",
        "issue status",
        "pr status",
    ),
    # --- issues and labels
    "issue.reopen": ("issue reopen",),
    "issue.label": ("issue label remove", "pr label remove"),
    "label.list": ("label list",),
    "label.create": ("label create",),
    "label.edit": ("label edit",),
    "label.delete": ("label delete",),
    "label.clone": ("label clone",),
    # --- proposals
    "proposal.get": ("pr view",),
    "proposal.versions": ("pr versions",),
    "proposal.update_branch": ("pr update-branch",),
    "proposal.reopen": ("pr reopen",),
    "check.list": ("pr checks", "repo checks list"),
    "thread.list": ("pr threads",),
    # --- releases
    "release.list": ("repo release list",),
    "publication.create": ("repo release sign",),
    "release.delete": ("repo release delete",),
    # --- runs and checks
    "run.list": ("repo run list",),
    "run.get": ("repo run watch",),
    "run.create": ("repo run create",),
    "run.update": ("repo run update",),
    "check.disable": ("repo checks disable",),
    # --- people and rules
    "collaborator.list": ("repo collaborator list",),
    "collaborator.role": ("repo collaborator role",),
    "collaborator.remove": ("repo collaborator remove",),
    "invite.cancel": ("repo invite cancel",),
    "access.list": ("repo access list", "repo access grant", "repo access decline"),
    "protection.list": ("repo protect list",),
    "transfer.create": ("repo transfer",),
    # --- attention
    "star.set": ("repo star",),
    "star.clear": ("repo unstar",),
    "watch.set": ("repo watch",),
    "watch.clear": ("repo unwatch",),
    "fork.create": ("repo fork",),
    "fork.list": ("repo forks",),
    # --- branches and tags
    "ref.list": ("repo branch", "repo tag list"),
    "ref.delete": ("repo branch-delete", "repo tag delete"),
    "ref.create": ("repo tag create",),
    # --- reports and webhooks
    "report.create": ("repo reports create",),
    "report.list": ("repo reports list", "repo reports view"),
    "report.decide": ("repo reports decide",),
    "webhook.create": ("repo webhook create",),
    "webhook.list": ("repo webhook list",),
    "webhook.get": ("repo webhook view",),
    "webhook.edit": ("repo webhook edit",),
    "webhook.delete": ("repo webhook delete",),
    "webhook.ping": ("repo webhook ping",),
    "webhook.deliveries": ("repo webhook deliveries", "repo webhook delivery"),
    "webhook.redeliver": ("repo webhook redeliver",),
}

OFFERS: tuple[Action, ...] = tuple(
    Action(path.replace(" ", "_").replace("-", "_"), (), path, f"svc {path}", right=right)
    for right, paths in _RIGHTS.items()
    for path in paths
)
