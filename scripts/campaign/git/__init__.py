"""Campaigns that read svc with git: histories nobody here made, kills, versions of git (docs/design/019)."""
