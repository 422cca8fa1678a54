"""Commands on labels."""

from svc.cmd.frame.registration import Registration

GROUPS = {"label": "Labels of a repository, for its issues and proposals"}

COMMANDS: dict[str, Registration] = {
    "label create": Registration("label.label:create", "Create a label"),
    "label list": Registration("label.label:list_labels", "List labels"),
}
