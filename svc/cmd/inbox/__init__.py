"""The command of the inbox."""

from svc.cmd.frame.registration import Registration

GROUPS: dict[str, str] = {}

COMMANDS: dict[str, Registration] = {
    "inbox": Registration("inbox.inbox:inbox", "List what concerns you, and mark it as done"),
}
