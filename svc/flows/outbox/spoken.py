"""Says in plain words what a queued action does, and what is so once it was carried out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localstore.core.words import count

VERDICTS = {"approve": "approve", "request_changes": "request changes of", "comment": "send a review of"}
VERDICTS_GIVEN = {"approve": "approved", "request_changes": "requested changes of", "comment": "commented on"}
# What a switch of a request's body has made so.
SWITCHED = {
    ("archived", True): "the repository is archived and takes no writes",
    ("archived", False): "the repository takes writes again",
    ("active", True): "switched on",
    ("active", False): "switched off",
    ("draft", True): "a draft now",
    ("draft", False): "ready for review now",
}
# What changing a member does, by the member, or by the member and its new value.
CHANGES: dict[str | tuple[str, Any], str] = {
    "title": "change the title of {it}",
    "body": "change the text of {it}",
    "base": "change the base of {it} to {value}",
    ("state", "closed"): "close {it}",
    ("state", "open"): "reopen {it}",
    ("draft", True): "make {it} a draft",
    ("draft", False): "mark {it} as ready for review",
    "add_labels": "add {labels} to {it}",
    "remove_labels": "remove {labels} from {it}",
    "add_assignees": "assign {it} to {people}",
    "remove_assignees": "unassign {people} from {it}",
    "add_reviewers": "ask {people} to review {it}",
    "remove_reviewers": "no longer ask {people} to review {it}",
    "name": "rename {it} to {value}",
    "description": "change the description of {it}",
    "default_branch": "make {value} the default branch of {it}",
    "visibility": "make {it} {value}",
    ("archived", True): "archive {it}",
    ("archived", False): "take {it} out of the archive",
    "kind": "change the kind of {it} to {value}",
    ("active", True): "switch {it} on",
    ("active", False): "switch {it} off",
    "events": "change the events of {it}",
}


def say_changes(members: Mapping[str, Any], of: str) -> str:
    """Return what a change of `of` does, such as `close #9 and add the label bug to it`. `members`: the
    members of its request. Returns "" if they change nothing that has words."""
    clauses: list[str] = []
    for name, value in members.items():
        words = CHANGES.get((name, value)) if isinstance(value, str | bool) else None
        words = words or CHANGES.get(name)
        if words is None or value in (None, []):
            continue
        names = value if isinstance(value, list) else [value]
        spoken = words.format(
            it="it" if clauses else of,
            value=value,
            labels=f"the label{'' if len(names) == 1 else 's'} {', '.join(map(str, names))}",
            people=", ".join(f"@{str(handle).lstrip('@')}" for handle in names),
        )
        if name == "state" and members.get("state_reason") == "not_planned":
            spoken += " as not planned"
        clauses.append(spoken)
    return " and ".join([", ".join(clauses[:-1]), clauses[-1]]) if len(clauses) > 1 else "".join(clauses)


def spoken_members(members: Mapping[str, Any]) -> dict[str, str]:
    """Return the words that stand for members of a request in the description of its action."""
    words: dict[str, str] = {}
    if "verdict" in members:
        words["verdict"] = VERDICTS.get(str(members["verdict"]), "review")
    if "ids" in members:
        words["rows"] = count(len(members["ids"]), "row") if members["ids"] else "all rows"
    return words


def say_effect(member: str, value: Any) -> str:
    """Describe in a few words what one member of a request's body has made so, such as `public now`. Returns
    "" if the member changes nothing."""
    if value in (None, []) or member == "state_reason":
        return ""
    name = member.replace("_", " ")
    if isinstance(value, bool):
        return SWITCHED.get((member, value), f"{name} is {'on' if value else 'off'}")
    if isinstance(value, list):
        verb, _, what = name.partition(" ")
        done = {"add": "added", "remove": "removed"}.get(verb)
        return f"{done} {what} {', '.join(value)}" if done else f"{name} {', '.join(value)}"
    if member == "visibility":
        return f"the repository is {value} now"
    if member == "state":
        return f"{value} now"
    return f"{name} changed" if member in ("title", "body", "description") else f"{name} is {value} now"
