"""The panel General of the settings: description, name, default branch, and class of the repository."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, get_args

from localstore.core.model import repo as repos
from localstore.core.model.repo import Kind, RepoPatch
from tui import reads
from tui.screens.settings.form import Field, SettingsForm, fault_of
from tui.screens.settings.panel import FormPanel
from tui.widgets.lines import Item

if TYPE_CHECKING:
    from localstore.core.model.repo import Repo
    from tui.screens.settings.panel import SettingsTab

FIELDS = (
    Field("description", "description"),
    Field("default_branch", "default branch", "choice"),
    Field("name", "handle (its name)"),
    Field("kind", "kind", "choice"),
)


class General(FormPanel):
    NAME = "General"
    RIGHTS: ClassVar = {"field": "repo.update", "save": "repo.update"}

    VERBS: ClassVar = {"save": "save"}

    def __init__(self, of: SettingsTab) -> None:
        super().__init__(of)
        self.form = SettingsForm(FIELDS, lambda name, value: fault_of(RepoPatch, {name: value}))

    def load(self) -> None:
        self.svc.load(reads.repo(self.repo.id), self._take_repo)

    def _take_repo(self, repo: Repo, at: float) -> None:
        self.of.of.repo = repo
        self.paint()

    def rows(self) -> list[Item]:
        repo, queued = self.repo, self.of.queued_values(repos.UPDATE)
        self.form.show({name: getattr(repo, name) for name in self.form.fields}, queued)
        return self.form.rows(self.NAME)

    def options(self, name: str) -> list[str]:
        if name == "kind":
            return list(get_args(Kind))
        return [ref.name for ref in self.of.of.refs if ref.type == "branch"]

    def save_form(self) -> None:
        changes: dict[str, Any] = dict(self.form.changed)
        self.act(repos.UPDATE, RepoPatch(**changes), None, lambda: self.of.drop_queued(self, changes))
