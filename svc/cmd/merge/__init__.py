"""The command that merges another branch into the folder."""

from svc.cmd.frame.registration import Registration

GROUPS: dict[str, str] = {}

COMMANDS: dict[str, Registration] = {
    "merge": Registration("merge.merge:merge", "Bring another branch into this folder, to be pushed"),
}
