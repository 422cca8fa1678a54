"""A Textual app that sends the terminal only the cells that changed.

Textual alone sends whole widgets again, which is 5 to 20 KB for each key."""

from __future__ import annotations

from typing import Any

from rich.color import ColorSystem
from rich.console import RenderableType
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.app import App
from textual.driver import Driver
from textual.screen import Screen as TextualScreen

from tui.display.looks import Looks, Row
from tui.display.screen import Overlay, Screen, at

_SYSTEMS = {
    "standard": ColorSystem.STANDARD,
    "256": ColorSystem.EIGHT_BIT,
    "truecolor": ColorSystem.TRUECOLOR,
    "windows": ColorSystem.WINDOWS,
}
_SYNC_START, _SYNC_END = "\x1b[?2026h", "\x1b[?2026l"


class LeanApp(App[None]):
    """A Textual app that sends the terminal only the cells that changed."""

    _shown: Screen | None = None
    _looks: Looks | None = None
    _over: Overlay | None = None

    def over(self) -> Overlay | None:
        """Returns the picture that the terminal draws in pixels over the cells, None if there is none."""
        return None

    def get_driver_class(self) -> type[Driver]:
        kind = super().get_driver_class()
        if kind.__name__ != "LinuxDriver":  # a page, or another system
            return kind
        from tui.display.driver import TerminalDriver

        return TerminalDriver

    @property
    def ended_by(self) -> int:
        """Number of the signal that ended the app, 0 if none did."""
        return getattr(self._driver, "ended_by", 0)

    def forget_display(self) -> None:
        """Forget what the terminal shows, because it is not known any more. The next update paints
        everything."""
        self._shown = None

    def on_resize(self) -> None:
        """Paint everything again, even if the size is the same as before: while a terminal was smaller for a
        moment, it has lost cells."""
        self.forget_display()
        self.refresh(layout=True)

    def _display(self, screen: TextualScreen[Any], renderable: RenderableType | None) -> None:
        driver = self._driver
        if driver is None or self.is_headless or driver.is_inline:
            super()._display(screen, renderable)
            return
        if not isinstance(renderable, (LayoutUpdate, ChopsUpdate)):
            if renderable is not None:
                self.forget_display()
            super()._display(screen, renderable)
            return
        if self._batch_count or not self._running or self._closed:
            return
        text = self._update_cells(renderable)
        if text:
            x, y = self.screen.outer_size.clamp_offset(self.cursor_position)
            text += at(x, y)
            if self._sync_available:
                text = f"{_SYNC_START}{text}{_SYNC_END}"
            driver.write(text)
            driver.flush()
        self.post_display_hook()

    def _update_cells(self, update: CompositorUpdate) -> str:
        width, height = self.size
        cleared = ""
        if self._looks is None:
            self._looks = Looks(_SYSTEMS.get(self.console.color_system or "", ColorSystem.TRUECOLOR))
        over = self.over()
        if self._over is not None and self._over != over:
            cleared = self._over.erase
            if self._shown is not None:
                self._shown.forget(self._over)
            self._over = None
        if self._shown is None or (self._shown.width, self._shown.height) != (width, height):
            self._shown = Screen(width, height)
            cleared += self._shown.clear()
            self._over = None
        text = cleared + self._shown.update(read_cells(update, self._looks), scrolls=over is None)
        if over is not None and self._over is None:
            self._over = over
            text += f"{at(over.x, over.y)}{over.draw}"
        return text


def read_cells(update: CompositorUpdate, looks: Looks) -> dict[int, list[tuple[int, Row]]]:
    """Returns the cells that an update of Textual paints, by the number of the line. The cells of a line come
    in pieces, each as (first column, cells)."""
    runs: dict[int, list[tuple[int, Row]]] = {}
    if isinstance(update, LayoutUpdate):
        for y, strips in enumerate(update.strips, update.region.y):
            runs[y] = [(update.region.x, [cell for strip in strips for cell in looks.cells(strip)])]
    elif isinstance(update, ChopsUpdate):
        for y, begin, stop in update.spans:
            for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
                if strip is None or x >= stop or end <= begin:
                    continue
                cells = looks.cells(strip)
                first = max(0, begin - x)
                runs.setdefault(y, []).append((x + first, cells[first : min(end, stop) - x]))
    return runs
