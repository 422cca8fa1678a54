"""The screen of one repository, with a tab for each of its parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Click
from textual.message import Message
from textual.widget import Widget

from localstore.core.model.ref import Ref
from localstore.core.model.repo import Repo
from tui import contents, counted
from tui.actions import Action
from tui.counted import ItemCount
from tui.memory import forget_painted
from tui.reads import Read
from tui.screens.base import READING_SECONDS
from tui.screens.code.code import Code
from tui.screens.code.overview import Overview
from tui.screens.lists.insights import Insights
from tui.screens.lists.releases import Releases
from tui.screens.lists.runs import Workflows
from tui.screens.lists.security import Security
from tui.screens.repo_page import RepoPage
from tui.screens.settings.settings import Settings
from tui.screens.tab_keys import TAB, TAB_ACTIONS
from tui.screens.talk.issues import Issues
from tui.screens.view import View
from tui.text import Part, safe
from tui.texts import Texts
from tui.widgets.frame import Line
from tui.widgets.lines import Lines

TABS: tuple[tuple[str, type[View]], ...] = (
    ("Overview", Overview),
    ("Code", Code),
    ("Issues", Issues),
    ("Workflows", Workflows),
    ("Releases", Releases),
    ("Security", Security),
    ("Insights", Insights),
    ("Settings", Settings),
)
TABS_CODE, TABS_ISSUES, TABS_SETTINGS = 2, 3, 8  # the numbers of tabs
SHORT = {  # names of tabs on a narrow screen
    "Overview": "Over",
    "Proposals": "Prop",
    "Workflows": "Runs",
    "Releases": "Rel",
    "Security": "Sec",
    "Insights": "Ins",
    "Settings": "Set",
}
SOON = 0.02  # seconds
COUNT_EVERY = 10.0  # seconds


class Tabs(Line):
    """The line with the names of the tabs. A click on a name chooses the tab."""

    class TabChosen(Message):
        """Posted when a tab is clicked. `place`: number of the tab, from 1."""

        def __init__(self, place: int) -> None:
            super().__init__()
            self.place = place

    def on_click(self, event: Click) -> None:
        event.stop()
        end = place = 0
        for text, role in self.left:
            begin, end = end, end + cell_len(text)
            place += role in ("tab", "text") and bool(text.strip())
            if begin <= event.x < end and role in ("tab", "text"):
                self.post_message(self.TabChosen(place))
                return


class Origin(NamedTuple):
    """Where a key or a link has led from. `tab`: the number of the tab. `focus`: the widget that had the
    focus. `led_to`: the file that the link led to. `again`: shows again what the tab showed, None if the tab
    still shows it."""

    tab: int
    focus: Widget | None
    led_to: str | None
    again: Callable[[], None] | None


class RepoScreen(RepoPage):
    """The screen of one repository, with a tab for each of its parts. `view`: the tab that is shown."""

    ACTIONS = (
        *TAB_ACTIONS,
        Action("ref", ("b",), "branch, tag or seal", footer=True),
    )

    def __init__(self, repo: Repo, tab: int = 2, ref: Ref | None = None) -> None:
        """Makes the screen. `tab`: the number of the tab that is shown first. `ref`: the branch or tag that
        is shown first. Without it, that is the branch of the linked folder, or the default branch."""
        super().__init__(repo)
        self._first_ref = ref
        self._views: dict[int, View] = {}
        self._tab = tab
        self._left = False
        self._missing = ""  # the branch of the linked folder, while the known branches lack it
        self._origins: list[Origin] = []  # the tabs from which keys and links have led to the shown one
        self._counts: dict[str, str] = {}  # of tabs that were not opened, by the key of the read
        self._counted_at: dict[str, float] = {}  # when each was asked for last, by the monotonic clock

    @property
    def view(self) -> View | None:
        return self._views.get(self._tab)

    @property
    def lines(self) -> Lines | None:
        if isinstance(self.focused, Lines) or self.view is None:
            return super().lines
        return next(iter(widgets(self.view)), None)

    def actions(self) -> tuple[Action, ...]:
        own = self.view.actions() if self.view else ()
        named = {action.id for action in own}
        return (*own, *(action for action in self.ACTIONS if action.id not in named))

    def subject(self) -> tuple[Repo | None, bool]:
        return self.repo, self.view is not None and self.view.is_mounted and self.view.mine()

    def expect_new(self, noun: str, name: str) -> None:
        if noun in ("issue", "proposal") and self._tab != TABS_ISSUES:
            self.show_tab(TABS_ISSUES)
        for view in self._views.values():
            view.expect_new(noun, name)

    def elsewhere(self, key: str) -> str:
        return self.view.elsewhere(key) if self.view is not None and self.view.is_mounted else ""

    def facts(self) -> dict[str, str]:
        seal = {"seal": self.seal} if self.seal is not None else {}
        return {**seal, **(self.view.facts() if self.view is not None and self.view.is_mounted else {})}

    def content(self) -> ComposeResult:
        yield Tabs(id="tabs")
        yield Vertical(id="body", classes="row")

    def title_parts(self) -> Sequence[Part]:
        at = f" @ {self.seal[:8]}" if self.seal else " · no seal yet" if self.read else ""
        current = next((ref for ref in self.refs if ref.name == self.ref_name), None)
        is_tag = current is not None and current.type == "tag"
        older = current is not None and self.seal not in (None, current.head)
        newer = " · ] newer" if self._tab == TABS_CODE else ""
        return (
            (f" {safe(self.repo.full_name)}", "title"),
            ("  tag" if is_tag else "", "dim"),
            (f"{' ' if is_tag else '  '}{safe(self.ref_name)}{at}", "accent"),
            (f"  {self.back_words or 'not the newest seal'}{newer}" if older else "", "warn"),
        )

    def on_mount(self) -> None:
        super().on_mount()
        place = self.svc.place
        if self._first_ref is not None:
            self.go_to(self._first_ref.name, self._first_ref.head)
        elif place.repo_id == self.repo.id and place.branch:
            self.ref_name = place.branch
        self.show_tab(self._tab)
        self.do_refresh()

    @property
    def opens(self) -> bool:
        return self.view is not None and self.view.opens

    def label_of(self, action: Action) -> str:
        label = super().label_of(action)
        if not label or self.view is None or not self.view.is_complete:
            return label
        if action.id == "ref" and not self.view.OF_SEAL:
            return ""
        return self.view.label_of(action)

    def list_hints(self) -> list[tuple[Action, str]]:
        hints = super().list_hints()
        return self.view.order_hints(hints) if self.view is not None and self.view.is_complete else hints

    def command_of(self, action: Action) -> str:
        view = self.view
        return view.command_of(action) if view is not None and view.is_complete else action.command

    @property
    def hides_rows(self) -> bool:
        return self.view.hides_rows() if self.view is not None and self.view.is_mounted else False

    def queue_changed(self) -> None:
        if self.view is not None and self.view.is_mounted:
            self.view.queue_changed()

    def read_after_command(self) -> None:
        self.news()
        if self.view is not None and self.view.is_mounted:
            self.view.open_tab()  # it also reads what events do not tell, such as the labels

    def say_unread(self, text: str) -> None:
        super().say_unread(text)
        if self.view is not None and self.view.is_mounted:
            self.view.say_unread(text)

    def news(self) -> None:
        self.do_refresh()
        if self.view is not None and self.view.is_mounted and type(self.view).do_refresh != View.do_refresh:
            self.view.do_refresh()

    def on_tabs_tab_chosen(self, event: Tabs.TabChosen) -> None:
        event.stop()
        self.svc.press(str(event.place))

    def on_screen_suspend(self) -> None:
        self._left = True

    def on_screen_resume(self) -> None:
        reads_all = self.stale
        super().on_screen_resume()
        if self._left and not reads_all:  # a command may have made a branch
            self.do_refresh()
        if self.view is not None and self.view.is_mounted:
            self.view.open_tab()

    def show_frame(self) -> None:
        super().show_frame()
        if not self.has_widgets:
            return
        self.query_one("#tabs", Line).put(self._tabs())

    def _tabs(self) -> list[Part]:
        """Returns the names of the tabs with separators, as parts. If the long names do not fit into the
        line, short names are used, so that no name is cut off."""
        width = self.app.size.width
        for short, blank in ((False, " "), (True, " "), (True, "")):
            parts = self._named_tabs(short, blank)
            if sum(len(text) for text, _ in parts) <= width:
                break
        return parts

    def _named_tabs(self, short: bool, blank: str) -> list[Part]:
        parts: list[Part] = []
        reads = self._counting()
        for number, (name, _) in enumerate(TABS, 1):
            view = self._views.get(number)
            count = view.count() if view is not None and view.is_mounted else None
            label = view.tab_name() if view is not None and view.is_mounted else ""
            label = label or name
            if count is None:
                count = self._counts.get(reads[name].key, "") if name in reads else ""
            words = f"{number} {SHORT.get(label, label) if short else label}{f' {count}' if count else ''}"
            parts.append(("│" if number > 1 else blank, "line"))
            parts.append((f"{blank}{words}{blank}", "tab" if number == self._tab else "text"))
        return parts

    def on_resize(self) -> None:
        self.show_frame()

    def show_tab(self, number: int) -> None:
        self._origins = []
        self._open_tab(number)

    def _open_tab(self, number: int, focus: Widget | None = None) -> None:
        """Show a tab. `focus`: the widget of it that gets the focus. Without it, that is its first list."""
        _, kind = TABS[number - 1]
        if self.view is not None:
            self.view.display = False
            forget_painted(self.view)
        self._tab = number
        if number not in self._views:
            self._views[number] = kind(self)
            self.query_one("#body").mount(self._views[number])
        else:
            self._views[number].display = True
        self._views[number].call_after_refresh(self._settle, focus)

    def _settle(self, focus: Widget | None = None) -> None:
        view = self.view
        if view is None:
            return
        if not view.is_mounted:  # on a busy machine its widgets come later
            self.set_timer(SOON, lambda: self._settle(focus))
            return
        if focus is None or not focus.is_attached or not focus.display:
            focus = next((lines for lines in view.query(Lines) if lines.display), None)
        self.set_focus(focus)
        view.open_tab()
        self.show_frame()

    def _counting(self) -> dict[str, Read[ItemCount]]:
        """Returns the requests that count the items in each tab at the shown seal, by the name of the tab."""
        repo, seal = self.repo, self.seal
        return {
            "Issues": counted.count_open_issues(repo),
            **({"Workflows": counted.count_failed_checks(repo, seal)} if seal is not None else {}),
            "Releases": counted.count_releases(repo),
            "Security": counted.count_advisories(repo),
        }

    def _count_tabs(self) -> None:
        """Request the number of items in each tab that was not opened yet. For one tab that happens at most
        once in COUNT_EVERY seconds."""
        reads, now = self._counting(), time.monotonic()
        for number, (name, _) in enumerate(TABS, 1):
            read = reads.get(name)
            if read is None or number in self._views:
                continue
            if now >= self._counted_at.get(read.key, -COUNT_EVERY) + COUNT_EVERY:
                self._counted_at[read.key] = now
                self._count_tab(read, "✗" if name == "Workflows" else "")

    def _count_tab(self, read: Read[ItemCount], sign: str) -> None:
        def paint(count: ItemCount, at: float) -> None:
            self._counts[read.key] = count.words(sign)
            self.show_frame()

        self.svc.load(read, paint)

    def do_refresh(self) -> None:
        self.svc.load(contents.refs(self.repo.id), self._paint_refs, lambda _: self._not_read())
        if self.view is not None and self.view.is_mounted and self.view.is_complete:
            self.view.read_missing()

    def _not_read(self) -> None:
        self._waits = None
        self.drop_keys()

    def _paint_refs(self, refs: list[Ref], at: float) -> None:
        """Take over the branches and tags. If the branch has a new head, show it, unless the user looks at an
        older seal."""
        before, self.refs = self.head, refs
        names = {ref.name for ref in refs}
        if before is None and self.ref_name not in names:  # it was deleted, or is newer than what is known
            self._missing, self.ref_name = self.ref_name, self.repo.default_branch
        elif self._missing in names and self.seal in (None, before):
            self.ref_name, self._missing = self._missing, ""
        first, self.read = not self.read, True
        if self.seal in (None, before):
            self.go_to(self.ref_name, self.head or self.seal)
        if first and self.seal is None:  # tabs know only now that there is none
            for view in self._views.values():
                if view.is_mounted:
                    view.load_seal()
        self._count_tabs()
        if self._waits is not None:
            act, self._waits = self._waits, None
            self.hold_keys(0.0)  # `act` holds them if it opens something
            act()

    def tick(self) -> None:
        paint = getattr(self.view, "paint", None)
        if paint is not None and self.view is not None and self.view.is_complete:
            paint()

    def show_branch(self, name: str) -> None:
        branch = next((ref for ref in self.refs if ref.type == "branch" and ref.name == name), None)
        if branch is not None:
            self.go_to(name, branch.head)
        else:
            self._missing = name  # it is shown as soon as the branches are read again
            self.do_refresh()

    def go_to(self, name: str, seal: str | None) -> None:
        """Show the repository at another branch, tag or seal. `name`: the name of the branch or tag."""
        changed = (name, seal) != (self.ref_name, self.seal)
        if name != self.ref_name:
            self._missing = ""
        super().go_to(name, seal)
        if changed:
            for view in self._views.values():
                if view.is_mounted:
                    view.load_seal()
            if self.is_mounted:
                self._count_tabs()
        self.show_frame()

    @property
    def texts_shown(self) -> Texts | None:
        return self.view.texts if self.view is not None else None

    def follow_link(self, target: str) -> None:
        """Follow a link. If it leads to a path of the repository, open that file in the tab Code."""
        if self.view is not None and self.view.go_to(target):
            return
        path = self.view.path_of(target) if self.view is not None else None
        if path is None:
            super().follow_link(target)
            return
        self._origins = origins = [*self._origins, self._here(path)]
        self._open_tab(TABS_CODE)

        def go() -> None:
            self._go_to_file(path, origins)

        self._views[TABS_CODE].call_after_refresh(go)  # after it has the focus

    def link_label(self, target: str) -> str:
        own = self.view.link_label(target) if self.view is not None else ""
        return own or super().link_label(target)

    def act_in_code(self, name: str) -> None:
        self.hold_keys(READING_SECONDS)
        self.lead_to_tab(TABS_CODE)
        code = self._views[TABS_CODE]

        def act() -> None:
            self.hold_keys(0.0)
            self._once_mounted(code, name)
            if self.is_idle:  # else what opens takes them
                self.release_keys()

        code.call_after_refresh(act)  # after it has the focus

    def open_rule(self, pattern: str, *, exists: bool) -> None:
        self.hold_keys(READING_SECONDS)
        self.lead_to_tab(TABS_SETTINGS)
        settings = cast("Settings", self._views[TABS_SETTINGS])
        settings.rule_wanted = pattern, exists

        def begin() -> None:
            self.hold_keys(0.0)
            self._once_mounted(settings, "begin_rule")
            if self.is_idle:
                self.release_keys()

        settings.call_after_refresh(begin)  # after it has the focus

    def lead_to_tab(self, number: int) -> None:
        self._origins.append(self._here(None))
        self._open_tab(number)

    def led_to(self, path: str | None) -> bool:
        return path is not None and bool(self._origins) and self._origins[-1].led_to == path

    def stay_in_code(self) -> None:
        self._origins = []

    def return_to_origin(self) -> bool:
        if not self._origins:
            return False
        origin = self._origins.pop()
        if origin.tab != self._tab:
            self._open_tab(origin.tab, origin.focus)
        if origin.again is not None:
            origin.again()
        return True

    def _here(self, leads_to: str | None) -> Origin:
        """Returns where the user is now. `leads_to`: the file to which a link leads from here."""
        again = self.view.here() if self.view is not None and self.view.is_mounted else None
        return Origin(self._tab, self.focused, leads_to, again)

    def _go_to_file(self, path: str, origins: list[Origin]) -> None:
        view = self._views[TABS_CODE]
        if self.view is not view or self._origins is not origins:
            return  # the user has chosen another tab meanwhile
        if not view.is_mounted:  # on a busy machine its widgets come later
            self.set_timer(SOON, lambda: self._go_to_file(path, origins))
        else:
            cast("Code", view).go_to_file(path)
            self._origins = origins

    def do_ref(self) -> None:
        if not self.read:
            self.once_read(self.do_ref)
            return
        from tui.screens.choose_ref import ChooseRef

        chosen = ChooseRef(self, lambda ref: self.go_to(ref.name, ref.head))
        self.app.push_screen(chosen)

    def do_back(self) -> None:
        if self.view is not None and self.view.leave_filter():
            return
        if self.view is None or not (self.view.back() or self.return_to_origin()):
            super().do_back()

    @property
    def where(self) -> str:
        named = self.view.tab_name() if self.view is not None and self.view.is_mounted else ""
        return f"tab {named or TABS[self._tab - 1][0]}"

    def handler(self, name: str) -> object:
        """Returns the method that runs an action: the method of the shown tab if it has one, otherwise the
        screen's."""
        view = self.view
        if view is not None and view.is_mounted:
            view.acting(name.removeprefix("do_"))
        if name.startswith(TAB):
            number = int(name.removeprefix(TAB))
            return lambda: self.show_tab(number)
        if view is not None and not view.is_mounted and hasattr(view, name):
            return lambda: self._once_mounted(view, name)
        return getattr(view, name, None) or getattr(self, name, None)

    def _once_mounted(self, view: View, name: str) -> None:
        """Run the action `name` of a tab as soon as the widgets of the tab exist. Its key can be typed before
        that."""
        if self.view is not view:
            return
        if not view.is_mounted:
            self.set_timer(SOON, lambda: self._once_mounted(view, name))
            return
        view.acting(name.removeprefix("do_"))
        getattr(view, name)()


def widgets(view: Widget) -> list[Lines]:
    """Returns the lists of a tab that are visible."""
    return [lines for lines in view.query(Lines) if lines.display]
