"""The command that makes a protection rule as it is."""

from __future__ import annotations

from localstore.core.model.protection import Protection

FLAGS = (
    "require_review",
    "require_checks",
    "lock_writes",
    "lock_deletions",
    "require_resolution",
    "fresh_approvals",
)


def words_of_rule(rule: Protection) -> list[str]:
    """Returns the words of the command that makes this rule, after `svc`."""
    flags = [f"--{flag.replace('_', '-')}" for flag in FLAGS if getattr(rule, flag)]
    approvals = ["--required-approvals", str(rule.required_approvals)] if rule.required_approvals else []
    return ["repo", "protect", "set", rule.pattern, *flags, *approvals]
