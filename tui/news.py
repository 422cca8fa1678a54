"""The state of the connection, and news of the repository that is shown."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

from localstore.core.model.repo import Repo
from tui.calling import Calling
from tui.client import Client
from tui.live import Following
from tui.sending import Sending

NEWS_EVERY = 0.5  # seconds between an event and the request for its changes; events within are one
RESTS = 4  # times as long as the last request took, before news ask for its like again


class News(Calling, inherit_bindings=False):
    """Listens to events while signed in. `line_state`: state of the connection, a name of LIGHTS;
    `line_since`: since when."""

    client: Client
    sending: Sending | None
    clock: Callable[[], float]

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._line_state, self.line_since = "unknown", ""
        self.following = Following(lambda: self.client.api, self._heard, self._followed)
        self._is_live = self._news_due = False
        self.took = 0.0  # seconds that the last reading took: a list of 10,000 has a hundred pages

    @property
    def line_state(self) -> str:
        return self._line_state

    @line_state.setter
    def line_state(self, state: str) -> None:
        if state == "online" and self._is_live:
            state = "live"
        if state != self._line_state:
            self._line_state = state
            self.line_since = datetime.fromtimestamp(self.clock(), UTC).isoformat()

    def follow(self, repo: Repo | None) -> None:
        """Listen to events of a repository while signed in."""
        if repo is not None and self.sending is not None and self.sending.signed_in:
            self.following.follow(repo.id)

    def _followed(self, state: str) -> None:
        self.later(lambda: self._set_state(state))

    def _heard(self) -> None:
        self.later(self._news_soon)

    def _set_state(self, state: str) -> None:
        was, self._is_live = self._is_live, state == "live"
        if state == "online" and not was:  # a server that takes requests and no sockets
            return
        self.line_state = "online" if self._is_live else state
        cast("Any", self.screen).show_frame()

    def _news_soon(self) -> None:
        if not self._news_due:
            self._news_due = True
            self.set_timer(max(NEWS_EVERY, RESTS * self.took), self._ask_for_news)

    def _ask_for_news(self) -> None:
        self._news_due = False
        cast("Any", self.screen).news()
