from __future__ import annotations

import random
import subprocess

import pytest

from localstore.core import names
from localstore.core.errors import Invalid

REF_PIECES = [
    "a",
    "b",
    "/",
    ".",
    "..",
    ".lock",
    "@",
    "{",
    "~",
    "^",
    ":",
    "?",
    "*",
    "[",
    "\\",
    " ",
    "\x7f",
    "-",
    "é",
    "lock",
    "@{",
]


@pytest.mark.parametrize("text", ["a", "A", "alice", "a.b-c_d", "0x", "a" * 64])
def test_handles_are_lowered(text: str) -> None:
    assert names.handle(text) == text.lower()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-a",
        "a-",
        ".a",
        "a.",
        "a..b",
        "a.git",
        "A.GIT",
        "a/b",
        "a b",
        "a" * 65,
        "é",
        "\u212aelvin",
        "a\n",
        "a\x1b[m",
    ],
)
def test_bad_names_say_the_rule(text: str) -> None:
    for check in (names.handle, names.repository_name):
        with pytest.raises(Invalid, match=r"letters, digits|may not") as caught:
            check(text)
        assert "\x1b" not in caught.value.detail


def test_reserved_words() -> None:
    words = (
        "api apps auth cli settings health ready readyz version app lib model modelpack dataset me new admin"
    )
    for word in words.split():
        with pytest.raises(Invalid, match="reserved"):
            names.handle(word.upper())
    assert names.repository_name("API") == "api"
    with pytest.raises(Invalid, match="reserved"):
        names.repository_name("settings")


def test_ref_names_agree_with_git() -> None:
    rng = random.Random(4)
    made = {"".join(rng.choice(REF_PIECES) for _ in range(rng.randint(1, 5))) for _ in range(250)}
    for text in sorted(made):
        # As a full ref, so that git neither expands @{-1} nor applies its rules for branches.
        git = subprocess.run(["git", "check-ref-format", f"refs/heads/{text}"], check=False).returncode == 0
        ours = _accepts(text)
        assert ours == (git and text != "@" and not text.startswith("-")), text


def _accepts(text: str) -> bool:
    try:
        return names.ref_name(text) == text
    except Invalid:
        return False


@pytest.mark.parametrize(
    "text", ["", "HEAD", "0" * 64, "a" * 201, "a\u202eb", "a\u200cb", "a\n", "\ud800", "-x", "a\x85"]
)
def test_ref_names_beyond_git(text: str) -> None:
    assert not _accepts(text)


@pytest.mark.parametrize(
    "text", ["main", "feature/x", "v1.0", "upstream/20260101-0000", "é/日本", "a@b", "main-"]
)
def test_good_ref_names(text: str) -> None:
    assert _accepts(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Alice/Tool", (None, "alice", "tool")),
        ("svc://alice/tool", (None, "alice", "tool")),
        ("Example.org/alice/tool", ("example.org", "alice", "tool")),
        ("localhost:8000/alice/tool", ("localhost:8000", "alice", "tool")),
        ("localhost/alice/tool", ("localhost", "alice", "tool")),
        ("node:8000/alice/tool", ("node:8000", "alice", "tool")),
        ("https://node/alice/tool", ("https://node", "alice", "tool")),
        ("[::1]:8000/alice/tool", ("[::1]:8000", "alice", "tool")),
        ("apps/tool", (None, "apps", "tool")),
    ],
)
def test_repository_addresses(text: str, expected: tuple[str | None, str, str]) -> None:
    assert names.parse_repo(text) == expected


def test_a_word_without_a_dot_or_a_port_is_no_host() -> None:
    with pytest.raises(Invalid, match="write OWNER/NAME, or HOST/OWNER/NAME with a host that has a dot"):
        names.parse_repo("a/b/c")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "alice",
        "alice/",
        "/tool",
        "a/b/c",
        "node/alice/tool",
        "a/b/c/d",
        "svc://alice",
        "svc://h/a/b",
        "https://x.org/a/b/c",
        "a/..",
        "ho st/a/b",
        *("user@host/a/b", "-h/a/b", "h:/a/b", "alice/tool.git", "alice/tool\n"),
    ],
)
def test_bad_addresses(text: str) -> None:
    with pytest.raises(Invalid):
        names.parse_repo(text)
