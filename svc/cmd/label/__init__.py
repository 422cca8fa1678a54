"""Commands on labels."""

from svc.cmd.frame.registration import Registration

GROUPS = {"label": "Labels of a repository, for its issues and proposals"}

COMMANDS: dict[str, Registration] = {
    "label create": Registration("label.label:create", "Create a label"),
    "label edit": Registration("label.label:edit", "Change a label everywhere"),
    "label delete": Registration("label.label:delete", "Delete a label and remove it from everything"),
    "label clone": Registration("label.label:clone", "Copy the labels of another repository"),
    "label list": Registration("label.label:list_labels", "List labels"),
}
