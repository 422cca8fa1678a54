"""Modules that load when somebody first looks into them.

Most of a short command's CPU goes into imports, and libraries import much that a usual command never touches.
For each name of `LATER` that is not loaded yet, `defer` puts a stand-in into `sys.modules`. `import idna`
finds it and goes on; the first attribute taken from it, by `from idna import …` too, loads the module itself.
Functions of `CALLED` can be taken without that: importers keep them for later, and the first call loads.

`importlib.util.LazyLoader` does not do: `import x` looks at `x.__spec__`, a first use for its modules.
"""

from __future__ import annotations

import sys
import typing
from _thread import RLock  # as threading has it; `svc --version` does without threading
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

# Every name is of the standard library or of a requirement: a stand-in for a module that does not exist turns
# the ImportError of an `import` into one of the first use. Some Pythons are built without bz2 or lzma; there
# shutil and zipfile believe that they can write such archives, and nothing here asks them to. A submodule can
# stand here if its package imports it (`msgspec.inspect`): nothing else binds its name there until it loads.
# A package can if nobody imports a submodule of it before it is used: importlib would run that one twice.
LATER = (
    # httpx: for addresses that are not names in ASCII, for bodies that are compressed or forms.
    "idna",
    "ipaddress",  # urllib.parse too, before Python 3.13
    "zlib",
    "zstandard",  # ours too: localstore.core.frame, which a working copy needs
    "mimetypes",
    # shutil: for archives.
    "bz2",
    "lzma",
    # inspect and traceback: for source text.
    "ast",  # a first need of inspect before Python 3.13
    "linecache",
    "tokenize",
    # typer: to start a program, to find out which shell this is, to wrap help.
    "subprocess",
    "locale",  # calendar too, which httpx needs
    "shellingham",
    "textwrap",  # msgspec too, for schemas
    # msgspec, socket, pathlib, uuid and zstandard: for what nobody asks them.
    "msgspec.inspect",
    "array",
    "selectors",
    "ntpath",
    "platform",  # a first need of uuid before Python 3.13
    # Our own modules: to sign, encrypt or sign in. httpx needs most of them, and not every command httpx.
    "base64",
    "hmac",
    "ssl",
    "tempfile",
    # Only functions of these are taken:
    "hashlib",  # by httpx, into a table for a sign-in that no server of ours wants
    "calendar",  # http.cookiejar
    "difflib",  # typer, to guess at unknown commands
    "gettext",  # typer, to translate its messages
    "random",  # tempfile
    "shutil",  # typer and tempfile
    "typing_extensions",  # msgspec, which also takes what it has from typing
)
CALLED = {
    "calendar": ("timegm",),
    "difflib": ("get_close_matches",),
    "gettext": ("gettext", "ngettext"),
    "hashlib": ("md5", "sha1", "sha256", "sha512"),
    "random": ("Random",),
    "shutil": ("get_terminal_size", "rmtree"),
    "typing_extensions": ("get_type_hints",),
}
OF_TYPING = ("NotRequired", "Required")  # the same objects in typing_extensions

_LOCK = RLock()  # a signal's handler may look into a module while this thread takes another one out


def defer(names: Iterable[str] = LATER) -> None:
    """Let `names` (dotted, absolute) load at their first use; what is loaded stays."""
    for name in names:
        if name not in sys.modules:
            sys.modules[name] = StandIn(name)


class StandIn(ModuleType):
    """In `sys.modules` until it is looked into, and for ever where an `import` has put it: a window on the
    module itself, which alone has a state. A use raises what the import raises."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        super().__setattr__("__spec__", _Spec(self))
        for unknown in ("__loader__", "__package__"):  # ModuleType has them as None
            super().__delattr__(unknown)
        for function in CALLED.get(name, ()):
            super().__setattr__(function, _called_later(self, function))
        for known in OF_TYPING if name == "typing_extensions" else ():
            super().__setattr__(known, getattr(typing, known))

    def __getattr__(self, attribute: str) -> Any:
        if attribute == "__path__" and self.__name__ in CALLED:
            raise AttributeError(attribute)  # `from … import …` asks whether it is a package: they are not
        return getattr(_loaded(self), attribute)

    def __setattr__(self, attribute: str, value: object) -> None:
        setattr(_loaded(self), attribute, value)

    def __delattr__(self, attribute: str) -> None:
        delattr(_loaded(self), attribute)

    def __dir__(self) -> list[str]:
        return dir(_loaded(self))

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]  # `from zlib import *` reads it
        return _loaded(self).__dict__


def _called_later(stand_in: StandIn, function: str) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        return getattr(_loaded(stand_in), function)(*given, **named)

    call.__name__ = function
    return call


def _loaded(stand_in: StandIn) -> ModuleType:
    """The module itself. The lock is not held while it loads: threads that meet there wait for each other at
    importlib's lock of that module. Two that would wait for ever go on, as with any `import` statement, where
    `importlib.import_module` raises."""
    name = stand_in.__name__
    with _LOCK:
        if sys.modules.get(name) is stand_in:
            del sys.modules[name]
    return __import__(name, fromlist=("__name__",))  # without a fromlist it is the package of a dotted name


class _Spec:
    """The `__spec__` of a stand-in. An `import` asks it whether the module is being initialised, a missing
    attribute whether it is a submodule to be, `importlib.util.find_spec` whether it is there. Who asks for
    more gets it from the module itself."""

    _initializing = False
    has_location = False  # else Python 3.13 asks for `origin` whenever an attribute is missing

    def __init__(self, stand_in: StandIn) -> None:
        self.name = stand_in.__name__
        self._stand_in = stand_in
        self._uninitialized_submodules: list[str] = []

    def __getattr__(self, attribute: str) -> Any:
        return getattr(_loaded(self._stand_in).__spec__, attribute)
