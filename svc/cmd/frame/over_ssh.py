"""Which commands run for somebody who came over SSH: those that ask the relay and touch no file."""

from __future__ import annotations

from localstore.core.errors import UsageError

OFFERED = frozenset(
    {
        "advisories",
        "auth device list",
        "auth status",
        "auth token list",
        "blame",
        "inbox",
        "issue comment",
        "issue list",
        "issue react",
        "issue status",
        "issue view",
        "label list",
        "log",
        "org invite list",
        "org list",
        "org member list",
        "org view",
        "pr checks",
        "pr comment",
        "pr diff",
        "pr list",
        "pr range-diff",
        "pr react",
        "pr review",
        "pr status",
        "pr threads",
        "pr versions",
        "pr view",
        "repo access list",
        "repo artifacts",
        "repo audit",
        "repo checks list",
        "repo collaborator list",
        "repo dependents",
        "repo deps",
        "repo forks",
        "repo invite list",
        "repo list",
        "repo paths list",
        "repo protect list",
        "repo release list",
        "repo release view",
        "repo reports list",
        "repo reports view",
        "repo run list",
        "repo run view",
        "repo run watch",
        "repo search",
        "repo tag list",
        "repo transfer-list",
        "repo view",
        "repo webhook deliveries",
        "repo webhook delivery",
        "repo webhook list",
        "repo webhook view",
        "show",
        "tui",
        "version",
    }
)


def require_offered(path: str, server: str | None) -> None:
    """Raise UsageError for a command that needs files or changes more than a session over SSH may, and where
    another server is named."""
    if path not in OFFERED:
        raise UsageError(
            f"{path} is not available over SSH: no files are here, and the session may read, comment and "
            "review; use an installed svc"
        )
    if server is not None:
        raise UsageError("a session over SSH is for this relay alone; omit --server")
