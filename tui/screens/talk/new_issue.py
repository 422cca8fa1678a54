"""The form of a new issue: template, title, text, labels and assignees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from localstore.core.model import issue as issues
from localstore.core.model.issue import IssueCreate
from localstore.core.model.repo import Repo
from svc.flows.templates import Template
from tui import contents
from tui.actions import Action
from tui.screens.talk.composing import Composing
from tui.text import Part, safe
from tui.widgets.lines import Item


class NewIssue(Composing):
    """The form of a new issue. `seal`: the seal from which the templates are taken. `people`: the handles to
    choose from."""

    ACTIONS = (
        Action("open", ("enter",), "change", "", "signed_in", footer=True),
        Action(
            "send", ("S", "ctrl+s"), "send", "svc issue create -t TITLE", "signed_in", True, "issue.create"
        ),
        Action("write", ("E",), "text in $EDITOR", "", "signed_in"),
        Action("discard", ("D",), "discard", footer=True),
    )
    NOUN = FORM = "issue"

    def __init__(
        self,
        repo: Repo,
        seal: str | None,
        people: Sequence[str],
        begun: Mapping[str, Any] | None = None,
        template: str = "",
    ) -> None:
        super().__init__(repo, people, begun)
        self._seal, self._template = seal, template
        self._templates: list[Template] = []

    def begin(self) -> None:
        if self._seal is not None:
            read = contents.issue_templates(self.repo.id, self._seal)
            self.svc.load(read, self._paint_templates, lambda error: None)

    def _paint_templates(self, templates: list[Template], at: float) -> None:
        self._templates = [template for template in templates if not template.fault]
        name, self._template = self._template.casefold(), ""
        if name:
            named = [
                choice
                for choice in self._templates
                if name in (choice.name.casefold(), choice.file.casefold())
            ]
            if not named:
                self.say(f"there is no template {name}; choose one below the title", "warn")
            elif not self.value("body").strip():
                self._begin_with(named[0])
        self.paint()

    def fields(self) -> list[tuple[str, tuple[Part, ...], Callable[[], None]]]:
        rows = [self.title_field()]
        if self._templates:
            offered: Part = (f"{len(self._templates)} to begin with", "dim")
            rows.append(("template", (offered,), self._choose_template))
        return [
            *rows,
            self.text_field(),
            self.labels_field(),
            self.people_field("people", "assignees", "issue.assign"),
        ]

    def facts_of(self) -> list[Part]:
        return [("○ open", "good"), *self.author_parts()]

    def _choose_template(self) -> None:
        from tui.screens.choose import Choose

        def chosen(template: Template) -> None:
            if self.value("body").strip():
                self.confirm("Put the template in the place of the text?", lambda: self._begin_with(template))
            else:
                self._begin_with(template)

        items = [
            Item(template, ((safe(template.name), "text"), (f"  {safe(template.about)}", "dim")))
            for template in self._templates
        ]
        self.app.push_screen(Choose("begin with", items, chosen))

    def _begin_with(self, template: Template) -> None:
        self.put("body", template.body)
        # What was chosen before stays.
        self.put("labels", list(dict.fromkeys([*self.names("labels"), *template.labels])))
        self.put("assignees", list(dict.fromkeys([*self.names("assignees"), *template.assignees])))
        if template.title and not self.value("title"):
            self.put("title", template.title)

    def do_send(self) -> None:
        """Put the new issue into the outbox and send it."""
        self.queue_new(issues.CREATE, IssueCreate, self.written())
