"""Commands on who may use a repository."""

from svc.cmd.frame.registration import Registration

GROUPS = {
    "repo collaborator": "Who has a role in a repository",
    "repo invite": "Invitations to repositories",
    "repo access": "Requests for access",
}

COMMANDS: dict[str, Registration] = {
    "repo collaborator list": Registration(
        "access.collaborator:list_collaborators", "List who has a role, and who is invited"
    ),
    "repo collaborator add": Registration("access.collaborator:add", "Invite somebody to a role"),
    "repo collaborator role": Registration("access.collaborator:role", "Change somebody's role"),
    "repo collaborator remove": Registration(
        "access.collaborator:remove", "Take a role or an invitation away"
    ),
    "repo invite list": Registration("access.invite:list_invites", "List your open invitations"),
    "repo invite accept": Registration("access.invite:accept", "Accept an invitation"),
    "repo invite decline": Registration("access.invite:decline", "Decline an invitation"),
    "repo invite cancel": Registration("access.invite:cancel", "Take an invitation of yours back"),
    "repo access list": Registration("access.request:list_requests", "List who asks for access"),
    "repo access request": Registration("access.request:request", "Ask the owner of a repository for access"),
    "repo access grant": Registration("access.request:grant", "Give access to somebody who asked"),
    "repo access decline": Registration("access.request:decline", "Decline a request for access"),
    "repo transfer": Registration("access.transfer:transfer", "Offer a repository to another owner"),
    "repo transfer-list": Registration("access.transfer:list_transfers", "List your open transfers"),
    "repo transfer-accept": Registration("access.transfer:accept", "Accept a transfer: become the owner"),
    "repo transfer-decline": Registration("access.transfer:decline", "Decline a transfer"),
    "repo transfer-cancel": Registration("access.transfer:cancel", "Take a transfer back"),
}
