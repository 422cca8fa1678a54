"""Follows the live state of a branch on a thread. It comes from the agent, svc's background process.

    looking = Looking(home, origin, repo.id, "main", saw)
    looking.here("src/main.py", 12)
    looking.close()

If no agent runs, it is started. If the agent ends, the request is made again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from localstore.agent.talk import AgentSilent, BranchEvent, Conversation, Do, Request
from localstore.core.errors import SvcError
from localstore.home import Home
from svc.agent.start import reach, start
from tui.listening.backoff import Backoff

HERE_EACH = 0.3  # seconds between two reports of where the user is


class Looking:
    """Follows a branch through the agent, on a thread of its own. `saw`: called with each event of the
    branch, on that thread. The last event is `ended`, unless `close` was called before."""

    def __init__(
        self, home: Home, origin: str, repo_id: str, branch: str, saw: Callable[[BranchEvent], None]
    ) -> None:
        self._home, self._saw = home, saw
        self._origin, self._repo_id, self._branch = origin, repo_id, branch
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._conversation: Conversation | None = None
        self._place: tuple[str, int] | None = None
        self._placed = threading.Event()
        threading.Thread(target=self._run, name="look", daemon=True).start()
        threading.Thread(target=self._tell, name="here", daemon=True).start()

    def here(self, path: str, line: int) -> None:
        """Tell the agent the user's file and line, which others on the branch see. Returns at once. Of
        several calls in a row, only the last one is sent."""
        self._place = (path, line)
        self._placed.set()

    def close(self) -> None:
        with self._lock:
            self._ended.set()
            self._placed.set()
            if self._conversation is not None:
                self._conversation.close()

    def _run(self) -> None:
        backoff = Backoff()
        while not self._ended.is_set():
            try:
                if self._look():
                    return
                backoff.reset()
            except AgentSilent:
                backoff.lengthen()
            except SvcError as error:
                self._end(str(error.detail or error.title))
                return
            backoff.wait(self._ended)

    def _look(self) -> bool:
        """Follow the branch until the agent ends. Returns True if following again would be useless."""
        conversation = start(self._home)
        with self._lock:
            if self._ended.is_set():
                conversation.close()
                return True
            self._conversation = conversation
        with conversation:
            reply = conversation.ask(self._request("look"))
            if reply.error:
                self._end(reply.error)
                return True
            for seen in conversation.sights():
                if not self._ended.is_set():
                    self._saw(seen)
                if seen.event == "ended":
                    return True
        return self._ended.is_set()

    def _request(self, do: Do, path: str = "", line: int = 0) -> Request:
        server, repo, branch = self._origin, self._repo_id, self._branch
        return Request(do, server=server, repo=repo, branch=branch, path=path, line=line)

    def _end(self, why: str) -> None:
        if not self._ended.is_set():
            self._saw(BranchEvent("ended", detail=why))

    def _tell(self) -> None:
        while not self._ended.is_set():
            self._placed.wait()
            self._placed.clear()
            place = self._place
            if place is not None and not self._ended.is_set():
                agent = None
                with suppress(AgentSilent):
                    agent = reach(self._home)
                    if agent is not None:
                        agent.ask(self._request("here", *place))
                if agent is not None:
                    agent.close()
            self._ended.wait(HERE_EACH)
