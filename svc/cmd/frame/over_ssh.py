"""The commands that a user who connected over SSH may run. They only send requests to the relay, and use no
files."""

from __future__ import annotations

from typing import Any

from localstore.core.errors import UsageError
from localstore.core.identity.ssh import FORWARD

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

SIGNED = frozenset(
    {
        "issue close",
        "issue create",
        "issue edit",
        "issue label add",
        "issue label remove",
        "issue reopen",
        "label create",
        "label delete",
        "label edit",
        "pr apply",
        "pr close",
        "pr edit",
        "pr label add",
        "pr label remove",
        "pr merge",
        "pr ready",
        "pr reopen",
        "pr resolve",
        "pr update-branch",
        "repo release create",
        "repo release delete",
        "repo release edit",
        "repo release sign",
        "repo star",
        "repo tag create",
        "repo tag delete",
        "repo unstar",
        "repo unwatch",
        "repo watch",
    }
)
"""Those that a forwarded agent signs."""


def list_offered(agent: bytes) -> frozenset[str]:
    """Return the commands that may run over SSH. `agent` is the public key of the user's forwarded SSH agent,
    with which more commands are allowed. It is empty if there is no agent."""
    return OFFERED | SIGNED if agent else OFFERED


def require_no_files(params: list[Any], values: dict[str, Any]) -> None:
    """Raise UsageError if an option or argument names a file. The files on the relay's machine are not the
    user's. Standard input is allowed."""
    for param in params:
        if "FILE" not in str(param.metavar):
            continue
        value = values.get(param.name)
        names = [value] if isinstance(value, str) else list(value or ())
        if any(name != "-" for name in names):
            pipe = f"; pipe it: {param.opts[0]} - < FILE" if param.param_type_name == "option" else ""
            raise UsageError(f"no files are here over SSH{pipe or '; omit FILE'}")


def require_offered(path: str, server: str | None, agent: bytes) -> None:
    """Raise UsageError if the command at `path` may not run over SSH (`list_offered`), or if the user named a
    `server`. `agent` is the public key of the forwarded SSH agent; it is empty if there is none."""
    if path in SIGNED and not agent:
        raise UsageError(f"{path}: {FORWARD}")
    if path not in list_offered(agent):
        raise UsageError(
            f"{path} is not available over SSH, where no files are and little can be changed; "
            "use an installed svc"
        )
    if server is not None:
        raise UsageError("a session over SSH is for this relay alone; omit --server")
