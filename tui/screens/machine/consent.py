"""Asks the user before an app is launched for the first time, and again after its `launch` instructions have
changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.app import ComposeResult

from tui.screens.card import Card
from tui.screens.machine.work import Offer
from tui.text import Part, fold, safe
from tui.widgets.lines import Item
from tui.widgets.sheet import Sheet

NAME = 10  # columns of the name of a fact
BLANK = Item(None, (("", "text"),))
BLOCK: Part = ("▎ ", "accent")  # before each line of the command
LAUNCH = (("y", "launches"), ("n", "does not"), ("esc", "leave"))
MORE = (("y", "shows more"), ("n", "does not launch"), ("esc", "leave"))


class Consent(Card):
    """A card that shows which program an app would run. Once the user has scrolled to its end, the key y
    allows the program and calls `launch`. Before that, y only shows more, so that the user cannot allow
    something that was not shown."""

    SHARE = 80

    def __init__(self, offer: Offer, launch: Callable[[], None]) -> None:
        super().__init__()
        self._offer, self._launch = offer, launch

    def content(self) -> ComposeResult:
        yield Sheet(marked=False, id="consent")

    def title_parts(self) -> Sequence[Part]:
        return ((f" launch {safe(self._offer.app.id)}", "title"),)

    def on_mount(self) -> None:
        super().on_mount()
        self.paint()
        self.open_prompt(self._ask)

    def on_resize(self) -> None:
        self.paint()

    def paint(self) -> None:
        """Show the folder, the command and its environment variables. Long lines are wrapped, and nothing is
        cut off."""
        offer = self._offer
        width = max(20, min(self.WIDTH, self.app.size.width - 4) - 4)
        rows = [
            Item(None, (("It can do what you can. Launch it only if you trust its folder.", "warn"),)),
            BLANK,
            *self._fact_rows("folder", offer.app.folder, width),
            BLANK,
            Item(None, (("It would run", "dim"),)),
            *[Item(None, (BLOCK, *row)) for row in fold(((safe(offer.command), "strong"),), width - 2)],
        ]
        if offer.launch.env:
            rows += [BLANK, Item(None, (("with", "dim"),))]
        for name, value in offer.launch.env:
            words = ((safe(name), "name"), ("=", "dim"), (safe(value), "text"))
            rows += [Item(None, (BLOCK, *row)) for row in fold(words, width - 2)]
        self.query_one("#consent", Sheet).show(rows)
        self.fit(len(rows) + 1)

    def _fact_rows(self, name: str, value: str, width: int) -> list[Item]:
        """Returns rows with the name of a fact and its value, wrapped."""
        first, *rest = fold(((safe(value), "text"),), width - NAME)
        blank = " " * NAME
        return [
            Item(None, ((f"{name:<{NAME}}", "dim"), *first)),
            *(Item(None, ((blank, "text"), *row)) for row in rest),
        ]

    def _ask(self) -> None:
        sheet = self.query_one("#consent", Sheet)
        hidden = sheet.hidden_below
        more = f" {hidden} more rows" if hidden else ""
        sign = f"launch {self._offer.app.id}?{more}"
        self.ask(sign, self._answer, filtered=sheet, answers=MORE if hidden else LAUNCH)

    def _answer(self, typed: str) -> None:
        sheet = self.query_one("#consent", Sheet)
        if typed.strip().lower() == "y" and sheet.hidden_below:
            sheet.scroll_rows(max(1, sheet.fits))
            self._ask()
            return
        below = self.below
        self.app.pop_screen()
        if typed.strip().lower() == "y":
            self._launch()
        else:
            below.say("nothing was launched", "dim")

    def do_back(self) -> None:
        self._answer("")

    def prompt_left(self) -> None:
        self._answer("")
