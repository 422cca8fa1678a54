"""Every command of `svc`, in the order of its help. The only place to register one.

A command is a plain function; its module is imported when the command runs or its own help is asked for.
`summary` repeats the first line of the function's docstring, so that lists of commands import nothing.
"""

from __future__ import annotations

import msgspec


class Entry(msgspec.Struct, frozen=True):
    """`target` is module:function below `svc.cmd`."""

    target: str
    summary: str


GROUPS: dict[str, str] = {
    "": "Repositories of source and large binaries, edited live, sealed into signed commits",
    "auth": "Your sessions, tokens and devices",
    "auth token": "Sessions and script tokens of your account",
    "auth device": "Device keys of your account",
    "repo": "Repositories: create, clone, look, settle",
    "repo device": "This machine's device key",
    "repo tag": "Tags",
    "watcher": "Watch folders, so that svc status need not walk them",
}

COMMANDS: dict[str, Entry] = {
    "login": Entry("login:login", "Sign in to a server"),
    "logout": Entry("login:logout", "End this machine's session"),
    "push": Entry("push:push", "Send your changes live and seal them with a message"),
    "pull": Entry("pull:pull", "Bring the branch's changes into this folder"),
    "status": Entry("status:status", "Show what differs between this folder and its branch"),
    "log": Entry("log:log", "List the seals of a branch, newest first"),
    "show": Entry("show:show", "Show a seal: its message, who made it on which device, and what it changed"),
    "diff": Entry("diff:diff", "Show what changed, line by line"),
    "blame": Entry("blame:blame", "Show who last changed each line of a file"),
    "conflicts": Entry("resolve:conflicts", "List files of which two versions stand against each other"),
    "resolve": Entry("resolve:resolve", "Choose or write the version that a file in conflict gets"),
    "switch": Entry("switch:switch", "Turn this folder to another branch, or show a tag or seal"),
    "restore": Entry("restore:restore", "Bring files back as the last seal, or another one, has them"),
    "revert": Entry("revert:revert", "Take the changes of one seal back, as edits of this folder"),
    "auth status": Entry("auth:status", "Show who you are on the server, and until when"),
    "auth token list": Entry("auth_token:list_tokens", "List your sessions and script tokens"),
    "auth token revoke": Entry("auth_token:revoke", "End a session or script token"),
    "auth device add": Entry("auth_device:add", "Make a one-time code with which another device joins"),
    "auth device list": Entry("auth_device:list_devices", "List the device keys of your account"),
    "auth device rename": Entry("auth_device:rename", "Call a device by another name"),
    "auth device revoke": Entry("auth_device:revoke", "Revoke a device key; what it sealed stays valid"),
    "repo init": Entry("repo_init:init", "Link this folder to a repository"),
    "repo create": Entry("repo_create:create", "Create a repository"),
    "repo clone": Entry("repo_clone:clone", "Copy a repository into a new folder"),
    "repo status": Entry("status:status", "Show what differs between this folder and its branch"),
    "repo view": Entry("repo_view:view", "Show a repository"),
    "repo list": Entry("repo_list:list_repos", "List repositories"),
    "repo search": Entry("repo_list:search", "Search repositories"),
    "repo edit": Entry("repo_settings:edit", "Change description or default branch"),
    "repo rename": Entry("repo_settings:rename", "Rename a repository; its old name leads to it for 90 days"),
    "repo visibility": Entry("repo_settings:visibility", "Make a repository public or private"),
    "repo archive": Entry("repo_settings:archive", "Refuse every write until it is unarchived"),
    "repo unarchive": Entry("repo_settings:unarchive", "Accept writes again"),
    "repo delete": Entry("repo_settings:delete", "Delete a repository; it can be restored for 30 days"),
    "repo restore": Entry("repo_settings:restore", "Bring a deleted repository back"),
    "repo branch": Entry("branch:branch", "List branches, or create one"),
    "repo branch-delete": Entry("branch:branch_delete", "Delete a branch; its seals stay reachable by id"),
    "repo tag create": Entry("tag:create", "Create a tag"),
    "repo tag list": Entry("tag:list_tags", "List tags"),
    "repo tag delete": Entry("tag:delete", "Delete a tag"),
    "repo device status": Entry(
        "repo_device:status", "Show this machine's device key and whether it is registered"
    ),
    "repo executable": Entry(
        "repo_executable:executable", "Show which files are executable here, and list them in .svc.yaml"
    ),
    "repo api": Entry("api:api", "Call any route of the server"),
    "watcher start": Entry("watcher:start", "Watch this folder, so that svc status need not walk it"),
    "watcher stop": Entry("watcher:stop", "End the watcher of this folder"),
    "watcher list": Entry("watcher:list_watched", "List the folders that are watched on this machine"),
    "completions": Entry("completions:completions", "Print a completion script for your shell"),
    "version": Entry("version:version", "Show the versions of this program and of the server"),
}


def children(group: str) -> dict[str, str]:
    """Name → summary of what stands directly below `group` ("" is the top): commands, then groups."""
    depth = len(group.split())
    found: dict[str, str] = {}
    for path, entry in COMMANDS.items():
        words = path.split()
        if " ".join(words[:depth]) != group:
            continue
        name = words[depth]
        found[name] = entry.summary if len(words) == depth + 1 else GROUPS[" ".join(words[: depth + 1])]
    return found
