"""Starts editing the text that is open in the tab Code. If that is impossible, shows why and what to do about
it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from localstore.agent.talk import Folder
from localstore.core.model.history import Blob
from localstore.core.model.limits import SHEET_TEXT
from localstore.core.model.protection import Protection, matching, refusal
from tui import contents
from tui.actions import Action
from tui.machine import Machine
from tui.screens.base import READING_SECONDS
from tui.screens.code.file_view import FileView
from tui.screens.code.own_branch import ask_for_branch, offer_switch
from tui.text import safe
from tui.widgets.lines import Lines

if TYPE_CHECKING:
    from tui.screens.code.edit import Edit

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
        cached = self.svc.client.read_cached(read)
        begins = cached is None or not self._rules_against(cached[0])  # unless the server says no

        def take(rules: Sequence[Protection], at: float) -> None:
            against = self._rules_against(rules)
            if cached is not None and at == cached[1]:  # the server is being asked
                if begins:
                    self._find_folder()
                else:
                    self.of.say(
                        f"◐ asking whether {against[0].pattern} still protects {self.of.ref_name}", "dim"
                    )
            elif against:
                self._refuse(against, asks=True)
            elif cached is None or not begins:
                self._edit_if_in_front()

        def edit_offline(error: BaseException) -> None:
            if cached is None:
                self._edit_if_in_front()
            elif not begins:
                self._refuse(self._rules_against(cached[0]), asks=False)

        self.of.hold_keys(READING_SECONDS)
        self.svc.load(read, take, edit_offline)

    def _rules_against(self, rules: Sequence[Protection]) -> Sequence[Protection]:
        """Returns those of the protection rules that match the branch, if they allow no edits of it."""
        branch = self.of.ref_name
        rules = matching(rules, branch)
        return rules if refusal(branch, rules, "write") is not None else ()

    def _edit_if_in_front(self) -> None:
        if self.is_attached and self.of.in_front:
            self.of.say("")
            self._find_folder()

    def _refuse(self, rules: Sequence[Protection], asks: bool) -> None:
        """Say that these protection rules allow no edits of the branch. If the text is edited already and
        nothing was typed, leave it. `asks`: let the user name a branch for the edits."""
        from tui.screens.code.edit import Edit

        if not self.is_attached:
            return
        if (
            isinstance(self.app.screen, Edit)
            and self.app.screen.below is self.of
            and self.app.screen.is_untouched
        ):
            self.app.pop_screen()
        elif not self.of.in_front:
            return
        branch = self.of.ref_name
        self.of.drop_keys()
        why = f"{branch} takes edits by proposals only (rule {rules[0].pattern})"
        place = self.svc.place.read_again()
        if not asks or self.path is None:
            self.of.say(f"{why}; a branch of its own needs the server, which does not answer", "warn")
        elif (place.repo_id, place.branch) != (self.of.repo.id, branch):
            self.of.say(f"{why}; :repo branch NAME makes a branch", "warn")
        else:
            ask_for_branch(self.of, branch, self.path, why, self._edit_on_branch)

    def _edit_on_branch(self, name: str) -> None:
        """Edit the open text in the linked folder, which was switched to the branch `name`."""
        place = self.svc.place.read_again()
        if self.is_attached and self.of.in_front and place.folder is not None and place.branch == name:
            self._open_edit(place.folder, name)
            words = f"{place.folder.name} is on {name} now; svc switch - takes it back"
            cast("Edit", self.app.screen).say(words, "dim")

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
            self._edit_elsewhere(machine, folder, branch)
            return
        self._open_edit(folder, branch)

    def _edit_elsewhere(self, machine: Machine, folder: Path, branch: str) -> None:
        """Called if the folder of the text is on another branch than the shown one. Offers to switch it,
        unless it has edits that the server does not have."""
        ref, path, place = self.of.ref_name, self.path or "", self.svc.place.read_again()
        self.of.drop_keys()
        if place.folder != folder:
            self.of.say(f"{folder} is on {branch}: svc switch {ref} there, then e edits it", "warn")
            return

        def work() -> None:
            since = machine.since_seal(folder, self.of.repo.id, branch)
            self.svc.later(lambda: offer(list(since.unsent) if since is not None else []))

        def offer(unsent: list[str]) -> None:
            if not (self.is_attached and self.of.in_front):
                return
            if unsent:
                names = f"{safe(unsent[0])}{f' and {len(unsent) - 1} more' if unsent[1:] else ''}"
                self.of.drop_keys()
                self.of.say(
                    f"{folder.name} is on {branch}, with edits that the server does not have ({names}): "
                    f"svc push -m MESSAGE sends them, then e offers to switch to {ref}",
                    "warn",
                )
            else:
                offer_switch(self.of, branch, ref, path, self._edit_on_branch)

        self.of.hold_keys(READING_SECONDS)
        self.app.run_worker(work, thread=True, group="edit", exclusive=True, exit_on_error=False)

    def _open_edit(self, folder: Path, branch: str) -> None:
        machine = self.svc.machine
        if machine is None or self.path is None:
            return
        from tui.screens.code.edit import Edit

        line = self.query_one("#file", Lines).key
        at = line if isinstance(line, int) else 1
        blob = self._blob if self._blob is not None and self._blob.path == self.path else None
        sealed = self._read_sealed(self.path) if self.live else blob.content if blob is not None else None
        name = self.of.repo.full_name
        self.app.push_screen(Edit(machine, folder, branch, self.path, at, name, sealed, over_live=self.live))

    def _read_sealed(self, path: str) -> str | None:
        """Returns the text of a file in the shown seal, if it was read before. Returns None otherwise."""
        if self.of.seal is None:
            return None
        cached = self.svc.client.read_cached(contents.file(self.of.repo.id, self.of.seal, path))
        return cached[0].content if cached is not None and cached[0].encoding == "utf-8" else None
