"""Commands on cloud compute and its bill."""

from svc.cmd.frame.registration import Registration

GROUPS = {"cloud": "Machines with a GPU at compute providers (preview)"}

COMMANDS: dict[str, Registration] = {
    "cloud launch": Registration("cloud.cloud:launch", "Launch a machine for an app"),
    "cloud list": Registration("cloud.cloud:list_instances", "List your machines"),
    "cloud view": Registration("cloud.cloud:view", "Show one of your machines"),
    "cloud stop": Registration("cloud.cloud:stop", "Stop a machine and its bill"),
    "billing": Registration("cloud.billing:billing", "Show your subscription of the server"),
}
