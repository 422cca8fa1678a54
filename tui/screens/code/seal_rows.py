"""Rows about a seal: its message, author and signature, and the branches and tags whose head it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from localstore.core.model.history import Compare, SealSummary
from localstore.core.model.ref import Ref
from localstore.core.words import count, first_line
from tui.text import Part, ago, fold, safe, wrap

Row = tuple[Part, ...]
Names = Mapping[str, Row]  # seal → the branches and tags at it


def names_of(refs: Sequence[Ref]) -> dict[str, Row]:
    """Returns the names of branches and tags as parts, by the id of the seal at their head."""
    names: dict[str, Row] = {}
    for ref in sorted(refs, key=lambda ref: (not ref.default, ref.type != "tag", ref.name)):
        if ref.head is not None:
            name: Part = (f"({safe(ref.name)}) ", "warn" if ref.type == "tag" else "good")
            names[ref.head] = (*names.get(ref.head, ()), name)
    return names


def subject_of(seal: SealSummary) -> Part:
    """Returns the first line of a seal's message, as a part."""
    first = safe(first_line(seal.message))
    return (first, "text") if first else ("no message", "dim")


def signature(fault: str | None) -> Row:
    """Returns parts that say whether the signature of a seal is valid. `fault`: the reason why it is invalid,
    "" if it is valid, None if it was not checked yet."""
    if fault is None:
        return (("signature not checked yet  ", "dim"),)
    return (("✗ signature does not verify  ", "bad"),) if fault else (("✓ signed  ", "good"),)


def counts(compare: Compare) -> Row:
    """Returns parts that say how many files and lines a seal changed."""
    added, gone = sum(file.additions for file in compare.files), sum(file.deletions for file in compare.files)
    return (
        (f"{count(len(compare.files), 'file')}  ", "dim"),
        (f"+{added} " if added else "", "good"),
        (f"−{gone}" if gone else "", "bad"),
    )


def seal_rows(
    seal: SealSummary,
    now: float,
    names: Names,
    width: int,
    most: int,
    fault: str | None,
    changed: Row,
) -> list[Row]:
    """Returns the rows about a seal, at most `width` columns wide. `names`: the names of branches and tags,
    by the id of the seal at their head. `most`: how many rows of the message to show below its first line.
    `fault`: why the signature is invalid, "" if it is valid, None while it is not checked. `changed`: parts
    that say how many files and lines it changed, () while that is unknown."""
    body = seal.message.strip().partition("\n")[2].strip("\n")
    text: list[Row] = [((line, "text"),) for line in wrap(body, width)] if body else []
    if len(text) > most:
        text = [*text[: max(0, most - 1)], (("…", "dim"),)]
    who = (f"@{safe(seal.provenance.who.handle or '?')} ", "person")
    age = (f"{ago(seal.created_at, now)}  ", "dim")
    merged = (("⑂ merge  ", "dim"),) if seal.merged else ()
    facts = (who, age, *signature(fault), *merged, *names.get(seal.id, ()), *changed)
    subject = [((text, "title" if role == "text" else role),) for text, role in (subject_of(seal),)]
    return [*(row for line in subject for row in fold(line, width)), *fold(facts, width), *text]
