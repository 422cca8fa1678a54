"""Campaigns that read svc with git: random and real histories, kills, versions of git (docs/design/019)."""
