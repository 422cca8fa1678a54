"""The tab Issues of a repository. It lists either issues or proposals."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from rich.cells import cell_len

from localstore.core.errors import UsageError
from localstore.core.model.issue import IssueQuery
from localstore.core.model.label import Label
from localstore.core.model.repo import Repo
from localstore.core.words import count
from tui import contents
from tui.actions import Action
from tui.counted import ItemCount, count_open_issues, count_open_proposals
from tui.filters import STATES, WORDS, Filter, Kind, complete, parse
from tui.listed import ListedIssue, ListedProposal
from tui.reads import Read
from tui.screens.base import TWO_PANES, Undo
from tui.screens.proposal.words import counts_beside, state_of, waits_for
from tui.screens.split import SPLIT_ACTIONS, Split
from tui.screens.talk.acts import DRAFTED, About, Acts, Noun, has_draft, waiting_part
from tui.screens.talk.previews import SIGNS, Colours, colours_of, first_left, label_parts, preview_talk
from tui.text import Part, ago, brief, safe
from tui.widgets.lines import Item, Lines, queued_rows
from tui.widgets.made import LazyRows
from tui.wording import unread_words

if TYPE_CHECKING:
    from tui.screens.repo_page import RepoPage

CANDIDATES = 12  # that are named while a word is typed
KINDS: Mapping[str, Kind] = {"issue": "issues", "proposal": "proposals"}  # noun → what lists it
COUNTS: Mapping[Kind, Callable[[Repo], Read[ItemCount]]] = {
    "issues": count_open_issues,
    "proposals": count_open_proposals,
}
SHORT = 90  # columns below which rows say things in short


def _fit_labels(names: Sequence[str], colours: Colours, room: int) -> list[Part]:
    """Returns as many labels as fit into `room` columns, at least one, and how many more labels there are, as
    parts."""
    for fitting in range(len(names), 0, -1):
        more = f"+{len(names) - fitting}" if fitting < len(names) else ""
        parts = [*label_parts(names[:fitting], colours), (more, "dim")]
        if fitting == 1 or sum(cell_len(text) for text, _ in parts) <= room:
            return parts
    return []


def _sign(words: str) -> str:
    """Shortens a text about checks or verdicts to a few characters, such as `✓4/4`, `✗2` or `✓1`."""
    sign, _, rest = words.partition(" ")
    return f"  {sign}{rest.partition(' ')[0]}" if words else ""


def text(item: ListedIssue | ListedProposal) -> str:
    """Returns the text of the row of an issue or a proposal. Filters look for the typed words in it."""
    labels = " ".join([label.name for label in item.labels])
    if isinstance(item, ListedProposal):
        more = f"{item.head} {item.base}"
    else:
        more = " ".join([f"@{person.handle}" for person in item.assignees])
    return f"#{item.number} {item.title} {labels} @{item.author.handle or '?'} {more}"


def _acts(noun: Noun) -> tuple[Action, ...]:
    """Returns the actions about the row under the cursor. They are the same as on the screen that the row
    opens."""
    svc = f"svc {'issue' if noun == 'issue' else 'pr'}"

    def action(id: str, key: str, label: str, command: str, right: str, footer: bool = False) -> Action:
        return Action(id, (key,), label, f"{svc} {command}", "signed_in", footer, right)

    return (
        Action("open", ("enter",), "open", f"{svc} view {{n}}", footer=True),
        action("comment", "c", "comment", "comment {n} -b TEXT", "comment.create", True),
        action("label", "l", "labels", "label add {n} NAME", "issue.label", True),
        action("close", "z", "close or reopen", "close {n}", f"{noun}.close", True),
        action("assign", "u", "assign or unassign me", "edit {n} --add-assignee @me", "issue.assign"),
        action("people", "U", "assign people", "edit {n} --add-assignee NAME", "issue.assign", True),
        action("write", "E", "comment in $EDITOR", "comment {n}", "comment.create"),
        action("title", "t", "change the title", "edit {n} -t TEXT", f"{noun}.edit"),
    )


def _comments(item: ListedIssue | ListedProposal) -> str:
    return count(item.comments, "comment")


# Actions of the list that have other commands while it lists proposals.
OF_PROPOSALS = (
    Action("add", ("a",), "new", "svc pr create -t TITLE", "signed_in", True, "proposal.create"),
    Action("kind", ("p",), "issues or proposals", "svc issue list"),
    Action("state", ("o",), "open, closed or all", "svc pr list --state {state}", footer=True),
)


class Issues(Split, Acts):
    LIST = "issues"
    WAITING = "asking the server"
    RULED = True
    TWO_LINES_FROM = TWO_PANES
    TWO_LINES = True
    FACTS = True
    ACTIONS = (
        *_acts("issue"),
        Action("add", ("a",), "new", "svc issue create -t TITLE", "signed_in", True, "issue.create"),
        Action("kind", ("p",), "issues or proposals", "svc pr list"),
        Action("state", ("o",), "open, closed or all", "svc issue list --state {state}", footer=True),
        *SPLIT_ACTIONS,
    )

    def __init__(self, of: RepoPage) -> None:
        super().__init__(of)
        self._kind: Kind = "issues"
        self._filter = parse("issues", "")
        self._found: Sequence[ListedIssue] | Sequence[ListedProposal] = ()
        self._found_by: Filter | None = None  # the filter that found these, None while none is known
        self._labelled: tuple[Sequence[Label], Colours] = ((), {})
        self._typing: Filter | None = None  # the filter in the open prompt
        self._totals: dict[tuple[Kind, str], int] = {}  # how many there are without a filter, by state
        self._others: tuple[Kind, ItemCount] = ("proposals", ItemCount())  # those that `p` lists
        self._awaits = "", 0  # the title of what the user has made, and the greatest number before it
        self._last_closed: tuple[Kind, int] | None = None  # what the user has closed last
        self._goes_to: int | None = None  # the number to which the cursor goes once the list is read
        # The number under the cursor, the list, and the row, which is searched for once.
        self._under: tuple[Hashable | None, object, ListedIssue | ListedProposal | None] = (None, (), None)

    def facts(self) -> dict[str, str]:
        number = self.query_one("#issues", Lines).key
        kind = "issue" if self._kind == "issues" else "pr"
        states = STATES[self._kind]
        state = states[(states.index(self._filter.query.state) + 1) % len(states)]  # what `o` shows next
        return {"state": state, **({kind: str(number)} if number is not None else {})}

    def known_people(self, about: About) -> list[str]:
        return list(dict.fromkeys([*super().known_people(about), *self._values("author")]))

    def actions(self) -> tuple[Action, ...]:
        if self._kind == "issues":
            return self.ACTIONS
        acts = {action.id: action for action in (*_acts("proposal"), *OF_PROPOSALS)}
        no_key = Action("machine", (), "this machine: models, apps", "svc llm status")  # M is merge here
        return (*(acts.get(action.id, action) for action in self.ACTIONS), no_key)

    def label_of(self, action: Action) -> str:
        return self.act_label(action)

    def command_of(self, action: Action) -> str:
        return self.act_command(action)

    def elsewhere(self, key: str) -> str:
        from tui.screens.proposal.screen import ProposalScreen
        from tui.screens.talk.issue import IssueScreen

        kind = IssueScreen if self._kind == "issues" else ProposalScreen
        label = next((action.label for action in kind.ACTIONS if key in action.keys), "")
        return f"{key} ({label}) is for what enter opens" if label else ""

    @property
    def chosen(self) -> About | None:
        number = self.listed.key
        if number != self._under[0] or self._found is not self._under[1]:
            item = next((item for item in self._found if item.number == number), None)
            self._under = number, self._found, item
        item = self._under[2]
        noun: Noun = "issue" if self._kind == "issues" else "proposal"
        return About(noun, self.of.repo, item.number, item) if item is not None else None

    def mine(self) -> bool:
        account, about = self.svc.client.account, self.chosen
        item = about.item if about is not None else None
        return item is not None and bool(account) and item.author.handle == account

    def open_tab(self) -> None:
        self.do_refresh()
        self.svc.load(contents.labels(self.of.repo.id), self._paint_labels)

    def _paint_labels(self, labels: list[Label], at: float) -> None:
        if colours_of(labels) != self._labelled[1]:
            self._labelled = labels, colours_of(labels)
            self.listed.refresh()

    def do_refresh(self) -> None:
        self.renew()
        repo_id, searched = self.of.repo.id, self._filter
        self._count_others()

        def paint(listed: list[ListedIssue] | list[ListedProposal], at: float) -> None:
            if searched is self._filter:
                self._found, self._found_by = listed, searched
                if not searched.without_state:
                    self._totals[self._kind, searched.query.state] = len(listed)
                self.paint()

        def miss(error: BaseException) -> None:
            if searched is self._filter and self._found_by is not searched:
                self._found, self._found_by = (), None
                self.paint()
                self.listed.waiting = unread_words(self.svc.news.state)

        if isinstance(searched.query, IssueQuery):
            self.svc.load(contents.issues(repo_id, searched.query), paint, miss)
        else:
            self.svc.load(contents.proposals(repo_id, searched.query), paint, miss)

    def _count_others(self) -> None:
        """Request how many open ones there are of what `p` lists."""
        other: Kind = "proposals" if self._kind == "issues" else "issues"

        def paint(count: ItemCount, at: float) -> None:
            if self._others != (other, count) and self._kind != other:
                self._others = other, count
                self._say_where()

        self.svc.load(COUNTS[other](self.of.repo), paint, lambda error: None)

    def queue_changed(self) -> None:
        self.paint()

    def paint(self) -> None:
        if not self.is_mounted:
            return
        if self._found_by is None:
            waiting = self.listed.waiting or self.WAITING
            self.listed.show(())
            self.listed.waiting = waiting
            self.rest()
            return
        listed = self._found
        below = f"/repos/{self.of.repo.id}/{self._kind}"
        on_rows = [of_row for item in listed for of_row in self.svc.outbox.describe(f"{below}/{item.number}")]
        queued = [words for words in self.svc.outbox.describe(below) if words not in on_rows]  # without a row
        words = self._filter.without_state
        narrowed = words or self._filter.query.state != "open"
        none = (
            f"no {self._kind} match; change it with /" if narrowed else f"no open {self._kind}; a opens one"
        )
        self.listed.empty = none
        rows = LazyRows[ListedIssue | ListedProposal](
            listed, self._row, lambda item: item.number, text, last=queued_rows(queued)
        )
        goes_to = self._goes_to if self._found_by is self._filter else None
        if goes_to is not None:
            self._goes_to = None
        is_listed = goes_to is not None and any(item.number == goes_to for item in listed)
        self.query_one("#issues", Lines).show(rows, goes_to if is_listed else self._new_one())
        self.rest()

    def expect_new(self, noun: str, name: str) -> None:
        kind = KINDS.get(noun)
        if kind is None:
            return
        hidden = self.hides_rows() or self._filter.query.state != "open"
        if kind != self._kind or hidden:  # the list does not show it
            self._kind, self._found, self._found_by = kind, (), None
            self._filter = parse(kind, "")
            if self.is_mounted:
                self.listed.filter("")
        self._awaits = name, max((item.number for item in self._found), default=0)

    def _new_one(self) -> int | None:
        """Returns the number of the issue or proposal that the user has just made. Returns None if there is
        none, or if it is not in the list yet."""
        title, last = self._awaits
        if not title:
            return None
        new = next((item for item in self._found if item.number > last and item.title == title), None)
        if new is None:
            return None
        self._awaits = "", 0
        return new.number

    def on_lines_moved(self, event: Lines.Moved) -> None:
        super().on_lines_moved(event)
        if event.lines.id == self.LIST:
            self._awaits = "", 0  # the user has gone on

    def make_title(self) -> tuple[Part, ...]:
        """Returns the title of the list: the kind, state and filter, how many rows are shown, and how many
        there are in that state."""
        state = self._filter.query.state
        query = self._typing or self._filter
        words = " ".join(filter(None, (query.without_state, query.free)))
        title: Part = (f"{self._kind.capitalize()} {state} · ", "title")
        if self._found_by is None and not words:
            return ((f"{self._kind.capitalize()} {state} ", "title"),)
        if not words:
            return title, (f"{len(self._found)}", "dim")
        lines, matches = self.listed, len(self._found)
        count = len(lines.rows) if lines.filtered else matches
        total = self._totals.get((self._kind, state), matches)
        last = f" · {count} of {total}" if count < total else f" · {count}"
        if query.without_state != self._filter.without_state:
            last = " · enter lists"  # the words go to the server only then
        words, room = safe(words), self.list_width - len(last) - 4
        if state == "open" and len(title[0]) + len(words) > room:
            title = (f"{self._kind.capitalize()} · ", "title")
        room = max(8, room - len(title[0]))
        return title, (words if len(words) <= room else f"{words[: room - 1]}…", "accent"), (last, "dim")

    def title_hint(self) -> tuple[Part, ...]:
        query = self._typing or self._filter
        if query.without_state or query.free:
            return ()
        other = "proposals" if self._kind == "issues" else "issues"
        count = self._others[1].words() if self._others[0] == other else ""
        return ("   p", "accent"), (f" {other} {count}".rstrip(), "dim")

    def hides_rows(self) -> bool:
        return bool(self._filter.without_state or self._filter.free)

    def tab_name(self) -> str:
        return self._kind.capitalize()

    def count(self) -> str | None:
        """Returns the number of open issues or proposals as text, whatever the filter is. Returns None while
        the number of issues is unknown, and "" while the number of proposals is."""
        total = self._totals.get((self._kind, "open"))
        if total is None:
            return None if self._kind == "issues" else ""
        return str(total or "")

    def state_changed(self, about: About, state: str, words: str) -> None:
        """Its row may leave the list, so the message offers to take it back."""
        closes, number = state == "closed", about.number
        self._last_closed = (self._kind, number) if closes else None

        def take_back() -> None:
            self._last_closed = None if closes else (self._kind, number)
            self.patch_one(about, state="open" if closes else "closed")
            self.front.say(f"{'opening' if closes else 'closing'} #{number} again", "dim")

        undo = Undo(f"{'reopens' if closes else 'closes'} #{number}", take_back)
        self.front.say(words, "dim", undo)

    def preview_of(self, key: Hashable) -> None:
        kind = "issue" if self._kind == "issues" else "proposal"
        about = self.chosen
        head: list[Part] = [(safe(about.item.title), "title")] if about is not None and about.item else []
        preview_talk(self, key, self.of.repo.id, kind, int(str(key)), head)

    # --- rows

    def _row(self, item: ListedIssue | ListedProposal) -> Item:
        proposal = item if isinstance(item, ListedProposal) else None
        state = state_of(item) if isinstance(item, ListedProposal) else SIGNS[item.state]
        account, is_short = self.svc.client.account, not self.two_lines and self.app.size.width < SHORT
        waits = waits_for(proposal, account, is_short) if proposal is not None else []
        counts = counts_beside(proposal, account) if proposal is not None else []
        names = [label.name for label in item.labels]
        now, own = self.svc.clock(), self._own(item)
        if own and own[0][0].startswith("⋯"):
            state = (f"⋯ {state[0][2:]}", "warn")
        when: Part = (f"{brief(item.updated_at, now)} ", "dim")
        if self.two_lines:
            below = self._second_line(item, waits, counts)
            return Item(item.number, self._make_row_title(item, state), (when,), below=tuple(below))
        if self.narrow:
            signs = [(f"{words[:1]} ", role) for words, role in (*own, *waits, *counts) if words]
            return Item(item.number, self._make_row_title(item, state), (*signs, when))
        if self.app.size.width < SHORT:
            title = self._make_row_title(item, state)
            labels = names if len(waits) < 2 else []
            right: list[Part] = [(f"  {words}", role) for words, role in own]
            right += [(_sign(words), role) for words, role in counts]
            right += [(f"  {words}", role) for words, role in waits]
            right += [
                (f"  {item.comments}" if item.comments else "", "dim"),
                (f"  {brief(item.updated_at, now):>3} ", "dim"),
            ]
            room = self.list_width - 1 - sum(cell_len(text) for text, _ in (*title, *right))
            return Item(item.number, title, (*_fit_labels(labels, self._labelled[1], room), *right))
        who: Part = (f"  @{safe(item.author.handle or '?')}", "dim")
        title = (*self._make_row_title(item, state), *label_parts(names, self._labelled[1]), who)
        beside = [(f"{words}  ", role) for words, role in (*own, *waits, *reversed(counts)) if words]
        beside += [(f"{_comments(item)}  ", "dim")] if item.comments else []
        return Item(item.number, title, (*beside, (f"{ago(item.updated_at, now)} ", "dim")))

    def _own(self, item: ListedIssue | ListedProposal) -> list[Part]:
        """Returns what only this account has of an issue or a proposal, as parts: actions that wait in the
        outbox, and a comment that was begun."""
        noun: Noun = "issue" if self._kind == "issues" else "proposal"
        waits = waiting_part(self.svc, self.of.repo.id, noun, item.number)
        drafts = (
            (DRAFTED[0].removesuffix(" comment"), DRAFTED[1])
            if self.narrow or self.app.size.width < SHORT
            else DRAFTED
        )
        drafted = has_draft(self.svc, self.of.repo.id, item.number)
        return [*([waits] if waits[0] else []), *([drafts] if drafted else [])]

    def _second_line(
        self, item: ListedIssue | ListedProposal, waits: Sequence[Part], counts: Sequence[Part]
    ) -> list[Part]:
        """Returns the parts of the line below a title: what the row waits for, checks and verdicts, labels,
        people and comments. A narrow list has shorter texts for these."""
        names, colours = [label.name for label in item.labels], self._labelled[1]
        parts: list[Part] = [(f"  {words}", role) for words, role in (*self._own(item), *waits)]
        parts += [(_sign(words) if self.narrow else f"  {words}", role) for words, role in counts if words]
        after: list[Part] = [(f"  @{safe(item.author.handle or '?')}", "person")]
        after += [(f"  → @{safe(person.handle or '?')}", "person") for person in item.assignees]
        if item.comments:
            after.append((f"  {_comments(item)}", "dim"))
        begin = len(str(item.number)) + 4
        room = self.list_width - begin - sum(cell_len(text) for text, _ in (*parts, *after))
        parts += [*_fit_labels(names, colours, room), *after]
        filled_parts = [part for part in parts if part[0]]
        return [(" " * begin, "text"), *first_left(filled_parts)]

    def _make_row_title(self, item: ListedIssue | ListedProposal, state: Part) -> tuple[Part, ...]:
        """Returns the state, number and title of a row, as parts. If there is little room, the state is only
        a sign."""
        brief = self.two_lines or self.app.size.width < SHORT or self.narrow
        sign: Part = (f"{state[0].strip()[:1]} ", state[1]) if brief else state
        number: Part = (f"#{item.number} " if brief else f" #{item.number:<5}", "accent")
        return sign, number, (safe(item.title), "text")

    def do_kind(self) -> None:
        self._kind = "proposals" if self._kind == "issues" else "issues"
        self._filter, self._found, self._found_by = parse(self._kind, ""), (), None
        self.query_one("#issues", Lines).filter("")
        self.paint()
        self.of.show_frame()
        self.do_refresh()

    def do_state(self) -> None:
        states = STATES[self._kind]
        state = states[(states.index(self._filter.query.state) + 1) % len(states)]
        self._filter = parse(self._kind, f"{self._filter.typed} state:{state}")
        if self._last_closed is not None and self._last_closed[0] == self._kind and state != "open":
            self._goes_to = self._last_closed[1]
        self.do_refresh()

    # --- the filter

    def do_filter(self, typed: str | None = None) -> None:
        """Let the user type a filter. Its free text filters at each key, and its options filter when enter is
        pressed. `typed`: the text in the prompt at the beginning, if it is not the present filter."""
        lines, before = self.query_one("#issues", Lines), self._filter

        def filter_rows(text: str) -> None:
            if text == typed:  # what was refused, with the reason below it
                return
            with suppress(UsageError):  # a word that is being typed
                self._typing = parse(self._kind, text)
                lines.filter(self._typing.free)
            candidates = complete(self._kind, text, self._values)[1]
            self.of.say("  ".join(candidates[:CANDIDATES]), "dim")

        def done(text: str) -> None:
            self._typing = None
            try:
                self._filter = parse(self._kind, text)
            except UsageError as error:
                lines.filter(before.free)
                self.do_filter(text)  # to be corrected
                self.of.say(error.detail, "warn")
                return
            self.of.say("")
            lines.filter(self._filter.free)
            self.of.show_frame()
            self.do_refresh()

        def left() -> None:
            self._typing = None
            lines.filter(before.free)
            self.of.say("")  # why the text was refused

        present = f"{before.typed} " if before.typed else ""  # what is typed next is another word
        self.of.ask(
            f"{' '.join(f'{word}:' for word in WORDS[self._kind][:4])} or text of the rows to list",
            done,
            filter_rows,
            present if typed is None else typed,
            lambda text: complete(self._kind, text, self._values)[0],
            left,
            filtered=lines,
            enter="apply",
            label="/",
        )

    def leave_filter(self) -> bool:
        if self.svc.pressed != "escape" or not (self._filter.without_state or self._filter.free):
            return False
        self._filter = parse(self._kind, "", self._filter.query.state)
        self.query_one("#issues", Lines).filter("")
        self.of.show_frame()
        self.do_refresh()
        return True

    def _values(self, word: str) -> list[str]:
        """Returns the known values for an option of a filter, such as the labels for `label`."""
        if word in ("base", "head"):
            return [ref.name for ref in self.of.refs if ref.type == "branch"]
        listed = self._found
        if word == "label":
            labels = self.svc.client.read_cached(contents.labels(self.of.repo.id))
            names = [label.name for label in labels[0]] if labels is not None else []
            return [*names, *(label.name for item in listed for label in item.labels)]
        people = [actor for item in listed for actor in (item.author, *item.assignees)]
        return [actor.handle for actor in people if actor.handle]

    def do_add(self) -> None:
        if self._kind == "proposals":
            self._propose()
            return

        from tui.screens.talk.new_issue import NewIssue

        self.app.push_screen(NewIssue(self.of.repo, self.of.head, self._values("author")))

    def _propose(self) -> None:
        """Let the user choose a branch, and open the form of a new proposal for that branch."""
        from tui.screens.talk.choose_head import ChooseHead

        repo, refs = self.of.repo, self.of.refs
        base = repo.default_branch
        if not refs:
            self.of.say("nothing was pushed yet; a proposal compares two branches", "warn")
            return
        if not any(ref.type == "branch" and ref.name != base for ref in refs):
            self.of.say(f"there is no branch besides {base}; make one with :repo branch NAME", "warn")
            return

        def chosen(head: str, taken: Mapping[str, int]) -> None:
            from tui.screens.talk.new_proposal import NewProposal

            self.app.push_screen(NewProposal(repo, head, refs, self._values("author"), taken=taken))

        self.app.push_screen(ChooseHead(repo, refs, chosen))

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        from tui.screens.proposal.screen import ProposalScreen
        from tui.screens.talk.issue import IssueScreen

        number = self.listed.key if event.lines.id == "preview" else event.key
        if number is None:
            return
        kind = IssueScreen if self._kind == "issues" else ProposalScreen
        row = next((row for row in self._found if row.number == number), None)
        self.app.push_screen(kind(self.of.repo, int(str(number)), row))
