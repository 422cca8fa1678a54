"""Texts for what happened to an issue or a proposal beside its comments, for the command and the app."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple

from localstore.core.model.issue import Comment, Issue
from localstore.core.model.proposal import Proposal, TimelineItem
from localstore.core.model.thread import Thread
from localstore.core.words import SIGNS

Tone = Literal["good", "bad", "warn", "agent", "dim"]
SEAL = 8  # characters of the id of a seal
_DROPPED: Final[Mapping[str, str]] = {
    "base_moved": "its base has moved on",
    "head_moved": "its branch has moved on",
    "retargeted": "it has another base",
    "prepare_expired": "its time was over",
    "unauthorized": "its key was revoked",
    "merge_conflict": "it conflicts with its base",
}
_CLOSED: Final[Mapping[str, str]] = {
    "head_deleted": "its branch was deleted",
    "base_deleted": "its base was deleted",
}
_SORTING: Final[Mapping[str, str]] = {
    f"{noun}.{verb}": words
    for noun in ("issue", "proposal")
    for verb, words in (
        ("assign", "assigned {people}"),
        ("unassign", "unassigned {people}"),
        ("label", "added the {labels}"),
        ("unlabel", "removed the {labels}"),
    )
}
"""The kinds of events that name a person or a label. Those that are alike become one line."""
_MARKS: Final[Mapping[str, tuple[str, Tone]]] = {
    "proposal.merge": (SIGNS["merged"], "agent"),
    "proposal.close": (SIGNS["closed"], "bad"),
    "proposal.reopen": (SIGNS["open"], "good"),
    "proposal.push": ("↑", "dim"),
    "proposal.retarget": ("→", "dim"),
    "proposal.ready": (SIGNS["open"], "good"),
    "proposal.draft": (SIGNS["draft"], "dim"),
    "proposal.auto_merge": ("◷", "warn"),
    "proposal.auto_off": ("◷", "dim"),
    "proposal.auto_drop": ("◷", "bad"),
    "review.request": ("◇", "warn"),
    "review.unrequest": ("◇", "dim"),
    "review.dismiss": ("–", "dim"),
    "thread.create": ("◇", "dim"),
    "thread.comment": ("◇", "dim"),
    "thread.resolve": (SIGNS["pass"], "good"),
    "thread.reopen": ("◇", "warn"),
    "thread.apply": (SIGNS["pass"], "good"),
    **{kind: ("→" if kind.endswith("assign") else "●", "dim") for kind in _SORTING},
    "issue.close": ("✓", "dim"),
    "issue.reopen": (SIGNS["open"], "good"),
}


_SAID: Final[Mapping[str, str]] = {
    "proposal.merge": "merged it as {seal}{way}",
    "proposal.close": "closed it{closed}",
    "proposal.reopen": "opened it again",
    "proposal.push": "pushed {head}, version {version}",
    "proposal.retarget": "changed its base to {base}",
    "proposal.ready": "said that it is ready",
    "proposal.draft": "made it a draft",
    "proposal.auto_merge": "signed its merge in advance{way}",
    "proposal.auto_off": "took the signed merge back",
    "proposal.auto_drop": "the signed merge was dropped: {dropped}",
    "review.request": "asked {person} for a review",
    "review.unrequest": "no longer asks {person} for a review",
    "review.dismiss": "dismissed a review",
    "thread.create": "commented{line}",
    "thread.comment": "answered{line}",
    "thread.resolve": "resolved a thread{where}",
    "thread.reopen": "opened a thread again{where}",
    "thread.apply": "applied a suggestion{where}",
    **_SORTING,
    "issue.close": "closed it{merging}",
    "issue.reopen": "opened it again",
}


TOGETHER = timedelta(minutes=1)  # the time in which events that are alike become one line


class Happened(NamedTuple):
    """Something that happened to an issue or a proposal. `who`: the handle of who did it, "" if nobody did.
    `words`: what they did, such as `merged it as dcc544ea by squash`. `thread`: the thread on lines that it
    is about, None if it is about none. `comment`: the comment in this thread that was written, None if none
    was, or if it is deleted."""

    id: int
    at: str
    who: str
    sign: str
    tone: Tone
    words: str
    thread: Thread | None = None
    comment: Comment | None = None

    @property
    def path(self) -> str:
        """The file that it is about, "" if it is about none."""
        return (self.thread.place or self.thread).path if self.thread is not None else ""


def list_happened(
    timeline: Sequence[TimelineItem],
    subject: Issue | Proposal | None = None,
    threads: Sequence[Thread] = (),
) -> list[Happened]:
    """Return what happened, oldest first. Comments and reviews are left out, because they have texts of their
    own. `subject`: the issue or proposal that it happened to. `threads`: its threads on lines, as far as they
    are known."""
    people = _name_people(timeline, subject)
    at_lines = {thread.id: thread for thread in threads}
    happened: list[Happened] = []
    for group in _merge_alike(timeline):
        item = group[0]
        thread = at_lines.get(str(item.data.get("thread", "")))
        words = _say(group, people, thread)
        if words:
            who = (item.actor.handle or item.actor.id) if item.actor is not None else ""
            comment = _find_comment(item, thread) if thread is not None else None
            happened.append(Happened(item.id, item.at, who, *_MARKS[item.kind], words, thread, comment))
    return happened


def _merge_alike(timeline: Sequence[TimelineItem]) -> list[list[TimelineItem]]:
    """Put events into one group that somebody caused right after one another, and that differ only in the
    label or the person that they name."""
    groups: list[list[TimelineItem]] = []
    for item in timeline:
        first = groups[-1][0] if groups else None
        is_alike = (
            first is not None
            and item.kind in _SORTING
            and (first.kind, first.actor) == (item.kind, item.actor)
            and datetime.fromisoformat(item.at) <= datetime.fromisoformat(first.at) + TOGETHER
        )
        if is_alike:
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def _find_comment(item: TimelineItem, thread: Thread) -> Comment | None:
    """Return the comment that was written in a thread. The first comment of a thread comes with it."""
    if item.kind == "thread.create":
        return thread.comments[0] if thread.comments else None
    if item.kind != "thread.comment":
        return None
    return next((comment for comment in thread.comments if comment.id == item.data.get("id")), None)


def _name_people(timeline: Sequence[TimelineItem], subject: Issue | Proposal | None) -> dict[str, str]:
    """Return the handles of those who did something and of the people of the issue or proposal, by the ids of
    their accounts."""
    people = [item.actor for item in timeline if item.actor is not None]
    if subject is not None:
        people += [subject.author, *subject.assignees]
    if isinstance(subject, Proposal):
        people += [reviewer.who for reviewer in subject.reviewers]
    return {person.id: person.handle for person in people if person.handle}


def _say(group: Sequence[TimelineItem], people: Mapping[str, str], thread: Thread | None) -> str:
    """Return what happened in words, "" for what is not listed. `group`: events that are told in one line."""
    item = group[0]
    template = _SAID.get(item.kind)
    if template is None:
        return ""
    data = item.data
    handles = [_name_person(event, people) for event in group]
    names = [str(event.data.get("name", "?")) for event in group]
    where = f" on {name_place(thread)}" if thread is not None else ""
    way, reason = str(data.get("strategy", "")).replace("_", "-"), str(data.get("reason", ""))
    return template.format(
        seal=str(data.get("seal", ""))[:SEAL],
        head=str(data.get("head", ""))[:SEAL],
        version=data.get("version", "?"),
        base=data.get("base", "?"),
        way=f" by {way}" if way else "",
        person=handles[0],
        people=", ".join(dict.fromkeys(handles)),
        labels=f"label{'s' if len(names) > 1 else ''} {', '.join(names)}",
        where=where,
        line=where or " on a line",
        closed=f": {_CLOSED[reason]}" if reason in _CLOSED else "",
        dropped=_DROPPED.get(reason, reason.replace("_", " ")),
        merging=f" by merging #{data['proposal']}" if "proposal" in data else "",
    )


def name_place(thread: Thread) -> str:
    """Return the lines that a thread is about, such as `src/main.py:3-7`: where they are in the newest
    version or, if it does not have them, where they were."""
    at = thread.place or thread
    return f"{at.path}:{at.start}" + (f"-{at.end}" if at.end != at.start else "")


def _name_person(item: TimelineItem, people: Mapping[str, str]) -> str:
    """Return the account that an event is about, such as `@ann`. A relay that does not send the account sends
    its id, which may be among `people`."""
    handle = item.person.handle if item.person is not None else None
    handle = handle or people.get(str(item.data.get("account_id", "")))
    return f"@{handle}" if handle else "somebody"
