"""Commands on listings, advisories, artifacts and dependencies."""

from svc.cmd.frame.registration import Registration

GROUPS: dict[str, str] = {}

COMMANDS: dict[str, Registration] = {
    "repo listing": Registration("catalog.listing:listing", "Show or change the listing of a repository"),
    "repo deps": Registration("catalog.deps:deps", "Show what a repository depends on"),
    "repo dependents": Registration(
        "catalog.deps:dependents", "List the repositories that depend on this one"
    ),
    "repo artifacts": Registration("catalog.artifacts:artifacts", "List the binary files of a seal"),
    "advisories": Registration("catalog.advisories:advisories", "List security advisories, or show one"),
}
