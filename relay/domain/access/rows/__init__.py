"""SQL statements on access: collaborators, invitations, transfers, organisations and their members."""
