"""Pictures among the files of a repository."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from localstore.core.model.history import Blob
from tui.images.decode import DecodedImage
from tui.images.protocol import decoder_output, pixels
from tui.images.read import is_picture, picture, say_undrawn
from tui.screens.view import View
from tui.widgets.lines import Item, Lines
from tui.widgets.picture import Picture

if TYPE_CHECKING:
    from tui.screens.repo_page import RepoPage

FACTS = 2  # rows above a picture


class Pictured(View):
    """A tab that can show pictures. It has the widgets `file` (the text of a file) and `picture`.
    `shown_blob()`: returns the file on the screen."""

    def __init__(self, of: RepoPage) -> None:
        super().__init__(of)
        self._pictured: Blob | None = None

    def show_picture(self, blob: Blob | None) -> bool:
        """Show a file as a picture. Returns False if it is not an image. In that case no picture is shown."""
        image = blob if blob is not None and blob.encoding != "utf-8" and is_picture(blob.path) else None
        self._pictured = image
        drawing = self.query_one("#picture", Picture)
        drawing.display = image is not None
        self.query_one("#file", Lines).styles.height = FACTS if image is not None else "1fr"
        if image is None:
            drawing.tell("")
            return False
        drawing.tell("drawing …")
        self._facts(image, "")
        self.call_after_refresh(self.draw_picture)
        return True

    def on_picture_resized(self) -> None:
        self.draw_picture()

    def draw_picture(self) -> None:
        """Request the picture in the size that fits its pane, and draw it."""
        blob, seal = self._pictured, self.of.seal
        drawing = self.query_one("#picture", Picture)
        if blob is None or seal is None or not drawing.size.height:
            return
        way = self.svc.images
        if way == "blocks" and os.environ.get("NO_COLOR"):
            drawing.tell("not drawn without colours (NO_COLOR)")
            return
        width, height = pixels(way, drawing.size.width, drawing.size.height)

        def paint(image: DecodedImage, at: float) -> None:
            if blob is self._pictured:
                frames = f", the first of {image.frames} frames" if image.frames > 1 else ""
                self._facts(blob, f", {image.kind} {image.full_width}×{image.full_height}{frames}")
                drawing.show(image, way)

        def say_failure(error: BaseException) -> None:
            if blob is not self._pictured or drawing.image is not None:
                return
            why = say_undrawn(error)
            if why:
                self.of.say("")  # the pane says it
                self.show_picture(None)
                self.show_undrawn(blob, why)
            else:
                drawing.tell("it could not be read")

        self.svc.load(
            picture(self.of.repo.id, seal, blob.path, decoder_output(way), width, height), paint, say_failure
        )

    def show_undrawn(self, blob: Blob, why: str) -> None:
        """Show what is known of a picture that cannot be drawn, for the reason `why`."""
        raise NotImplementedError

    def _facts(self, blob: Blob, more: str) -> None:
        item = Item(1, ((f"{blob.size:,} bytes{more}", "dim"),))
        self.query_one("#file", Lines).show([item])
