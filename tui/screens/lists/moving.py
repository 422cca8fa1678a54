"""Downloads and uploads the files of a release. Shows progress and rate, and lets the user cancel.

What was cancelled or interrupted is resumed when it is started again. A download continues at the byte where
it stopped. An upload continues with the first file that the release lacks, and within a large file with the
missing chunks."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

from localstore.core.errors import Cancelled, ServerMisbehaved, SvcError
from localstore.core.model.release import Asset, Release
from localstore.core.model.repo import Repo
from svc.console.table import size
from svc.flows.assets import download, upload
from svc.flows.assets.local import local_files
from svc.flows.catalog import publication
from svc.http.bounds import Cancel, within
from tui.client import sentence
from tui.screens.base import Base
from tui.text import Part, safe

PAINT_EACH = 0.2  # seconds
BAR = 16  # cells


def complete_path(typed: str, base: Path) -> str:
    """Returns a line of paths with the last one completed, as far as only one way is possible. `base`: the
    folder in which the paths begin. Names with blanks or quotes are not completed."""
    before, blank, word = typed.rpartition(" ")
    folder, slash, begin = word.rpartition("/")
    try:
        entries = [*(base / Path(folder + slash).expanduser()).iterdir()]
    except (OSError, RuntimeError):
        return typed
    named = [entry for entry in entries if entry.name.startswith(begin)]
    named = [entry for entry in named if shlex.quote(entry.name) == entry.name]
    named = [entry for entry in named if begin or not entry.name.startswith(".")]
    columns = takewhile(
        lambda letters: len({*letters}) == 1, zip(*(entry.name for entry in named), strict=False)
    )
    common = "".join(letters[0] for letters in columns)
    end = "/" if len(named) == 1 and named[0].is_dir() else ""
    return f"{before}{blank}{folder}{slash}{common}{end}" if named else typed


class Move:
    """The download or upload of one file. `whole`: its size in bytes. `state`: "" while it is running, and at
    the end how it has ended."""

    def __init__(self, sign: str, whole: int, now: float) -> None:
        self.sign, self.whole, self.done, self.state = sign, whole, 0, ""
        self._first: tuple[int, float] | None = None
        self._began = self._at = now

    def record(self, done: int, now: float) -> None:
        """Record how far the download or upload is. `done`: how many bytes are done. `now`: the present time
        in seconds."""
        if self._first is None or done < self.done:
            self._first = (done, now)
        self.done, self._at = done, now

    @property
    def parts(self) -> tuple[Part, ...]:
        """The progress as parts of a line, such as `↓ [####....] 45 % 1.5 MiB of 3.3 MiB 1.2 MiB/s`."""
        if self.state:
            return (
                (f"  {self.sign} ", "dim"),
                (self.state, "good" if self.state.startswith("✓") else "warn"),
            )
        part = self.done / self.whole if self.whole else 1.0
        filled = min(BAR, int(part * BAR))
        words = [
            f"[{'#' * filled}{'.' * (BAR - filled)}] {int(part * 100):>3} %",
            f"{size(self.done)} of {size(self.whole)}",
        ]
        if self._first is not None and self._at > self._first[1]:
            words.append(f"{size((self.done - self._first[0]) / (self._at - self._first[1]))}/s")
        return ((f"  {self.sign} ", "accent"), ("  ".join(words), "text"), ("  esc cancels", "dim"))


class Moving(Base):
    """A screen about one release that can download the files of that release, and upload files to it."""

    repo: Repo
    release: Release

    def __init__(self) -> None:
        super().__init__()
        self.moved: dict[str, Move] = {}
        self.left_over = ""  # what was typed for an upload that did not end
        self._cancel: Cancel | None = None
        self._painted = 0.0

    def paint(self) -> None:
        raise NotImplementedError

    def parts_of(self, name: str) -> tuple[Part, ...]:
        """Returns parts for the place after the name of a file: the progress of its download or upload.
        Returns () if there is none."""
        move = self.moved.get(name)
        return move.parts if move is not None else ()

    def on_unmount(self) -> None:
        self.cancel()

    def cancel(self) -> bool:
        """Cancel the running download or upload. Returns False if there is none."""
        if self._cancel is None or self._cancel.ended:
            return False
        self._cancel.cancel()
        return True

    # --- down

    def download(self, asset: Asset) -> None:
        """Download a file of the release into the linked folder or, without one, into the current folder. If
        a part of it is there already, only the rest is downloaded."""
        folder = self.svc.place.folder or Path.cwd()
        api, release, repo_id = self.svc.client.api, self.release, self.repo.id
        move = Move("↓", asset.size, time.monotonic())

        def work(hears: Callable[[str, int], None]) -> str:
            if (fault := publication.fault_of(repo_id, release)) is not None:
                raise ServerMisbehaved(f"{fault}; nothing was downloaded")
            assets = [file for file in download.select_assets(release, []) if file.name == asset.name]

            def progress(phase: str, done: int, total: int | None, bytes: int = 0) -> None:
                if done != total:
                    hears(asset.name, bytes)

            for file in download.download(api, repo_id, release.version, assets, folder, False, progress):
                move.state = f"✓ in {file.path}" if file.downloaded else f"✓ {file.path} has it already"
            return move.state.removeprefix("✓ ")

        self._start({asset.name: move}, work, f"{asset.name}: enter goes on where it stopped")

    # --- up

    def do_upload(self) -> None:
        """Let the user type which files to upload. If the last upload did not finish, the prompt begins with
        its files."""
        self.ask("files to upload", self.upload, value=self.left_over, complete=self._complete)

    def _complete(self, typed: str) -> str:
        return complete_path(typed, self.svc.place.folder or Path.cwd())

    def upload(self, typed: str) -> None:
        """Upload files. `typed`: their paths as the user typed them, separated and quoted as in a command
        line."""
        base = self.svc.place.folder or Path.cwd()
        try:
            words = shlex.split(typed)
            paths = [str(base / Path(word).expanduser()) for word in words]
        except (ValueError, RuntimeError) as error:  # the latter: ~ of a user that is not there
            self.left_over = typed
            self.say(f"the paths cannot be read: {error}", "warn")
            self.do_upload()
            return
        if not paths:
            return
        self.left_over = typed
        absent = next((word for word, path in zip(words, paths, strict=True) if not Path(path).exists()), "")
        if absent:
            self.say(f"there is no {absent}; nothing was uploaded", "warn")
            self.do_upload()
            return
        api, release, repo_id = self.svc.client.api, self.release, self.repo.id
        moves: dict[str, Move] = {}

        def work(hears: Callable[[str, int], None]) -> str:
            files = local_files(paths)
            now = time.monotonic()
            moves.update((file.name, Move("↑", file.size, now)) for file in files)

            def progress(phase: str, done: int, total: int | None, bytes: int = 0) -> None:
                if done < len(files):
                    hears(files[done].name, bytes)

            sent = 0
            for sent_file in upload.upload(api, repo_id, release.version, files, False, progress):
                moves[sent_file.asset.name].state = (
                    "✓ uploaded" if sent_file.uploaded else "✓ was there already"
                )
                sent += sent_file.uploaded
            self.left_over = ""
            return f"{sent} of {len(files)} files uploaded" if sent < len(files) else "uploaded"

        self._start(moves, work, "u goes on with the files that are missing")

    # --- both

    def _start(
        self, moves: dict[str, Move], work: Callable[[Callable[[str, int], None]], str], again: str
    ) -> None:
        """Run the function `work` on a thread. It downloads or uploads files, and returns the message to show
        at the end. `work` is given a function that it calls with the name of a file and the number of bytes
        that are done. `moves`: the progress of each file, by its name. `again`: a message, shown after a
        cancel, that says how to resume."""
        if self._cancel is not None:
            self.say("one at a time: esc cancels what is on its way", "warn")
            return
        self._cancel = cancel = Cancel()
        self.moved = moves

        def hears(name: str, done: int) -> None:
            if cancel.ended:
                raise Cancelled("cancelled")
            now = time.monotonic()
            move = moves.get(name)
            if move is not None:
                move.record(done, now)
            if now - self._painted >= PAINT_EACH:
                self._painted = now
                self.svc.later(self._repaint)

        def run() -> None:
            error: SvcError | None = None
            outcome = ""
            try:
                with within(cancel):
                    outcome = work(hears)
            except SvcError as failed:
                error = failed
            except OSError as failed:
                error = SvcError(failed.strerror or str(failed))
            self.svc.later(lambda: self._end_transfers(moves, outcome, error, again))

        self.paint()
        self.svc.run_worker(run, thread=True, group="assets", exit_on_error=False)

    def _repaint(self) -> None:
        if self.is_attached:
            self.paint()

    def _end_transfers(
        self, moves: dict[str, Move], outcome: str, error: SvcError | None, again: str
    ) -> None:
        self._cancel = None
        for move in moves.values():
            if not move.state:
                move.state = f"stopped at {size(move.done)}"
        if not self.is_attached:
            return
        if isinstance(error, Cancelled):
            self.say(f"cancelled; {again}", "warn")
        elif error is not None:
            self.say(sentence(error), "bad")
        else:
            self.say(safe(outcome))
        self.paint()
        self.do_refresh()
