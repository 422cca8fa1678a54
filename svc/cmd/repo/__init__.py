"""Commands on repositories."""

from svc.cmd.frame.registration import Registration

GROUPS = {
    "repo": "Create, clone, view and configure repositories",
    "repo device": "This machine's device key",
    "repo tag": "Tags",
    "repo protect": "Protection of branches",
}

COMMANDS: dict[str, Registration] = {
    "repo init": Registration("repo.init:init", "Link this folder to a repository"),
    "repo create": Registration("repo.create:create", "Create a repository"),
    "repo clone": Registration("repo.clone:clone", "Copy a repository into a new folder"),
    "repo status": Registration("status:status", "Show what differs between this folder and its branch"),
    "repo view": Registration("repo.view:view", "Show a repository"),
    "repo list": Registration("repo.list:list_repos", "List repositories"),
    "repo search": Registration("repo.list:search", "Search repositories"),
    "repo fork": Registration("repo.fork:fork", "Fork a public repository"),
    "repo forks": Registration("repo.fork:forks", "List the forks of a repository"),
    "repo star": Registration("repo.social:star", "Give a repository a star"),
    "repo unstar": Registration("repo.social:unstar", "Remove your star"),
    "repo watch": Registration(
        "repo.social:watch", "Hear in your inbox what happens on issues and proposals"
    ),
    "repo unwatch": Registration("repo.social:unwatch", "Stop watching a repository"),
    "repo audit": Registration("repo.audit:audit", "List what happened in a repository, newest first"),
    "repo edit": Registration("repo.settings:edit", "Change description or default branch"),
    "repo rename": Registration(
        "repo.settings:rename", "Rename a repository; its old name leads to it for 90 days"
    ),
    "repo visibility": Registration("repo.settings:visibility", "Make a repository public or private"),
    "repo archive": Registration("repo.settings:archive", "Refuse every write until it is unarchived"),
    "repo unarchive": Registration("repo.settings:unarchive", "Accept writes again"),
    "repo delete": Registration(
        "repo.settings:delete", "Delete a repository; it can be restored for 30 days"
    ),
    "repo restore": Registration("repo.settings:restore", "Bring a deleted repository back"),
    "repo protect list": Registration("repo.protect:list_rules", "List protection rules"),
    "repo protect set": Registration(
        "repo.protect:set_rule", "Create or replace the protection rule of a branch pattern"
    ),
    "repo protect clear": Registration(
        "repo.protect:clear", "Remove the protection rule of a branch pattern"
    ),
    "repo branch": Registration("repo.branch:branch", "List branches, or create one"),
    "repo branch-delete": Registration(
        "repo.branch:branch_delete", "Delete a branch; its seals stay reachable by id"
    ),
    "repo tag create": Registration("repo.tag:create", "Create a tag"),
    "repo tag list": Registration("repo.tag:list_tags", "List tags"),
    "repo tag delete": Registration("repo.tag:delete", "Delete a tag"),
    "repo device status": Registration(
        "repo.device:status", "Show this machine's device key and whether it is registered"
    ),
    "repo executable": Registration(
        "repo.executable:executable", "Show which files are executable here, and list them in .svc.yaml"
    ),
    "repo git-ignored": Registration(
        "repo.git_ignored:git_ignored", "Show new files that git ignores for you alone, and leave them out"
    ),
    "repo api": Registration("repo.api:api", "Call any route of the server"),
}
