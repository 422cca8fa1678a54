"""A column of facts about the file that the tab Code shows, on a very wide screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from localstore.core.model.history import SealSummary
from svc.console.table import size
from tui import contents
from tui.screens.base import FACTS_BESIDE
from tui.screens.code.file_view import FileView
from tui.screens.code.seal_rows import subject_of
from tui.screens.facts import FRAME, Facts, fact_rows, frame, wrap_facts
from tui.text import Part, ago, brief, fit, safe
from tui.widgets.lines import Item, sequence

WIDTH = 46  # columns, with the frame
LISTED = 12  # seals of the history


class FileFacts(FileView):
    """Shows facts about the open file in the column `facts`: who changed it last, who has changed it before,
    and its history."""

    _of_file: tuple[str, str] = ("", "")  # seal and path of the file that the facts are about

    def place_facts(self) -> None:
        """Show the column of facts if the tab shows a file and there is room. If another file is open now,
        request the facts about it."""
        facts = self.query_one("#facts", Facts)
        wide = self.app.size.width >= FACTS_BESIDE and self._mode == "file" and not self.replaying
        facts.display = wide and self.of.seal is not None and not self.query_one("#people").display
        about = (self.of.seal or "", self.path or "")
        if not facts.display or about == self._of_file:
            return
        self._of_file = about
        facts.styles.width = WIDTH
        frame(facts, "facts", bright=False)
        facts.show(())
        if self.path is None:
            return
        seal, path = about
        ref = self.of.ref_name if seal == self.of.head else seal  # as the key for the history asks

        def paint(seals: list[SealSummary], at: float) -> None:
            if self._of_file == about and self.is_attached:
                rows = wrap_facts(self._fact_rows(seals), WIDTH - FRAME)
                self.query_one("#facts", Facts).show(sequence(rows))

        self.svc.load(contents.history(self.of.repo.id, ref, path), paint, lambda error: None)

    def _fact_rows(self, seals: Sequence[SealSummary]) -> list[Item]:
        if not seals:
            return fact_rows("last seal", [("none: it is not sealed yet", "dim")])
        now, newest, width = self.svc.clock(), seals[0], WIDTH - FRAME
        blob_size = self.size_of(self.path or "")
        makers = Counter(seal.provenance.who.handle or "?" for seal in seals)
        people: list[list[Part]] = [
            [(f"@{safe(handle)}", "person"), (f"  {count} seal{'' if count == 1 else 's'}", "dim")]
            for handle, count in makers.most_common(LISTED)
        ]
        history: list[list[Part]] = []
        for seal in seals[:LISTED]:
            age = f" {brief(seal.created_at, now):>4}"
            words = ((f"{seal.id[:8]} ", "accent"), subject_of(seal))
            cut = fit(words, width - len(age))
            blank = " " * (width - len(age) - sum(len(text) for text, _ in cut))
            history.append([*cut, (f"{blank}{age}", "dim")])
        if len(seals) > LISTED:
            history.append([(f"{len(seals) - LISTED} more: h", "dim")])
        return [
            *fact_rows(
                "last seal",
                [subject_of(newest)],
                [
                    (f"@{safe(newest.provenance.who.handle or '?')} ", "person"),
                    (f"{ago(newest.created_at, now)}  ", "dim"),
                    (newest.id[:8], "accent"),
                ],
            ),
            *fact_rows("size", [(size(blob_size), "text")] if blob_size is not None else []),
            *fact_rows("changed by", *people),
            *fact_rows(f"history · {len(seals)}", *history),
        ]

    def size_of(self, path: str) -> int | None:
        """The size of a sealed file in bytes, as the tree shows it. None if it is not known."""
        raise NotImplementedError
