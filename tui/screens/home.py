"""The first screen: the inbox and the user's repositories. The repository of the linked folder comes
first."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path

from localstore.core.model.inbox import InboxItem
from localstore.core.model.repo import Repo
from tui import reads
from tui.actions import Action, find_key
from tui.screens.base import THREE_PANES
from tui.screens.first_steps import KEYS, MAKE, SIGN_IN, SIGNED_OUT, steps
from tui.screens.lists.answered import Answered
from tui.screens.lists.inbox import SECTIONS, Space, open_item, opening, preview_item, section_of, sections
from tui.screens.split import PANE, SPLIT_ACTIONS
from tui.text import Part, ago, brief, cut_middle, safe
from tui.widgets.lines import Item, Lines, heading, sequence

NARROW_SHARE = 50  # hundredths of the width that a list with rows of one line takes
SHOWN = 6  # rows of a section of the inbox; `i` shows the others
EVERY = 5.0  # seconds between two looks at the models of this machine
SIGN = "sign in"  # begins the keys of the rows with ways to sign in
BESIDE_NAME = 40  # columns of a row of one line that stand beside the name of a repository
WAY = 14  # columns of the name of a way
ENTER = (("enter", "begins"),)
ENDED = "Your session has ended. Sign in again to see what is new and to change something."
SHORT = {"go_repo": "repository", "account": "account"}  # labels in the line of keys


class Home(Answered):
    FOLLOWS_LATER = True
    LIST = "repos"
    TWO_LINES = True
    FACTS = True
    WAITING = "asking the server"
    ACTIONS = (
        Action("open", ("enter",), "open", "svc repo view {repo}", footer=True),
        Action("inbox", ("i",), "inbox", "svc inbox", footer=True),
        Action("go_repo", ("w",), "go to a repository", footer=True),
        Action("account", ("a",), "account: sessions, devices, tokens", "svc auth status", footer=True),
        PANE,
        Action("back", ("q",), "quit", footer=True),
        Action("leave", ("escape",), "leave the filter, or the preview"),
        *SPLIT_ACTIONS,
    )

    def __init__(self) -> None:
        super().__init__()
        self._repos: dict[str, Repo] | None = None
        self._inbox: list[InboxItem] = []
        self._inbox_words = "asking the server"  # what stands for an inbox without rows
        self._states: dict[str, Part] = {}  # repository → how its default branch stands, as far as asked
        self._unread = ""  # why nothing could be read, as long as nothing was
        self._machine = ""  # what goes on with models on this machine
        self._begins = True  # whether the cursor still goes to what comes first
        self._asks = False  # whether what is painted was known before
        self._answered: set[str] = set()  # what the server has answered

    def make_title(self) -> tuple[Part, ...]:
        return (("Home", "title"),)

    def first_steps(self) -> tuple[str, Sequence[tuple[Part, ...]]]:
        width = self.preview_width if self.previews else self.list_width
        if not self.svc.client.account:
            return "first steps", steps(width, SIGNED_OUT, SIGN_IN, KEYS)
        if self._repos is None:
            return "", ()
        sentence = "There is no repository of yours yet."
        return "first steps", steps(width, sentence, MAKE, KEYS)

    def preview_of(self, key: Hashable) -> None:
        from tui.screens.lists.glance import Glance

        item = self._of_inbox(key)
        if isinstance(key, tuple):
            self._preview_way(key)
        elif item is not None:
            preview_item(self, item)
        elif self._repos is not None and str(key) in self._repos:
            Glance(self, key, str(key), on_checks=self._learn).begin()

    def _preview_way(self, key: tuple[str, str]) -> None:
        """Show what happens if the user signs in by the way under the cursor."""
        from tui.screens.sign_in import WAYS

        name, about = (WAYS[key[1]].name, WAYS[key[1]].about) if key[1] in WAYS else ("sign in", ENDED)
        width = self.preview_width
        self.show_preview(key, f"sign in: {name}", steps(width, about, ENTER, KEYS, role="text"))

    @property
    def _share(self) -> int:
        """The hundredths of the width that the list takes. Rows of one line need more of it."""
        narrow = self.app.size.width < THREE_PANES
        return self.svc.shares.get(self.LIST, NARROW_SHARE) if narrow else super()._share

    def _learn(self, repo_id: str, state: Part) -> None:
        """Show the state of the checks on a repository's default branch, in the row of the repository."""
        if self._states.get(repo_id) != state:
            self._states[repo_id] = state
            self.paint()

    def actions(self) -> tuple[Action, ...]:
        item = self._of_inbox(self.listed.key) if self.is_mounted else None
        if item is None:
            return self.ACTIONS
        return (opening(item, self.given.get(item.id)), *self.ACTIONS[1:])

    def label_of(self, action: Action) -> str:
        if action.id in SHORT:
            return SHORT[action.id]
        if action.id == "open" and isinstance(self.listed.key, tuple):
            return "sign in"
        return self.pane_label() if action.id == "pane" else super().label_of(action)

    def facts(self) -> dict[str, str]:
        repo = next((repo for repo in (self._repos or {}).values() if repo.id == self.listed.key), None)
        return {"repo": repo.full_name} if repo is not None else {}

    def _of_inbox(self, key: Hashable) -> InboxItem | None:
        return next((item for item in self._inbox if item.id == key), None)

    def title_parts(self) -> Sequence[Part]:
        client = self.svc.client
        who = f"@{client.account} · " if client.account else ""
        return ((" svc", "title"), (f"  {safe(who)}{safe(client.origin.partition('://')[2])}", "dim"))

    def on_mount(self) -> None:
        super().on_mount()
        self.do_refresh()
        self.call_after_refresh(self._look_at_machine)
        self.set_interval(EVERY, self._look_at_machine)

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        if self.has_widgets:
            self.drop_declined()  # the inbox answers as well
        self._look_at_machine()

    def on_screen_suspend(self) -> None:
        """Called when another screen covers this one. Rows that the user has answered are removed now, unless
        the answer is still being sent. They stay on the screen until then, so that the user can read how they
        were answered."""
        over = {key for key, mark in self.given.items() if not mark[0].startswith("◐")}
        self._inbox = [item for item in self._inbox if item.id not in over]
        self.given = {key: mark for key, mark in self.given.items() if key not in over}

    def _look_at_machine(self) -> None:
        """Read the state of language models on this machine, on a thread."""
        machine, app = self.svc.machine, self.svc
        if machine is None or not self.in_front:
            return
        folder = app.place.folder or Path.cwd()

        def look() -> None:
            words = ""
            if machine.has_models:
                from tui.screens.machine.reading import brief  # where there are none, none of it is imported

                words = brief(machine.root, machine.environment, folder)
            app.later(lambda: self._show_machine(words))

        app.run_worker(look, thread=True, group="machine", exclusive=True, exit_on_error=False)

    def _show_machine(self, words: str) -> None:
        if self.is_attached and words != self._machine:
            self._machine = words
            self.paint()

    def do_refresh(self) -> None:
        if self.svc.client.origin:
            self._asks = True
            self.svc.load(self.svc.repos, self._paint_repos, lambda error: self.paint())
            if self.svc.client.account:
                self.svc.load(reads.inbox(), self._paint_inbox, self._miss_inbox)
            self._asks = False
        self.paint()  # how to sign in is known before the server answers
        self.renew()

    def about(self) -> list[str]:
        mine = self.svc.place.repo_id
        ordered = sorted(self._repos or (), key=lambda repo_id: repo_id != mine)
        return [*ordered, *(item.repo.id for item in self._inbox if item.repo is not None)]

    def _paint_inbox(self, items: list[InboxItem], at: float) -> None:
        self._inbox, self._inbox_words = self.keep_answered(items, self._inbox), "empty ✓"
        self.read_proposals(self._inbox)
        self.listen()
        self._paint_answer("inbox")

    def _miss_inbox(self, error: BaseException) -> None:
        if self._inbox_words != "empty ✓":
            self._inbox_words = f"not known; {self._key_of('refresh')} asks again"
        self.paint()

    def drop_declined(self) -> None:
        self._inbox = self.without_declined(self._inbox)
        self.paint()

    def _paint_repos(self, repos: list[Repo], at: float) -> None:
        self._repos = {repo.id: repo for repo in repos}
        self.listen()
        self._paint_answer("repos")

    def _paint_answer(self, name: str) -> None:
        """Paint an answer of the server. `name`: which answer. Until all answers have arrived, the cursor
        goes to the first row. After that it stays on its row."""
        if not self._asks:
            self._answered.add(name)
        self.paint()
        if self._answered >= {"repos", "inbox"} and self._repos is not None:
            self._begins = False

    def on_lines_moved(self, event: Lines.Moved) -> None:
        super().on_lines_moved(event)
        self._begins = False

    def paint(self) -> None:
        """Paint the inbox and the repositories, or how to sign in."""
        ways = self._way_rows()
        if self._repos is None and not ways:
            if self._unread:
                self._paint_unread()
            return
        place, now, has_answer = self.svc.place, self.svc.clock(), self._repos is not None
        ordered = sorted((self._repos or {}).values(), key=lambda repo: repo.updated_at, reverse=True)
        ordered.sort(key=lambda repo: repo.id != place.repo_id)
        items = [*ways, *self._above(now, bool(ordered))]
        if items and has_answer and not self.two_lines:
            items.append(Item(None, (("", "text"),)))
        if items and has_answer:
            items.append(heading("Repositories", len(ordered)))
        longest = max((len(repo.full_name) for repo in ordered), default=0)
        width = min(max(BESIDE_NAME, self.list_width - BESIDE_NAME), longest + 2)
        kinds = max((len(_kind(repo)) for repo in ordered), default=0) + 2
        items += [self._row(repo, width, kinds, now) for repo in ordered]
        if not ordered and has_answer and (self.previews or ways):
            items.append(Item(None, (("none yet" if self.svc.client.account else "none to see", "dim"),)))
        elif not ordered and has_answer:
            items += [Item(None, row) for row in self.first_steps()[1]]
        lines = self.query_one("#repos", Lines)
        at_top = lines.top == 0  # then what comes above the cursor stays in view
        if self._begins:
            proposals = self.find_proposals(self._inbox)
            account = self.svc.client.account
            waiting = (
                item.id
                for item in self._inbox
                if section_of(item, proposals.get(item.id), account) == SECTIONS[0]
            )
            first = ways[1].key if ways else next(waiting, ordered[0].id if ordered else None)
            lines.show(sequence(items), first)
        else:
            lines.show(sequence(items))
        if at_top or self._begins:
            lines.show_top()
        self.rest()

    def say_unread(self, text: str) -> None:
        super().say_unread(text)
        if self._repos is None and not self._inbox:
            self._unread = text
            self.paint()

    def _paint_unread(self) -> None:
        """Say that nothing of the server was ever read here, and what can be done meanwhile."""
        keys = [("s", "the connection, and what waits for the server")]
        if self.svc.place.folder is not None:
            keys += [(":status", "what changed in this folder, without the server")]
        rows = steps(self.list_width, self._unread, keys)
        self.listed.show(sequence([Item(None, row) for row in rows]))

    def _way_rows(self) -> list[Item]:
        """Returns a heading and a row for each way to sign in, if nobody is signed in. If the session of the
        account has ended, there is one row. Returns [] if there is nothing to sign in for."""
        if self.svc.sessions is None:
            return []
        if self.svc.client.account:
            if self.svc.news.state != "sign_in":
                return []
            words: Part = ("what is shown was read before that", "dim")
            again: tuple[Part, ...] = (("Sign in again", "accent"),)
            again += () if self.two_lines else (("  ", "text"), words)
            row = Item((SIGN, ""), again, (), "sign in", below=(("  ", "text"), words))
            return [heading("Your session has ended"), row]
        from tui.screens.sign_in import WAYS

        rows = [heading("Sign in")]
        for key, way in WAYS.items():
            if self.two_lines:
                parts: tuple[Part, ...] = ((way.name, "accent"),)
            else:
                needs = way.brief if self.previews else way.needs
                parts = ((f"{way.name:<{WAY}}", "accent"), (needs, "dim"))
            below: tuple[Part, ...] = (("  ", "text"), (way.brief, "dim"))
            rows.append(Item((SIGN, key), parts, (), f"sign in {way.name}", below=below))
        return rows

    def _above(self, now: float, some: bool) -> list[Item]:
        """Returns the rows above the repositories: what language models are doing, and the inbox. If nobody
        is signed in, they say so in place of the inbox. `some`: whether there are repositories to list."""
        items: list[Item] = []
        if self._machine:
            right: Part = (f"{self._key_of('machine')} ", "dim")
            items.append(Item(None, ((self._machine, "accent"),), (right,)))
        if self.svc.client.account:
            columns = self.list_width if self.previews else 0
            space = Space(self.narrow, self.two_lines, self.svc.client.account, columns)
            proposals = self.find_proposals(self._inbox)
            items += sections(self._inbox, now, space, SHOWN, self.given, proposals)
            if not self._inbox:
                items.append(Item(None, (("Inbox ", "title"), (self._inbox_words, "dim"))))
        elif self.svc.sessions is not None:
            pass  # the ways to sign in say it
        elif some:
            items.append(Item(None, ((f"{SIGNED_OUT} ", "title"), (":login signs in", "dim"))))
        elif self.previews:  # which shows how
            items.append(Item(None, ((SIGNED_OUT, "title"),)))
        return items

    def _row(self, repo: Repo, width: int, kinds: int, now: float) -> Item:
        """Returns the row of a repository. `width`, `kinds`: the columns of its name and of its kind."""
        place = self.svc.place
        folder_note = on = ""
        if repo.id == place.repo_id and place.folder:
            on = f" on {place.branch}" if place.branch not in ("", repo.default_branch) else ""
            folder_note = f"  here{on}: {_short(str(place.folder))}"
        state = self._states.get(repo.id, ("", "text"))
        kind = _kind(repo)
        if self.narrow or self.two_lines:
            sign: Part = (f"{state[0][:1] or ' '} ", state[1])
            about = safe(repo.description) or kind
            beside: Part = (f"  here{safe(on)}" if folder_note else "", "accent")
            when = brief(repo.updated_at, now)
            room = max(12, self.list_width - len(f"▌? {beside[0]} {when} "))
            name = repo.full_name if len(repo.full_name) <= room else f"…{repo.full_name[1 - room :]}"
            parts: tuple[Part, ...] = (sign, (safe(name), "text"), beside)
            below: tuple[Part, ...] = (("  ", "text"), (about, "dim"))
            return Item(repo.id, parts, ((f"{when} ", "dim"),), repo.full_name, below=below)
        when = f"{ago(repo.updated_at, now)} "
        room = self.list_width - len(f"▌{repo.default_branch}  {state[0]} {when}") - width - kinds
        if len(folder_note) > room:
            folder_note = f"  here{on}"
        parts = (
            (cut_middle(safe(repo.full_name), width - 2).ljust(width), "text"),
            (kind.ljust(kinds), "dim"),
            (safe(repo.default_branch), "dim"),
            (f"  {state[0]}" if state[0] else "", state[1]),
            (safe(folder_note), "accent"),
        )
        return Item(repo.id, parts, ((when, "dim"),), repo.full_name)

    def do_back(self) -> None:
        self.svc.exit()

    def do_leave(self) -> None:
        """Called at esc. Clears the filter, or closes the preview. If there is neither, shows how to quit. It
        does not quit itself, because users press esc several times to leave screens."""
        if not self.leave_filter() and not self.leave_preview():
            self.say(f"{self._key_of('back') or 'ctrl+c'} quits", "dim")

    def _key_of(self, id: str) -> str:
        """Returns the first key of the action with this id, as people write it. Returns "" if the action has
        no keys."""
        return find_key(id, self.svc.actions())

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        from tui.screens.repo import RepoScreen

        key, self._begins = self.listed.key, False
        of_inbox = self._of_inbox(key)
        if isinstance(key, tuple):
            self.svc.sign_in(way=key[1])
        elif of_inbox is not None:
            open_item(self, of_inbox)
        elif self._repos is not None and str(key) in self._repos:
            self.app.push_screen(RepoScreen(self._repos[str(key)]))


def _kind(repo: Repo) -> str:
    return f"{repo.visibility} {repo.kind}"


def _short(folder: str) -> str:
    home = str(Path.home())
    return "~" + folder[len(home) :] if folder.startswith(home) else folder
