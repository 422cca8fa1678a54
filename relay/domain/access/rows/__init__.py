"""Statements on who may do what: collaborators, invitations, transfers, organisations and their members."""
