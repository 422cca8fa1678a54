"""Commands on documents."""

from svc.cmd.frame.registration import Registration

GROUPS = {"doc": "Documents of your account or of this device, which several may edit at once"}

COMMANDS: dict[str, Registration] = {
    "doc create": Registration("doc.doc:create", "Create a document"),
    "doc list": Registration("doc.doc:list_documents", "List your documents"),
    "doc view": Registration("doc.doc:view", "Show a document"),
    "doc edit": Registration("doc.edit:edit", "Edit a document; what others change meanwhile stays"),
    "doc history": Registration("doc.doc:history", "List the changes of a document"),
    "doc archive": Registration("doc.doc:archive", "Archive a document, so that it takes no changes"),
    "doc unarchive": Registration("doc.doc:unarchive", "Let an archived document take changes again"),
    "doc delete": Registration("doc.doc:delete", "Delete a document with its history"),
}
