"""What a protection rule requires, in words."""

from __future__ import annotations

from collections.abc import Sequence

from localstore.core.model.protection import ProtectionSet
from localstore.core.words import count

FLAGS = {
    "fresh_approvals": "fresh approvals",
    "require_resolution": "resolved threads",
    "require_checks": "required checks",
    "lock_writes": "locked",
}
"""The flags of a rule that change something, each with its name for the user. `lock_deletions` is not among
them, because a branch with a rule is never deleted."""
NAMED = 3  # checks that a sentence names; it counts the others
NONE_CHOSEN = "checks (none is chosen)"
NO_CHECK = "No check is required yet, so no merge waits for one."


def approvals_of(rule: ProtectionSet) -> int:
    """Returns how many approvals a rule requires. A rule that requires a review without a number requires
    one."""
    return rule.required_approvals or int(rule.require_review)


def demands(rule: ProtectionSet, required: Sequence[str] | None = None) -> list[str]:
    """Returns a few words for each thing that a protection rule requires. `required`: the names of the
    required checks. None: they are not known yet."""
    approvals = approvals_of(rule)
    words = [count(approvals, "approval")] if approvals else []
    labels = dict(FLAGS)
    if required is not None:
        labels["require_checks"] = _name_some("check", required) if required else NONE_CHOSEN
    return [*words, *(label for flag, label in labels.items() if getattr(rule, flag))]


def in_words(rule: ProtectionSet, required: Sequence[str] | None = None) -> str:
    """Returns as text what a protection rule requires. `required`: the names of the required checks. None:
    they are not known yet."""
    return ", ".join(demands(rule, required)) or "is not deleted"


def sentences(rule: ProtectionSet, required: Sequence[str] | None) -> list[str]:
    """Returns in whole sentences what a protection rule means for pushes, deletion and merges. `required`:
    the names of the required checks. None: they are not known yet."""
    approvals, needs = approvals_of(rule), list[str]()
    if rule.lock_writes:
        return ["Nobody pushes, edits it directly, merges into it or deletes it."]
    pushes = "" if approvals or rule.require_checks else "Whoever has the role write pushes to it. "
    means = [f"{pushes}Nobody deletes it." if pushes else "Nobody pushes, edits it directly or deletes it."]
    if approvals:
        fresh = " of the newest version" if rule.fresh_approvals else ""
        needs.append(f"{count(approvals, 'approval')}{fresh}")
    if rule.require_checks and required is None:
        needs.append("the required checks to pass")
    elif rule.require_checks and required:
        needs.append(f"the {_name_some('check', required)} to pass")
    if rule.require_resolution:
        needs.append("all threads resolved")
    *firsts, last = needs or ["nothing more"]
    means.append(f"A merge needs {', '.join(firsts)}{' and ' if firsts else ''}{last}.")
    if rule.require_checks and required is not None and not required:
        means.append(NO_CHECK)
    return means


def _name_some(noun: str, names: Sequence[str]) -> str:
    """Returns names after what they are names of, such as `checks lint, unit`. Only the first NAMED of them
    are named."""
    rest = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{noun if len(names) == 1 else f'{noun}s'} {', '.join(names[:NAMED])}{rest}"
