"""Starts editing the text that is open in the tab Code. If that is impossible, shows why and what to do about
it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from localstore.agent.talk import Folder
from localstore.core.model.history import Blob
from localstore.core.model.limits import SHEET_TEXT
from localstore.core.model.protection import Protection, matching, refusal
from tui import contents
from tui.actions import Action
from tui.screens.base import READING_SECONDS
from tui.screens.code.file_view import FileView
from tui.text import safe
from tui.widgets.lines import Lines

EDIT = Action("edit", ("e",), "edit live", "", "signed_in", True, "live.updates")


class BeginEdit(FileView):
    _blob: Blob | None

    def do_edit(self) -> None:
        """Edit the open text live. Others can edit it at the same time."""
        self.take_previewed()
        why = self._why_not()
        if why:
            self.of.say(why, "warn")
            return
        read = contents.protections(self.of.repo.id)
        has_rules = self.svc.client.read_cached(read) is not None

        def edit_offline(error: BaseException) -> None:
            if not has_rules:
                self._edit_unless_refused(())

        self.of.hold_keys(READING_SECONDS)
        self.svc.load(read, lambda rules, at: self._edit_unless_refused(rules), edit_offline)

    def _edit_unless_refused(self, rules: Sequence[Protection]) -> None:
        """Edit the open text, or say that these protection rules allow no edits of the branch. Does nothing
        if the text is edited already."""
        if not (self.is_attached and self.of.in_front):
            return
        branch = self.of.ref_name
        rules = matching(rules, branch)
        if refusal(branch, rules, "write") is None:
            self._find_folder()
            return
        self.of.drop_keys()
        rule = safe(rules[0].pattern)
        self.of.say(
            f"{safe(branch)} takes edits by proposals only (rule {rule}); :repo branch NAME makes a branch",
            "warn",
        )

    def _find_folder(self) -> None:
        """Find the folder of this machine in which the text is edited, and edit it there."""
        place, repo, machine = self.svc.place.read_again(), self.of.repo, self.svc.machine
        if place.folder is not None and place.repo_id == repo.id:
            self._edit_in(place.folder, place.branch)
            return
        if machine is None:
            return
        origin = self.svc.client.origin

        def work() -> None:
            status = machine.status()
            watched = status.folders if status is not None else []
            folders = [
                folder for folder in watched if (folder.repo, folder.server) == (repo.full_name, origin)
            ]
            self.svc.later(lambda: self._choose_folder(folders))

        self.of.hold_keys(READING_SECONDS)
        self.app.run_worker(work, thread=True, group="edit", exclusive=True, exit_on_error=False)

    def _why_not(self) -> str:
        blob, path, ref = self._blob, self.path, self.of.ref_name
        at = next((known_ref for known_ref in self.of.refs if known_ref.name == ref), None)
        size = blob.size if blob is not None and blob.path == path else 0
        if path is None or self._mode != "file" or self.replaying:
            return "open a file first: enter"
        if blob is not None and blob.path == path and blob.encoding != "utf-8":
            return "this is not a text: :pull brings it, any program changes it"
        if size > SHEET_TEXT:
            return f"more than {SHEET_TEXT >> 20} MiB: change it with your editor, in the folder"
        if at is not None and at.type != "branch":
            return f"{ref} is a tag, and edits are of a branch: b"
        if at is not None and at.head != self.of.seal:
            return "this is an old seal, and edits are of the branch: b"
        if self.svc.machine is None:
            return "the app has no folders here: start it on your machine"
        return ""

    def _choose_folder(self, folders: list[Folder]) -> None:
        if not (self.is_attached and self.of.in_front):
            return
        self.of.drop_keys()
        ref = self.of.ref_name
        folders = sorted(folders, key=lambda folder: folder.folder)  # the same one at each edit
        best = next((folder for folder in folders if folder.branch == ref), folders[0] if folders else None)
        if best is None:
            name = self.of.repo.full_name
            self.of.say(
                f"no folder of it is watched here; :repo clone {name}, or :watch --detach in its folder",
                "warn",
            )
        else:
            self._edit_in(Path(best.folder), best.branch)

    def _edit_in(self, folder: Path, branch: str) -> None:
        machine, ref = self.svc.machine, self.of.ref_name
        if machine is None or self.path is None:
            return
        if branch != ref:
            self.of.say(f":switch {ref} first: on {branch} is {folder}", "warn")
            return
        from tui.screens.code.edit import Edit

        line = self.query_one("#file", Lines).key
        at = line if isinstance(line, int) else 1
        blob = self._blob if self._blob is not None and self._blob.path == self.path else None
        sealed = blob.content if blob is not None and not self.live else None
        self.app.push_screen(Edit(machine, folder, branch, self.path, at, self.of.repo.full_name, sealed))
