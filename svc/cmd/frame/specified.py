"""The commands that are planned for svc. Some may be missing in this version; with this list `svc` can say
so, instead of "unknown command"."""

from __future__ import annotations

from svc.cmd.frame.table import COMMANDS, GROUPS

# Group -> its commands. What is built is in `svc.cmd.frame.table`; the rest is missing.
_SPECIFIED = {
    "": "login logout upgrade completions push pull advisories",
    "auth": "status",
    "auth token": "list revoke",
    "repo": (
        "init create status clone view list api edit rename visibility archive unarchive delete restore "
        "fork transfer transfer-list transfer-accept search listing forks deps artifacts branch "
        "branch-delete"
    ),
    "repo device": "status",
    "repo paths": "list set remove timeline",
    "repo tag": "create list delete",
    "repo collaborator": "list add remove role",
    "repo access": "list request grant decline",
    "repo invite": "accept decline",
    "repo protect": "list set clear",
    "pr": (
        "create list status view diff checkout checks review merge update-branch close reopen edit "
        "comment ready react"
    ),
    "pr label": "add remove",
    "issue": "create list status view edit close reopen comment react",
    "issue label": "add remove",
    "label": "list create edit delete clone",
    "repo release": "list create view edit delete upload download delete-asset",
    "repo run": "list view watch cancel rerun create",
    "repo checks": "list enable disable",
    "repo webhook": "create",
    "repo reports": "list decide",
    "llm": "cp",
    "app": "launch list stop status restart logs install uninstall update manifest open check",
}
SPECIFIED = tuple(f"{group} {name}".strip() for group, names in _SPECIFIED.items() for name in names.split())


def missing() -> list[str]:
    """Return the planned commands that this version lacks."""
    return [path for path in SPECIFIED if path not in COMMANDS]


def not_built(group: str, words: list[str]) -> str | None:
    """Return the command or group that `svc GROUP WORDS` names, if it is planned but missing in this version.
    Otherwise return None."""
    absent = missing()
    path, specified = group, None
    for word in words:
        path = f"{path} {word}".strip()
        if path in COMMANDS or not any(
            known_path == path or known_path.startswith(f"{path} ") for known_path in absent
        ):
            break
        specified = None if path in GROUPS else path
    return specified
