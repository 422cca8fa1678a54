"""The table of all commands: the commands at the top level, and those of each folder of `svc.cmd`.

A command is a function, whose module is imported when the command runs or shows its help. A folder such as
`svc/cmd/repo` declares `GROUPS` and `COMMANDS` in its `__init__`. It is found without being listed here."""

from __future__ import annotations

import importlib
import pkgutil

import svc.cmd
from svc.cmd.frame.registration import Registration

GROUPS: dict[str, str] = {
    "": "Repositories of source and large binaries, edited live, sealed into signed commits",
    "watch": "Keep folders and their branches together, save by save",
    "watcher": "Watch folders, so that svc status need not walk them",
}

COMMANDS: dict[str, Registration] = {
    "login": Registration("auth.login:login", "Sign in to a server"),
    "logout": Registration("auth.login:logout", "End this machine's session"),
    "push": Registration("push:push", "Send your changes live and seal them with a message"),
    "pull": Registration("pull:pull", "Bring the branch's changes into this folder"),
    "status": Registration("status:status", "Show what differs between this folder and its branch"),
    "log": Registration("log:log", "List the seals of a branch, newest first"),
    "show": Registration(
        "show:show", "Show a seal: its message, who made it on which device, and what it changed"
    ),
    "diff": Registration("diff:diff", "Show what changed, line by line"),
    "blame": Registration("blame:blame", "Show who last changed each line of a file"),
    "grep": Registration("grep:grep", "Search the lines of all files for a pattern"),
    "conflicts": Registration("resolve:conflicts", "List files in conflict"),
    "resolve": Registration("resolve:resolve", "Choose or write the version that a file in conflict gets"),
    "switch": Registration("switch:switch", "Switch this folder to another branch, or show a tag or seal"),
    "restore": Registration("restore:restore", "Restore files from the last seal, or from another one"),
    "revert": Registration("revert:revert", "Undo the changes of one seal, as edits of this folder"),
    "watch": Registration("watch:watch", "Keep this folder and its branch together, save by save"),
    "watch socket": Registration("watch:print_socket", "Print the agent's socket, for editor plugins"),
    "watch list": Registration("watch:list_watches", "List the folders that are watched, with their light"),
    "watch stop": Registration("watch:stop", "Stop watching this folder"),
    "watcher start": Registration("watcher:start", "Watch this folder, so that svc status need not walk it"),
    "watcher stop": Registration("watcher:stop", "End the watcher of this folder"),
    "watcher list": Registration("watcher:list_watched", "List the folders that are watched on this machine"),
    "invoke": Registration("invoke:invoke", "Call a command of the agent, as programs do"),
    "tui": Registration("tui:tui", "Open the terminal app"),
    "completions": Registration("completions:completions", "Print a completion script for your shell"),
    "upgrade": Registration("upgrade:upgrade", "Upgrade this program, or only check"),
    "version": Registration("version:version", "Show the versions of this program and of the server"),
}


def _add_folders() -> None:
    for info in pkgutil.iter_modules(svc.cmd.__path__):
        if info.ispkg and info.name != "frame":
            folder = importlib.import_module(f"svc.cmd.{info.name}")
            GROUPS.update(folder.GROUPS)
            COMMANDS.update(folder.COMMANDS)


_add_folders()


def children(group: str) -> dict[str, str]:
    """Return the summaries, by name, of what is directly below `group`: first the commands, then the groups.
    "" is the top level."""
    depth = len(group.split())
    summaries: dict[str, str] = {}
    for path, entry in COMMANDS.items():
        words = path.split()
        if " ".join(words[:depth]) != group or len(words) == depth:
            continue
        name = words[depth]
        summaries[name] = entry.summary if len(words) == depth + 1 else GROUPS[" ".join(words[: depth + 1])]
    return summaries
