"""The panel Lifecycle of the settings: visibility, archiving, transfer, and deletion of the repository."""

from __future__ import annotations

from typing import ClassVar

from localstore.core.model import access
from localstore.core.model import repo as repos
from localstore.core.model.access import Transfer
from localstore.core.model.repo import RepoPatch
from tui.screens.settings import reads
from tui.screens.settings.panel import Panel
from tui.widgets.lines import Item


class Lifecycle(Panel):
    NAME = "Lifecycle"
    RIGHTS: ClassVar = {
        "visibility": "repo.update",
        "archive": "repo.update",
        "transfer": "transfer.create",
        "offered": "transfer.cancel",
        "delete": "repo.delete",
    }

    VERBS: ClassVar = {"transfer": "offer it", "offered": "take the offer back", "delete": "delete"}

    _offered: Transfer | None = None

    def verb(self, kind: str, name: str) -> str:
        if kind == "visibility":
            return "make it private" if self.repo.visibility == "public" else "make it public"
        if kind == "archive":
            return "unarchive" if self.repo.archived else "archive"
        return super().verb(kind, name)

    def load(self) -> None:
        if self.may_read("transfer.create"):
            self.svc.load(reads.transfers(), self._take_transfers)

    def _take_transfers(self, transfers: list[Transfer], at: float) -> None:
        of_this = (
            transfer
            for transfer in transfers
            if transfer.repo.id == self.repo.id and transfer.state == "pending"
        )
        self._offered = next(of_this, None)
        self.paint()

    def rows(self) -> list[Item]:
        repo, queued = self.repo, self.of.queued_values(repos.UPDATE)
        visibility: str = repo.visibility
        archived = "yes: it takes no writes" if repo.archived else "no"
        if "visibility" in queued:
            visibility = f"⋯ {queued['visibility']}, queued"
        if "archived" in queued:
            archived = f"⋯ {'yes' if queued['archived'] else 'no'}, queued"
        offered = self._offered
        return [
            self.row("visibility", "", "visibility", visibility),
            self.row("archive", "", "archived", archived),
            self.row("offered", offered.id, "transfer", f"* offered to @{offered.to.handle or '?'}")
            if offered is not None
            else self.row("transfer", "", "transfer", "give it to another owner", "dim"),
            self.row("delete", "", "delete", "can be restored for 30 days", "bad"),
        ]

    def chosen(self, kind: str, name: str) -> None:
        {
            "visibility": self._visibility,
            "archive": self._archive,
            "transfer": self._transfer,
            "offered": self._take_back,
            "delete": self._delete,
        }[kind]()

    def _visibility(self) -> None:
        if self.repo.visibility == "public":
            self.confirm("Make it private?", lambda: self._update(visibility="private"))
        else:
            self.type_name(
                self.repo.full_name,
                "shown to everybody, its whole history too",
                lambda: self._update(visibility="public"),
            )

    def _archive(self) -> None:
        archived = self.repo.archived
        words = "Accept writes again?" if archived else "Refuse every write until unarchived?"
        self.confirm(words, lambda: self._update(archived=not archived))

    def _transfer(self) -> None:
        full_name = self.repo.full_name

        def offer_to(text: str) -> None:
            handle = text.strip().removeprefix("@")
            if handle:
                self.type_name(
                    full_name,
                    f"offered to {handle}",
                    lambda: self.run("repo", "transfer", handle, "--yes"),
                )

        self.ask("handle of the new owner", offer_to)

    def _take_back(self) -> None:
        offered = self._offered
        if offered is not None:
            self.confirm(
                "Take the offer back?",
                lambda: self.svc.outbox.act(
                    access.CANCEL_TRANSFER, about=self.repo.full_name, transfer=offered.id
                ),
            )

    def _delete(self) -> None:
        name = self.repo.full_name
        page = self.of.of

        def leave(deleted: bool) -> None:
            if deleted and page.in_front:
                page.below.stale = True
                page.app.pop_screen()

        def delete() -> None:
            self.svc.run_here(["repo", "delete", name, "--yes"], f"deleting {name}", leave)

        self.type_name(name, "deleted", delete)

    def _update(self, *, visibility: repos.Visibility | None = None, archived: bool | None = None) -> None:
        self.act(repos.UPDATE, RepoPatch(visibility=visibility, archived=archived))
