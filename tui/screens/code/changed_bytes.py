"""What a changed file is that has no lines: its size before and after and, if it is a picture, the formats,
the dimensions and the picture itself."""

from __future__ import annotations

import os
from functools import partial
from typing import Literal

from localstore.core.model.history import Blob, ChangedFile
from localstore.core.model.repo import Repo
from svc.console.table import size
from tui import contents
from tui.images.decode import DecodedImage
from tui.images.protocol import decoder_output, pixels
from tui.images.read import is_picture, picture, say_undrawn
from tui.screens.base import Base
from tui.text import safe
from tui.widgets.diff import Diff
from tui.widgets.picture import Picture

NOTE_HEIGHT = 6  # rows of the pane with the words above a picture
Side = Literal["old", "new"]


class ChangedBytes(Base):
    """A screen of changed files with the widgets `diff` and `picture`. `repo`: the repository."""

    repo: Repo
    _bytes: ChangedFile | None = None  # the file without lines that is shown
    _undrawn = ""  # why the picture cannot be drawn
    _sizes: dict[Side, int]
    _images: dict[Side, DecodedImage]

    @property
    def old_seal(self) -> str:
        """The id of the seal that contains the files before the changes, "" if it is unknown."""
        raise NotImplementedError

    @property
    def new_seal(self) -> str:
        raise NotImplementedError

    def show_bytes(self, file: ChangedFile | None) -> None:
        """Say what a changed file without lines was and is. A picture is drawn. `file`: None if the file on
        the screen has lines."""
        file = file if file is not None and file.binary else None
        if file == self._bytes:
            return
        self._bytes, self._sizes, self._images, self._undrawn = file, {}, {}, ""
        drawing = self.query_one("#picture", Picture)
        drawing.display = file is not None and self._is_drawn(file)
        drawing.tell("")
        self.query_one("#diff", Diff).styles.height = NOTE_HEIGHT if drawing.display else "1fr"
        if file is None:
            return
        for side in self._sides(file):
            seal, path = self._place_of(file, side)
            self.svc.load(contents.file(self.repo.id, seal, path), partial(self._take_size, file, side))
            if is_picture(path) and side != self._drawn_side(file):  # the other one is asked for when drawn
                read = picture(self.repo.id, seal, path, "blocks", 1, 1)
                self.svc.load(read, partial(self._take_image, file, side), lambda error: None)
        if drawing.display:
            self.call_after_refresh(self.draw_changed)

    def show_bytes_again(self) -> None:
        """Say again what the file on the screen was and is, because the old seal is known now."""
        file, self._bytes = self._bytes, None
        if file is not None:
            self.show_bytes(file)

    def _is_drawn(self, file: ChangedFile) -> bool:
        side = self._drawn_side(file)
        return side in self._sides(file) and is_picture(self._place_of(file, side)[1])

    def _drawn_side(self, file: ChangedFile) -> Side:
        return "old" if file.status == "removed" else "new"

    def _sides(self, file: ChangedFile) -> list[Side]:
        """Returns the sides on which there is a file that can be asked for."""
        sides: list[Side] = ["old"] if file.status != "added" and self.old_seal else []
        return [*sides, "new"] if file.status != "removed" else sides

    def _place_of(self, file: ChangedFile, side: Side) -> tuple[str, str]:
        """Returns the seal and the path of a file on one side."""
        return (self.old_seal, file.old_path or file.path) if side == "old" else (self.new_seal, file.path)

    def _take_size(self, file: ChangedFile, side: Side, blob: Blob, at: float) -> None:
        if file == self._bytes:
            self._sizes[side] = blob.size
            self._say_bytes()

    def _take_image(self, file: ChangedFile, side: Side, image: DecodedImage, at: float) -> None:
        if file == self._bytes:
            self._images[side] = image
            self._say_bytes()

    def on_picture_resized(self) -> None:
        self.draw_changed()

    def draw_changed(self) -> None:
        """Request the picture in the size that fits below the words, and draw it."""
        file = self._bytes
        if file is None or not self.query("#picture"):
            return
        drawing, way = self.query_one("#picture", Picture), self.svc.images
        if not drawing.display or not drawing.size.height:
            return
        colourless = way == "blocks" and bool(os.environ.get("NO_COLOR"))
        side = self._drawn_side(file)
        seal, path = self._place_of(file, side)
        width, height = pixels(way, drawing.size.width, drawing.size.height)

        def paint(image: DecodedImage, at: float) -> None:
            self._take_image(file, side, image, at)
            if file == self._bytes and not colourless:
                drawing.show(image, way)

        def say_failure(error: BaseException) -> None:
            if file == self._bytes and drawing.image is None:
                self._undrawn = say_undrawn(error)
                if self._undrawn:
                    self.say("")  # the pane says it
                    drawing.display = False
                    self.query_one("#diff", Diff).styles.height = "1fr"
                    self._say_bytes()
                else:
                    drawing.tell("it could not be read")

        if drawing.image is None:
            drawing.tell("not drawn without colours (NO_COLOR)" if colourless else "drawing …")
        read = picture(self.repo.id, seal, path, decoder_output(way), width, height)
        self.svc.load(read, paint, say_failure)

    def _say_bytes(self) -> None:
        """Write the format, the dimensions and the size before and after above the picture."""
        file, diff = self._bytes, self.query_one("#diff", Diff)
        if file is not None:
            sides = [self._words_of(side) for side in self._sides(file)]
            kind = "picture" if is_picture(file.path) else "binary file"
            undrawn = f"; it cannot be drawn: {self._undrawn}" if self._undrawn else ""
            diff.empty = safe(f"{kind}: {' → '.join(words for words in sides if words)}{undrawn}")
            diff.refresh()

    def _words_of(self, side: Side) -> str:
        image, count = self._images.get(side), self._sizes.get(side)
        words = [f"{image.kind} {image.full_width}×{image.full_height}"] if image is not None else []
        words += [size(count)] if count is not None else []
        return ", ".join(words)
