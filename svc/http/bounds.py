"""Bounds end calls to a server early: a deadline, or a cancel from another thread.

    cancel = Cancel()
    with within(Deadline(5.0), cancel):
        api.repo.find("alice", "project")  # ServerUnreachable after five seconds

    cancel.cancel()  # from any thread: the call raises Cancelled at once

A bound applies to every call that this thread makes inside `with within(…)`. It covers the whole call, from
resolving the host name to the last byte, including pauses between attempts. A stream that was opened there is
bound until it is closed. When a bound ends, the connections that are in use are shut down, which wakes the
threads that wait for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Lock, Timer
from time import monotonic

from localstore.core.errors import Cancelled, ServerUnreachable, SvcError

Cut = Callable[[], None]
"""Ends one wait. Called from any thread, perhaps twice."""


class Bound:
    """Base class of `Deadline` and `Cancel`, which end calls. One bound may apply to any number of calls in
    any threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._cuts: set[Cut] = set()

    @property
    def ended(self) -> bool:
        raise NotImplementedError

    def error(self, origin: str, remedy: str) -> SvcError:
        """Return the error that a call to `origin` raises when this bound has ended it. `remedy` is the end
        of the error's sentence."""
        raise NotImplementedError

    def attach(self, cut: Cut) -> None:
        """Register the function `cut`, which is called when the bound ends. If the bound has already ended,
        it is called at once."""
        with self._lock:
            self._cuts.add(cut)
            self._on_attach()
        if self.ended:
            cut()

    def detach(self, cut: Cut) -> None:
        with self._lock:
            self._cuts.discard(cut)
            if not self._cuts:
                self._on_idle()

    def _end(self) -> None:
        """Call all functions that were registered with `attach`, which ends the calls under this bound."""
        with self._lock:
            cuts = list(self._cuts)
        for cut in cuts:
            cut()

    def _on_attach(self) -> None:
        """A hook for subclasses: called whenever a function is registered with `attach`. The bound's lock is
        held meanwhile."""

    def _on_idle(self) -> None:
        """A hook for subclasses: called when no registered function is left. The bound's lock is held
        meanwhile."""


class Cancel(Bound):
    """A bound that ends when `cancel` is called. Calls that begin after that are ended at once."""

    def __init__(self) -> None:
        super().__init__()
        self._cancelled = False

    @property
    def ended(self) -> bool:
        return self._cancelled

    def cancel(self) -> None:
        """End all calls under this bound, including later ones. They raise Cancelled."""
        self._cancelled = True
        self._end()

    def error(self, origin: str, remedy: str) -> SvcError:
        return Cancelled(f"the call to {origin} was cancelled; {remedy}")


class Deadline(Bound):
    """A bound that ends a number of seconds after its creation."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self._at, self._over = monotonic() + seconds, False
        self._timer: Timer | None = None

    @property
    def ended(self) -> bool:
        return self._over or monotonic() >= self._at

    def error(self, origin: str, remedy: str) -> SvcError:
        return ServerUnreachable(f"{origin} did not answer within {self.seconds:g} seconds; {remedy}")

    def _on_attach(self) -> None:
        if self._timer is None:
            self._timer = Timer(max(0.0, self._at - monotonic()), self._expire)
            self._timer.daemon = True
            self._timer.start()

    def _expire(self) -> None:
        self._over = True
        self._end()

    def _on_idle(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Stopped(Exception):
    """Raised inside a call when a bound has ended it. `bound` is that bound."""

    def __init__(self, bound: Bound) -> None:
        super().__init__()
        self.bound = bound


Bounds = Sequence[Bound]
_CURRENT: ContextVar[tuple[Bound, ...]] = ContextVar("bounds", default=())


@contextmanager
def within(*bounds: Bound) -> Iterator[None]:
    """A context in which these bounds apply to the calls of this thread. Bounds of an outer context still
    apply."""
    before = _CURRENT.set((*_CURRENT.get(), *bounds))
    try:
        yield
    finally:
        _CURRENT.reset(before)


def current() -> Bounds:
    """Return the bounds that apply to new calls of this thread."""
    return _CURRENT.get()


def check(bounds: Bounds) -> None:
    """Raise Stopped if one of the bounds has ended."""
    for bound in bounds:
        if bound.ended:
            raise Stopped(bound)


@contextmanager
def attach_cut(bounds: Bounds, cut: Cut) -> Iterator[None]:
    """A context in which the thread waits for something. `cut` is called as soon as one of the bounds ends,
    and must end that wait. When the context ends, Stopped is raised if a bound has ended."""
    for bound in bounds:
        bound.attach(cut)
    try:
        yield
    finally:
        for bound in bounds:
            bound.detach(cut)
    check(bounds)


def pause(seconds: float, sleep: Callable[[float], None]) -> None:
    """Wait `seconds`. Raises Stopped as soon as a bound ends. If no bound applies, the function `sleep` is
    used to wait."""
    bounds = current()
    if not bounds:
        sleep(seconds)
        return
    woken = Event()
    with attach_cut(bounds, woken.set):
        woken.wait(seconds)
