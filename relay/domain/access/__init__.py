"""Who may use a repository: rules of invitations, roles, requests and transfers."""
