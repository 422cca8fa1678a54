"""Commands on the outbox: actions that wait for a server."""

from svc.cmd.frame.registration import Registration

GROUPS = {"queue": "Actions that wait for a server"}

COMMANDS: dict[str, Registration] = {
    "queue list": Registration("queue.queue:list_queue", "List the actions that wait or were refused"),
    "queue retry": Registration("queue.queue:retry", "Send what waits now, and refused actions again"),
    "queue drop": Registration("queue.queue:drop", "Drop actions without sending them"),
}
