"""Pages of the line mode about the settings of a repository. Each setting is a choice: it opens the page of
what can be changed about it, or asks for the new value.

    SettingsPages(read, acts).settings(repo)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from localstore.core.model.access import Collaborator, Invite
from localstore.core.model.check import Check
from localstore.core.model.protection import Protection
from localstore.core.model.repo import Repo
from localstore.core.model.webhook import Webhook
from localstore.core.words import count
from svc.flows.place.rights import refusal
from tui import contents, reads
from tui.page import Choice, Page, choices_of, page_of
from tui.page_acts import Offer, PageActs
from tui.reads import Read
from tui.screens.settings import reads as settings_reads
from tui.screens.settings.rule_words import in_words
from tui.text import safe

COMMANDS = ("repo listing", "repo webhook create URL", "repo transfer HANDLE", "repo delete")

REQUIRED = "a rule for branches that asks for required checks makes merges wait for those that are required"


class SettingsPages:
    """Makes the pages. `read`: makes a request and returns its answer. `acts`: makes the actions."""

    def __init__(self, read: Callable[[Read[Any]], Any], acts: PageActs) -> None:
        self._read, self._acts = read, acts

    def settings(self, repo: Repo) -> Page:
        """Returns the page with the settings of a repository. What is not among the choices is changed with
        commands, which are typed after `:`."""
        now: Repo = self._read(reads.repo(repo.id))
        choices = [*self._general(now), *self._rules(now), *self._access(now), *self._automation(now)]
        title = f"Settings of {safe(now.full_name)}, {count(len(choices), 'row')}"
        return page_of(now, title, (), choices, commands=COMMANDS)

    def _general(self, repo: Repo) -> list[Choice]:
        branches = partial(self._name_branches, repo)
        rows = [
            (f"description: {safe(repo.description) or 'none'}", self._acts.of_description(repo)),
            (f"default branch: {safe(repo.default_branch)}", self._acts.of_default_branch(repo, branches)),
            (f"name: {safe(repo.name)}", self._acts.of_name(repo)),
        ]
        readers = "everybody" if repo.visibility == "public" else "whoever has a role"
        archived = "yes" if repo.archived else "no"
        return [
            *(self._asking(repo, text, "repo.update", offers) for text, offers in rows),
            self._row(
                repo,
                f"visibility: {repo.visibility}",
                "repo.update",
                self._acts.of_visibility(repo),
                [f"{readers} reads it"],
            ),
            self._row(repo, f"archived: {archived}", "repo.update", self._acts.of_archive(repo)),
        ]

    def _rules(self, repo: Repo) -> list[Choice]:
        rules: list[Protection] = self._read(contents.protections(repo.id))
        rows = [
            Choice(f"{_name_rule(rule)}: {in_words(rule)}", partial(self._rule, repo, rule.pattern))
            for rule in rules
        ]
        checks: list[Check] = self._read(contents.checks(repo.id))
        return [
            *rows,
            *choices_of(self._acts.of_rules(repo)),
            *(
                self._row(
                    repo,
                    f"check {safe(check.name)}: {'required' if check.enabled else 'not required'}",
                    "check.enable",
                    self._acts.of_check(repo, check),
                    [REQUIRED],
                )
                for check in checks
            ),
        ]

    def _rule(self, repo: Repo, pattern: str) -> Page:
        """Returns the page of the rule for the branches that match a pattern."""
        rules: list[Protection] = self._read(contents.protections(repo.id))
        rule = next((rule for rule in rules if rule.pattern == pattern), None)
        if rule is None:
            return page_of(repo, f"rule for branches {safe(pattern)}", ["there is no such rule any more"])
        lines = [
            f"a branch that matches it: {in_words(rule)}",
            *self._explain_refusal(repo, "protection.set"),
        ]
        choices = choices_of(self._acts.of_rule(repo, rule))
        return page_of(repo, _name_rule(rule), lines, choices, text=True, pattern=pattern)

    def _access(self, repo: Repo) -> list[Choice]:
        people: list[Collaborator] = self._read_allowed(
            repo, "collaborator.list", contents.collaborators(repo.id)
        )
        invites: list[Invite] = self._read_allowed(repo, "invite.list", contents.invites(repo.id))
        rows: list[tuple[str, str, Callable[[Repo, str], list[Offer]]]] = [
            (person.account.handle or "?", f"{person.role}{_through(person)}", self._acts.of_person)
            for person in people
        ]
        rows += [
            (invite.account.handle or "?", f"invited as {invite.role}", self._acts.of_invited)
            for invite in invites
            if invite.state == "pending"
        ]
        return [
            *(
                self._row(repo, f"access of @{safe(handle)}: {role}", "collaborator.role", make(repo, handle))
                for handle, role, make in rows
            ),
            *choices_of(self._acts.of_access(repo)),
        ]

    def _automation(self, repo: Repo) -> list[Choice]:
        webhooks: list[Webhook] = self._read_allowed(repo, "webhook.list", settings_reads.webhooks(repo.id))
        rows = [
            self._row(
                repo,
                f"webhook {safe(webhook.url)}: {'active' if webhook.active else 'off'}, "
                f"{', '.join(webhook.events)}",
                "webhook.edit",
                self._acts.of_webhook(repo, webhook),
            )
            for webhook in webhooks
        ]
        rows += [
            self._row(
                repo,
                f"listing {safe(entry.name)}: {safe(entry.category or 'no category')}, "
                f"{count(len(entry.screenshots), 'picture')}",
                "repo.update",
                (),
                [":repo listing shows it and changes it"],
            )
            for entry in self._read(contents.listing(repo.id))
        ]
        return rows

    # --- rows

    def _asking(self, repo: Repo, text: str, operation: str, offers: Sequence[Offer]) -> Choice:
        """Returns the row of a setting whose new value is asked for at once."""
        if not offers:
            return self._row(repo, text, operation, ())
        return Choice(text, act=offers[0][1])

    def _row(
        self, repo: Repo, text: str, operation: str, offers: Sequence[Offer], lines: Sequence[str] = ()
    ) -> Choice:
        """Returns the row of a setting that has a page. `operation`: what changes it; if the role does not
        allow that, the page says so."""

        def page() -> Page:
            says = [*lines, *self._explain_refusal(repo, operation)]
            return page_of(repo, text, says, choices_of(offers), text=True)

        return Choice(text, page)

    def _explain_refusal(self, repo: Repo, operation: str) -> list[str]:
        why = refusal(operation, repo)
        return [f"it cannot be changed here: {safe(why)}"] if why else []

    def _name_branches(self, repo: Repo) -> list[str]:
        return [ref.name for ref in self._read(contents.refs(repo.id)) if ref.type == "branch"]

    def _read_allowed(self, repo: Repo, operation: str, read: Read[Any]) -> Any:
        return [] if refusal(operation, repo) else self._read(read)


def _name_rule(rule: Protection) -> str:
    return f"rule for branches {safe(rule.pattern)}"


def _through(person: Collaborator) -> str:
    return f", through {safe(person.through)}" if person.through else ""
