"""Commands on the rules that say who sees which paths of a repository."""

from svc.cmd.frame.registration import Registration

GROUPS = {"repo paths": "Paths that a repository's writers alone see"}

COMMANDS: dict[str, Registration] = {
    "repo paths list": Registration("path.path:list_paths", "List the rules for paths"),
    "repo paths set": Registration("path.path:set_path", "Say who sees a path and what is below it"),
    "repo paths remove": Registration("path.path:remove", "Remove the rule for a path"),
    "repo paths timeline": Registration("path.path:timeline", "Show how the rules for paths changed"),
}
