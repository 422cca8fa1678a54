"""The panel Listing of the settings: what the catalog shows about a public repository."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, get_args

from localstore.core.model import listing as listings
from localstore.core.model.listing import IMAGE_ENDINGS, Images, Listing, ListingSet
from tui import contents
from tui.screens.settings.form import Field, SettingsForm, fault_of
from tui.screens.settings.panel import FormPanel
from tui.widgets.lines import Item

if TYPE_CHECKING:
    from localstore.core.model.history import Tree
    from tui.screens.settings.panel import SettingsTab

FIELDS = (
    Field("name", "listing name"),
    Field("category", "category"),
    Field("screenshots", "screenshots", "many"),
    Field("readme_images", "README images", "choice"),
)


class ListingPanel(FormPanel):
    NAME = "Listing"
    RIGHTS: ClassVar = {"field": "listing.set", "save": "listing.set", "remove": "listing.remove"}

    VERBS: ClassVar = {"save": "save", "remove": "take it away", "private": "go to its visibility"}

    def __init__(self, of: SettingsTab) -> None:
        super().__init__(of)
        self._listing: Listing | None = None
        self._pictures: list[str] = []
        self.form = SettingsForm(FIELDS, self._fault)

    def load(self) -> None:
        self.svc.load(contents.listing(self.repo.id), self._take_listing)
        if self.of.of.seal is not None:
            tree = contents.tree(self.repo.id, self.of.of.seal, recursive=True)
            self.svc.load(tree, self._paint_pictures)

    def _take_listing(self, fetched: list[Listing], at: float) -> None:
        self._listing = fetched[0] if fetched else None
        self.paint()

    def _paint_pictures(self, tree: Tree, at: float) -> None:
        self._pictures = [entry.path for entry in tree.entries if entry.path.lower().endswith(IMAGE_ENDINGS)]

    def rows(self) -> list[Item]:
        values = {"name": "", "category": "", "screenshots": [], "readme_images": "none"}
        if self._listing is not None:
            values = {name: getattr(self._listing, name) for name in values}
            values["category"] = values["category"] or ""
        self.form.show(values, self.of.queued_values(listings.SET))
        if self._listing is None and self.repo.visibility == "private" and not self.form.changed:
            return [self.row("private", "", "listed", "no: the repository is private", "dim")]
        rows = self.form.rows(self.NAME)
        if self._listing is None:
            rows[:0] = [self.note(words) for words in self._without()]
        else:
            installable = "✓ installable" if self._listing.installable else "- no signed release yet"
            rows.append(self.note(f"in the catalog  {installable}"))
            rows.append(self.row("remove", "", "take it away", "type its name", "bad"))
        return rows

    def options(self, name: str) -> list[str]:
        return list(get_args(Images)) if name == "readme_images" else self._pictures

    def save_form(self) -> None:
        changes, values = dict(self.form.changed), self.form.values()
        values["name"] = values["name"] or self.repo.name
        values["category"] = values["category"] or None
        self.act(listings.SET, ListingSet(**values), None, lambda: self.of.drop_queued(self, changes))

    def chosen(self, kind: str, name: str) -> None:
        if kind == "private":
            self.of.go(("Lifecycle", "visibility", ""))
        elif kind == "remove" and self._listing is not None:
            self.type_name(self._listing.name, "taken out of the catalog", lambda: self.act(listings.REMOVE))
        else:
            super().chosen(kind, name)

    def _without(self) -> tuple[str, ...]:
        """Returns short rows that say why the repository is not listed."""
        if self.repo.visibility == "private":
            return ("not listed: the repository is private", "make it public under Lifecycle first")
        return ("not listed yet; change a field and save",)

    def _fault(self, name: str, value: Any) -> str:
        if self.repo.visibility == "private":
            return "make the repository public first, under Lifecycle"
        value = value or None if name == "category" else value
        return fault_of(ListingSet, {"name": "-", name: value})
