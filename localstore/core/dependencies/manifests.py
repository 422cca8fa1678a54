"""Reads manifests (files that declare dependencies). Ecosystems have the names that OSV gives them, such as
`PyPI`; `svc` is the ecosystem of the repositories on the relay itself."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from localstore.core import manifest
from localstore.core.errors import Invalid
from localstore.core.model.dependency import Ecosystem
from localstore.core.model.limits import DEPENDENCIES, MANIFEST_FILE, in_words
from localstore.core.names import MANIFEST

_CHARS = 200  # of a name; of what is asked of its version
_REQUIREMENTS = re.compile(r"requirements([-_.][\w.-]+)?\.(txt|in)")
_GO_REQUIRE = re.compile(r"(?:require\s+)?([^\s()]+)\s+(v[^\s]+)")
_LINE = 2000  # characters of one requirement of Python
_LINES = 4 * DEPENDENCIES  # of one file of requirements
_NESTED = 50  # brackets within brackets
_KEY_STEPS = 2_000_000  # of reading dotted keys: each part is kept with all before it, and below its table


class Declared(msgspec.Struct, frozen=True):
    """A dependency as a manifest declares it. `requirement`: the versions that the manifest accepts, in the
    syntax of the ecosystem; "" accepts all. `version`: the only version that it accepts; None if it accepts
    several."""

    ecosystem: Ecosystem
    name: str
    requirement: str = ""
    version: str | None = None
    development: bool = False


def is_manifest(path: str) -> bool:
    """Whether `read` can read a file of this name."""
    return _reader(path) is not None


def read(path: str, data: bytes) -> list[Declared]:
    """The dependencies that the manifest at `path` declares, each once, in the order of the file, at most
    `DEPENDENCIES`. Raises Invalid if it cannot be read."""
    reader = _reader(path)
    if reader is None:
        raise Invalid("this is not a manifest of dependencies")
    if len(data) > MANIFEST_FILE:
        raise Invalid(f"the manifest is larger than {in_words(MANIFEST_FILE)}")
    try:
        declared = list(islice(reader(data), DEPENDENCIES))
    except (UnicodeDecodeError, ValueError, RecursionError, AttributeError, TypeError) as error:
        raise Invalid(f"the manifest cannot be read: {type(error).__name__}") from None
    return list(dict.fromkeys(dependency for dependency in declared if _is_plain(dependency)))


def key(ecosystem: str, name: str) -> str:
    """The package name in a normal form: two names are of the same package if their forms are equal."""
    if ecosystem == "PyPI":
        return canonicalize_name(name)
    return name.lower() if ecosystem in ("svc", "npm") else name


def _is_plain(declared: Declared) -> bool:
    texts = (declared.name, declared.requirement or "x")
    return all(0 < len(text) <= _CHARS and text.isprintable() for text in texts)


def _reader(path: str) -> Callable[[bytes], Iterator[Declared]] | None:
    name = path.rpartition("/")[2]
    if path == MANIFEST:
        return _svc
    if _REQUIREMENTS.fullmatch(name):
        return _requirements
    return _BY_NAME.get(name)


def _svc(data: bytes) -> Iterator[Declared]:
    for name in manifest.parse(data).depends:
        yield Declared("svc", name)


# --- Python


def _requirements(data: bytes) -> Iterator[Declared]:
    """The dependencies of a requirements.txt. Lines with options or URLs are skipped, and other files that it
    includes are not read."""
    text = data.decode("utf-8-sig").replace("\\\r\n", " ").replace("\\\n", " ")
    for line in text.splitlines()[:_LINES]:
        plain = line.partition(" #")[0].strip()
        if not plain or plain.startswith(("#", "-")):
            continue
        if (dependency := _python(plain.partition(" --")[0])) is not None:
            yield dependency


def _pyproject(data: bytes) -> Iterator[Declared]:
    top = _toml(data)
    project = _table(top, "project")
    for text in _list(project, "dependencies"):
        yield from _yield_present(_python(text))
    for group in _table(project, "optional-dependencies").values():
        for text in group:
            yield from _yield_present(_python(text))
    for text in _list(_table(top, "build-system"), "requires"):
        yield from _yield_present(_python(text, development=True))
    for group in _table(top, "dependency-groups").values():
        for text in group:
            if isinstance(text, str):
                yield from _yield_present(_python(text, development=True))
    for name, requirement in _table(_table(_table(top, "tool"), "poetry"), "dependencies").items():
        if name != "python":
            yield Declared("PyPI", name, _version_of(requirement), _poetry_pin(_version_of(requirement)))


def _python(text: Any, development: bool = False) -> Declared | None:
    if not isinstance(text, str) or len(text) > _LINE:
        return None
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return None
    pins = [specifier.version for specifier in requirement.specifier if specifier.operator in ("==", "===")]
    exact = pins[0] if len(pins) == 1 and "*" not in pins[0] else None
    return Declared("PyPI", requirement.name, str(requirement.specifier), exact, development)


def _poetry_pin(requirement: str) -> str | None:
    """The only version that the requirement accepts, None if it accepts several. In Poetry a version without
    an operator means exactly that version."""
    plain = requirement.removeprefix("==").strip()
    return plain if re.fullmatch(r"[0-9][\w.+!-]*", plain) else None


# --- JavaScript


def _package_json(data: bytes) -> Iterator[Declared]:
    _refuse_depth(data)
    top = msgspec.json.decode(data)
    for member in ("dependencies", "optionalDependencies", "peerDependencies", "devDependencies"):
        for name, requirement in _table(top, member).items():
            exact = re.fullmatch(r"=?v?([0-9]+\.[0-9]+\.[0-9]+[\w.+-]*)", requirement.strip())
            dev = member == "devDependencies"
            yield Declared("npm", name, requirement.strip(), exact[1] if exact else None, dev)


# --- Rust


def _cargo(data: bytes) -> Iterator[Declared]:
    top = _toml(data)
    places = [top, _table(top, "workspace"), *_table(top, "target").values()]
    for place in places:
        for member in ("dependencies", "build-dependencies", "dev-dependencies"):
            for name, requirement in _table(place, member).items():
                real = requirement.get("package", name) if isinstance(requirement, dict) else name
                text = _version_of(requirement)
                exact = re.fullmatch(r"=\s*([0-9]+\.[0-9]+\.[0-9]+[\w.+-]*)", text)
                version = exact[1] if exact else None
                yield Declared("crates.io", real, text, version, member != "dependencies")


# --- Go


def _go(data: bytes) -> Iterator[Declared]:
    """The modules that a go.mod requires. `replace` and `exclude` are skipped, because they apply only to
    builds of this module itself. The `version` of each result is the version that the go.mod requires,
    because Go chooses the lowest version that fulfils all requirements."""
    block = ""
    for line in data.decode("utf-8-sig").splitlines():
        plain, _, _ = line.partition("//")
        plain = plain.strip()
        if plain.endswith("("):
            block = plain[:-1].strip()
        elif plain == ")":
            block = ""
        elif (block or plain.partition(" ")[0]) == "require":
            match = _GO_REQUIRE.fullmatch(plain)
            if match:
                yield Declared("Go", match[1].strip('"'), match[2], match[2].removeprefix("v"))


_BY_NAME: dict[str, Callable[[bytes], Iterator[Declared]]] = {
    "pyproject.toml": _pyproject,
    "package.json": _package_json,
    "Cargo.toml": _cargo,
    "go.mod": _go,
}


# --- what they are made of


def _toml(data: bytes) -> dict[str, Any]:
    _refuse_depth(data)
    _refuse_long_keys(data)
    return tomllib.loads(data.decode("utf-8-sig"))


def _refuse_depth(data: bytes) -> None:
    """Raise Invalid for deeply nested brackets, before anything is parsed. Brackets inside strings count too;
    real manifests stay far below the limit."""
    depth = 0
    for bracket in re.finditer(rb"[][{}]", data):
        depth += 1 if bracket[0] in b"[{" else -1
        if depth > _NESTED:
            raise Invalid(f"the manifest is nested deeper than {_NESTED} levels")
        depth = max(depth, 0)


def _refuse_long_keys(data: bytes) -> None:
    """Raise Invalid for a TOML text whose dotted keys (`a.b.c`) have so many parts that parsing them would
    take gigabytes. Dots outside of keys count too."""
    table = steps = 0
    for line in data.split(b"\n"):
        dots = line.count(b".")
        if line.lstrip().startswith(b"["):
            table = max(table, dots)
        steps += (dots + 1) * (dots + table)
    if steps > _KEY_STEPS:
        raise Invalid("the keys of the manifest have too many parts")


def _table(of: Any, member: str) -> dict[str, Any]:
    value = of.get(member) if isinstance(of, dict) else None
    return value if isinstance(value, dict) else {}


def _list(of: dict[str, Any], member: str) -> list[Any]:
    value = of.get(member)
    return value if isinstance(value, list) else []


def _version_of(requirement: Any) -> str:
    """The version requirement of a dependency that is declared as a string or as a table with `version`; ""
    if it has none."""
    version = requirement.get("version", "") if isinstance(requirement, dict) else requirement
    return version.strip() if isinstance(version, str) else ""


def _yield_present(declared: Declared | None) -> Iterator[Declared]:
    if declared is not None:
        yield declared
