"""Manifests of many languages are read, whatever is in them; versions are compared as OSV says."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localstore.core.dependencies import Declared, is_manifest, key, read
from localstore.core.dependencies.affected import is_affected
from localstore.core.errors import Invalid
from localstore.core.model.advisory import Range, RangeEvent
from localstore.core.model.limits import DEPENDENCIES, MANIFEST_FILE

PYPROJECT = b"""
[build-system]
requires = ["hatchling>=1.27"]
[project]
dependencies = ["httpx[socks]>=0.28", "msgspec==0.20.0 ; python_version > '3.10'"]
[project.optional-dependencies]
test = ["pytest"]
[dependency-groups]
dev = ["ruff", {include-group = "test"}]
"""
CARGO = b"""
[dependencies]
serde = "1.0"
rand_core = { package = "rand-core", version = "=0.6.4", features = ["std"] }
local = { path = "../local" }
[dev-dependencies]
proptest = "1"
[target.'cfg(unix)'.dependencies]
libc = "0.2"
"""
GO = b"""module example.org/m
go 1.22
require golang.org/x/text v0.3.7 // indirect
require (
	github.com/pkg/errors v0.9.1
	// a comment
)
replace github.com/pkg/errors => ../errors
exclude github.com/x/y v1.0.0
"""
REQUIREMENTS = b"""# pinned
requests==2.31.0 --hash=sha256:00  # why
-r other.txt
-e .
https://example.org/x.whl
Django>=4,<5
numpy \\
  ==1.26.*
"""


def _told(path: str, data: bytes) -> list[tuple[str, str, str | None, bool]]:
    return [(one.name, one.requirement, one.version, one.development) for one in read(path, data)]


def test_each_language_is_read() -> None:
    assert read(".svc.yaml", b"depends: [alice/toolkit]\n") == [Declared("svc", "alice/toolkit")]
    assert _told("pyproject.toml", PYPROJECT) == [
        ("httpx", ">=0.28", None, False),
        ("msgspec", "==0.20.0", "0.20.0", False),
        ("pytest", "", None, False),
        ("hatchling", ">=1.27", None, True),
        ("ruff", "", None, True),
    ]
    assert _told("a/requirements-dev.txt", REQUIREMENTS) == [
        ("requests", "==2.31.0", "2.31.0", False),
        ("Django", "<5,>=4", None, False),
        ("numpy", "==1.26.*", None, False),
    ]
    wanted = {"dependencies": {"left-pad": "1.3.0", "@x/y": "^2"}, "devDependencies": {"vitest": "*"}}
    assert _told("web/package.json", json.dumps(wanted).encode()) == [
        ("left-pad", "1.3.0", "1.3.0", False),
        ("@x/y", "^2", None, False),
        ("vitest", "*", None, True),
    ]
    assert _told("Cargo.toml", CARGO) == [
        ("serde", "1.0", None, False),
        ("rand-core", "=0.6.4", "0.6.4", False),
        ("local", "", None, False),
        ("proptest", "1", None, True),
        ("libc", "0.2", None, False),
    ]
    assert _told("go.mod", GO) == [
        ("golang.org/x/text", "v0.3.7", "0.3.7", False),
        ("github.com/pkg/errors", "v0.9.1", "0.9.1", False),
    ]
    assert not is_manifest("web/.svc.yaml") and not is_manifest("requirements.md")
    assert key("PyPI", "Zope.Interface") == "zope-interface" and key("Go", "A/B") == "A/B"


BOMBS = [
    ("pyproject.toml", b"a = " + b"[" * 20_000),
    ("pyproject.toml", b"[project]\ndependencies = 3\n[project.optional-dependencies]\nx = 1\n"),
    ("package.json", b"[" * 20_000),
    ("package.json", b'{"dependencies": {"a": 3}}'),
    ("Cargo.toml", b"\xff\xfe"),
    ("package.json", b" " * (MANIFEST_FILE + 1)),
    (".svc.yaml", b"depends: [&a [*a]]"),
]


@pytest.mark.parametrize(("path", "data"), BOMBS, ids=range(len(BOMBS)))
def test_what_cannot_be_read_is_refused(path: str, data: bytes) -> None:
    with pytest.raises(Invalid):
        read(path, data)


def test_names_that_no_terminal_should_show_are_left_out() -> None:
    data = json.dumps({"dependencies": {"a\x1b[31m": "1", "\u202eb": "1", "ok": "1", "x" * 300: "1"}})
    assert [one.name for one in read("package.json", data.encode())] == ["ok"]


@given(
    st.sampled_from(
        ["pyproject.toml", "package.json", "Cargo.toml", "go.mod", "requirements.txt", ".svc.yaml"]
    ),
    st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass")),
)
def test_anything_else_is_read_or_refused(path: str, data: bytes) -> None:
    with contextlib.suppress(Invalid):
        read(path, data)


def _range(*events: dict[str, str]) -> list[Range]:
    return [Range(type="ECOSYSTEM", events=[RangeEvent(**one) for one in events])]


@pytest.mark.parametrize(
    ("ecosystem", "version", "expected"),
    [
        ("PyPI", "1.0", True),
        ("PyPI", "1.5rc1", True),
        ("PyPI", "1.5", False),
        ("PyPI", "2.0", True),
        ("PyPI", "2.1", True),
        ("PyPI", "2.1.post1", False),
        ("PyPI", "nonsense", None),
    ],
)
def test_ranges_of_osv(ecosystem: str, version: str, expected: bool | None) -> None:
    ranges = _range({"introduced": "0"}, {"fixed": "1.5"}, {"introduced": "2.0"}, {"last_affected": "2.1"})
    assert is_affected(ecosystem, version, ranges, []) is expected


def test_semantic_versions_are_ordered_as_their_rules_say() -> None:
    rising = "alpha alpha.1 alpha.beta beta beta.2 beta.11 rc.1"
    versions = [*(f"1.0.0-{one}" for one in rising.split()), "1.0.0", "1.0.1"]
    for place, at in enumerate(versions):
        fixed = _range({"introduced": "0"}, {"fixed": at})
        assert [is_affected("npm", one, fixed, []) for one in versions] == [n < place for n in range(9)]


def test_a_named_version_is_affected_and_git_ranges_are_left_open() -> None:
    assert is_affected("npm", "weird", [], ["weird"]) is True
    assert is_affected("npm", "1.0.0", [], ["2.0.0"]) is False
    assert is_affected("svc", "", [], []) is True
    git = [Range(type="GIT", events=[RangeEvent(introduced="0")])]
    assert is_affected("npm", "1.0.0", git, []) is None


def test_keys_of_very_many_parts_are_refused_before_they_fill_the_memory() -> None:
    """256 KiB of them took more than 16 GB."""
    with pytest.raises(Invalid, match="too many parts"):
        read("pyproject.toml", b"a" + b".a" * 120_000 + b"=1")
    with pytest.raises(Invalid, match="too many parts"):
        read("Cargo.toml", b"[a" + b".a" * 80 + b"]\n" + b"b.c=1\n" * 25_000)


def test_no_more_is_read_than_a_repository_may_have() -> None:
    assert len(read("requirements.txt", b"".join(b"a%d\n" % n for n in range(3000)))) == DEPENDENCIES
    assert read("requirements.txt", b"a" + b"==1," * 60_000) == []
