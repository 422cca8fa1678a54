"""Commands on organisations."""

from svc.cmd.frame.registration import Registration

GROUPS = {
    "org": "Organisations: owners that several people act for",
    "org member": "Who is a member of an organisation",
    "org invite": "Invitations to organisations",
}

COMMANDS: dict[str, Registration] = {
    "org create": Registration("org.org:create", "Create an organisation"),
    "org list": Registration("org.org:list_organisations", "List the organisations you are a member of"),
    "org view": Registration("org.org:view", "Show an organisation"),
    "org edit": Registration("org.org:edit", "Change what all members of an organisation may do"),
    "org rename": Registration("org.org:rename", "Change an organisation's handle"),
    "org delete": Registration("org.org:delete", "Delete an organisation that owns nothing"),
    "org leave": Registration("org.member:leave", "Leave an organisation"),
    "org member list": Registration("org.member:list_members", "List members, and who is invited"),
    "org member add": Registration("org.member:add", "Invite somebody to an organisation"),
    "org member role": Registration("org.member:role", "Make a member an admin, or an admin a member"),
    "org member remove": Registration("org.member:remove", "Remove a member, or take an invitation back"),
    "org invite list": Registration("org.invite:list_invites", "List your invitations to organisations"),
    "org invite accept": Registration("org.invite:accept", "Accept an invitation to an organisation"),
    "org invite decline": Registration("org.invite:decline", "Decline an invitation to an organisation"),
}
