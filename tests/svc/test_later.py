"""Modules that load at their first use: what an importer sees of it, which is nothing."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
import threading
import typing
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from svc import later
from tests.svc.conftest import ROOT, clean_environment

WAIT = 20  # seconds until what should have happened did not


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """Write modules (dotted name, source) that are importable and deferred; each tells `RAN` when it runs."""
    loaded = dict(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    RAN.clear()

    def write(name: str, source: str) -> None:
        path = tmp_path.joinpath(*name.split("."))
        path = path / "__init__" if path.is_dir() else path
        path.with_suffix(".py").write_text(f"from {__name__} import RAN\nRAN.append(__name__)\n{source}\n")
        importlib.invalidate_caches()
        later.defer([name])

    yield write
    for name in sys.modules.keys() - loaded.keys():
        del sys.modules[name]


RAN: list[str] = []
EVENTS: dict[str, threading.Event] = {}
HELD: dict[str, ModuleType] = {}


def in_threads(*works: Callable[[], object]) -> list[object]:
    """What the works answered or raised, all done at once; a work that does not end is a failure."""
    answers: list[object] = [None] * len(works)

    def run(place: int, work: Callable[[], object]) -> None:
        try:
            answers[place] = work()
        except BaseException as error:
            answers[place] = error

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
        assert not thread.is_alive()
    return answers


def test_an_import_loads_nothing_and_an_attribute_does(shelf: Callable[[str, str], None]) -> None:
    shelf("later_plain", "value = 7")
    import later_plain

    assert isinstance(later_plain, later.StandIn) and RAN == []
    assert later_plain.value == 7
    assert type(sys.modules["later_plain"]) is ModuleType
    assert later_plain.__file__ == sys.modules["later_plain"].__file__
    assert later_plain.__package__ == "" and later_plain.__loader__ is sys.modules["later_plain"].__loader__
    assert RAN == ["later_plain"]


def test_from_imports_load(shelf: Callable[[str, str], None]) -> None:
    shelf("later_from", "value = 7")
    from later_from import value

    assert value == 7
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        from later_from import nothing  # noqa: F401
    assert RAN == ["later_from"]


@pytest.mark.parametrize("listed", ["", "__all__ = ['value']"])
def test_a_star_brings_what_the_module_has(shelf: Callable[[str, str], None], listed: str) -> None:
    shelf("later_star", f"value = 7\n{listed}")
    names: dict[str, object] = {}
    exec("from later_star import *", names)
    assert names["value"] == 7


def test_a_function_can_be_taken_without_loading(
    shelf: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(later.CALLED, "later_called", ("double",))
    shelf("later_called", "value = 7\ndef double(number, *, less=0): return 2 * number - less")
    import later_called
    from later_called import double

    table = {"double": later_called.double}
    assert RAN == [] and double.__name__ == "double"
    assert double(4) == 8 == table["double"](5, less=2)
    assert later_called.value == 7
    assert RAN == ["later_called"]
    with pytest.raises(TypeError, match="positional"):
        double(1, 2)
    with pytest.raises(ImportError):
        from later_called import nothing  # noqa: F401


def test_the_module_keeps_its_own_state(shelf: Callable[[str, str], None]) -> None:
    shelf("later_state", "count = 0\ndef add():\n    global count\n    count += 1")
    import later_state

    later_state.count = 5
    later_state.add()
    assert later_state.count == 6 == sys.modules["later_state"].count
    assert "add" in dir(later_state) and "add" in vars(later_state)
    del later_state.add
    assert not hasattr(later_state, "add") and not hasattr(sys.modules["later_state"], "add")


def test_its_spec_is_found_without_loading(shelf: Callable[[str, str], None]) -> None:
    shelf("later_spec", "")
    spec = importlib.util.find_spec("later_spec")
    assert spec is not None and spec.name == "later_spec" and RAN == []
    assert spec.origin == sys.modules["later_spec"].__file__
    assert spec.parent == "" and spec.loader is sys.modules["later_spec"].__loader__


def test_a_module_that_is_missing_raises_when_used_and_then_when_imported() -> None:
    later.defer(["later_missing"])
    import later_missing

    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="later_missing"):
            _ = later_missing.value
    with pytest.raises(ModuleNotFoundError):
        import later_missing


def test_a_module_that_fails_fails_each_time(shelf: Callable[[str, str], None]) -> None:
    shelf("later_fails", "raise OSError('no')")
    import later_fails

    for _ in range(2):
        with pytest.raises(OSError, match="no"):
            _ = later_fails.value
    assert RAN == ["later_fails", "later_fails"]


def test_what_is_loaded_stays() -> None:
    later.defer(["sys", "pytest"])
    assert sys.modules["sys"] is sys and sys.modules["pytest"] is pytest


def touched(stand_in: ModuleType, start: threading.Barrier) -> object:
    start.wait(WAIT)
    return stand_in.value


def test_threads_that_touch_at_once_load_once(shelf: Callable[[str, str], None]) -> None:
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for turn in range(20):
            name = f"later_thread_{turn}"
            shelf(name, "value = [7]")
            stand_in, start = sys.modules[name], threading.Barrier(4)
            values = in_threads(*[partial(touched, stand_in, start)] * 4)
            assert all(value is sys.modules[name].value for value in values)
            assert RAN.count(name) == 1
    finally:
        sys.setswitchinterval(switching)


SLOW = f"from {__name__} import EVENTS\nEVENTS['running'].set()\nassert EVENTS['go'].wait({WAIT})\nlate = 7"


@pytest.mark.parametrize("how", ["attribute", "import", "from"])
def test_a_use_waits_for_an_import_under_way(shelf: Callable[[str, str], None], how: str) -> None:
    shelf("later_slow", SLOW)
    EVENTS.update(running=threading.Event(), using=threading.Event(), go=threading.Event())
    stand_in = sys.modules["later_slow"]

    def second() -> object:
        assert EVENTS["running"].wait(WAIT)
        EVENTS["using"].set()
        names: dict[str, object] = {}
        if how == "attribute":
            return stand_in.late
        exec(
            "from later_slow import late" if how == "from" else "import later_slow; late = later_slow.late",
            names,
        )
        return names["late"]

    def third() -> None:
        assert EVENTS["using"].wait(WAIT)
        EVENTS["go"].set()

    assert in_threads(lambda: stand_in.late, second, third) == [7, 7, None]
    assert RAN == ["later_slow"]


def test_a_circle_sees_what_there_is_so_far(shelf: Callable[[str, str], None]) -> None:
    shelf("later_circle", "early = 1\nimport later_user\nlate = later_user.seen")
    shelf("later_user", "import later_circle\nseen = later_circle.early + hasattr(later_circle, 'late')")
    assert sys.modules["later_circle"].late == 1
    assert RAN == ["later_circle", "later_user"]


@pytest.mark.parametrize("other", ["import %s as other", "other = HELD['%s']"])
def test_two_threads_in_a_circle_both_end(shelf: Callable[[str, str], None], other: str) -> None:
    start = f"from {__name__} import EVENTS, HELD\nearly = 1\nEVENTS[__name__].set()\n"
    meet = f"assert EVENTS['%s'].wait({WAIT})\n{other}\nlate = other.early"
    shelf("later_left", start + meet % ("later_right", "later_right"))
    shelf("later_right", start + meet % ("later_left", "later_left"))
    EVENTS.update(later_left=threading.Event(), later_right=threading.Event())
    left, right = sys.modules["later_left"], sys.modules["later_right"]
    HELD.update(later_left=left, later_right=right)
    assert in_threads(lambda: left.late, lambda: right.late) == [1, 1]
    assert sorted(RAN) == ["later_left", "later_right"]


def python(script: str) -> str:
    """What the script prints in a process of its own where everything is deferred."""
    ended = subprocess.run(
        [sys.executable, "-c", f"import sys\nfrom svc import later\nlater.defer()\n{script}"],
        capture_output=True,
        text=True,
        env=clean_environment(),
        cwd=ROOT,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout.strip()


def test_all_that_is_deferred_exists() -> None:
    touch = "for name in later.LATER: sys.modules[name].__loader__\n"
    left = "print([name for name in later.LATER if isinstance(sys.modules[name], later.StandIn)])"
    assert python(touch + left) == "[]"


def test_what_is_called_later_is_callable_and_of_no_package() -> None:
    assert later.CALLED.keys() <= set(later.LATER)
    for name, functions in later.CALLED.items():
        module = importlib.import_module(name)
        assert not hasattr(module, "__path__")
        assert all(callable(getattr(module, function)) for function in functions)


def test_what_typing_extensions_has_of_typing() -> None:
    typing_extensions = importlib.import_module("typing_extensions")
    assert all(getattr(typing_extensions, name) is getattr(typing, name) for name in later.OF_TYPING)


def test_httpx_takes_functions_of_hashlib_and_calls_none() -> None:
    script = "import httpx\nprint(isinstance(sys.modules['hashlib'], later.StandIn))\n"
    script += "print(httpx.DigestAuth._ALGORITHM_TO_HASH_FUNCTION['SHA-256'](b'a').hexdigest()[:8])"
    assert python(script).split() == ["True", "ca978112"]


def test_a_submodule_can_be_imported() -> None:
    described = python("import msgspec.inspect; print(msgspec.inspect.type_info(bool))")
    assert described == "BoolType()"
