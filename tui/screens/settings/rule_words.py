"""What a protection rule requires, in words."""

from __future__ import annotations

from localstore.core.model.protection import ProtectionSet
from localstore.core.words import count

FLAGS = {
    "fresh_approvals": "fresh approvals only",
    "require_resolution": "resolved threads",
    "require_checks": "required checks",
    "lock_writes": "locked",
}
"""The flags of a rule that change something, each with its name for the user. `lock_deletions` is not among
them, because a branch with a rule is never deleted."""


def approvals_of(rule: ProtectionSet) -> int:
    """Returns how many approvals a rule requires. A rule that requires a review without a number requires
    one."""
    return rule.required_approvals or int(rule.require_review)


def in_words(rule: ProtectionSet) -> str:
    """Returns as text what a protection rule requires."""
    approvals = approvals_of(rule)
    words = [count(approvals, "approval")] if approvals else []
    words += [label for flag, label in FLAGS.items() if getattr(rule, flag)]
    return ", ".join(words) or "is not deleted"
