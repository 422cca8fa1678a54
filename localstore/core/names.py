"""The rules for handles, names of repositories, branches and tags, and addresses of repositories.

Each function checks a text and returns its canonical spelling. It raises Invalid, with the rule that was
broken."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from localstore.core.errors import Invalid
from localstore.core.model.limits import HANDLE_CHARS, REF_NAME_BYTES
from localstore.core.paths import terminal_safe

SCHEME = "svc://"
MANIFEST = ".svc.yaml"  # the file in which a repository says what it is
# Handles stand where pages and routes stand, so no person may be called like one, nor pose as the operator.
RESERVED_HANDLES = frozenset(
    """
    about abuse account accounts admin administrator advisories api app apps assets auth billing blog catalog
    cli cloud compute dataset datasets dev docs document documents download downloads explore favicon.ico
    feed filesync guest health healthz help home host inbox install issues kind legal lib libs license live
    local localhost login logout mail me metrics model modelpack modelpacks models moderator new node nodes
    none null oidc operator org orgs owner people postmaster privacy public pulls ready readyz register
    releases repo repos robots.txt root search security self settings signin signout signup site social
    static status support svc sync system team teams terms token tokens topics undefined user users version
    webhook webhooks webmaster well-known www
    """.split()  # noqa: SIM905 - eighty words read better as a paragraph
)
RESERVED_REPOSITORIES = frozenset({"dev", "new", "settings"})  # words that follow an owner in page addresses

_NAME = re.compile(rf"[a-z0-9](?:[a-z0-9._-]{{0,{HANDLE_CHARS - 2}}}[a-z0-9])?")
NAME_PATTERN = r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(?!\n)$"  # before it is put into lower case
NAME_RULE = (
    f"1 to {HANDLE_CHARS} letters, digits, '.', '_' or '-', starting and ending with a letter or a digit"
)
_HOST = (
    r"(?:(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?|\[[0-9a-f:.]+\])"
    r"(?::[0-9]{1,5})?"
)
_WEB, _GIT = re.compile(r"(?i)https?://"), re.compile(r"(?i)\.git\Z")
TURN_HEADER = "Svc-Turn"  # what an agent calls the turn in which it sends a request
_TURN = re.compile(r"[!-~](?:[ -~]{0,198}[!-~])?")
_REF_FORBIDDEN = frozenset(" ~^:?*[\\")
_SEAL_ID = re.compile(r"[0-9a-f]{64}")


class RepoAddress(NamedTuple):
    """The address of a repository. `host`: the server, with the scheme if the address was a URL; None if the
    address names no server."""

    host: str | None
    owner: str
    name: str


def handle(text: str) -> str:
    """Check the handle of a person or an organisation. Returns it in lower case; raises Invalid if it breaks
    a rule."""
    name = _name(text, "a handle")
    if name in RESERVED_HANDLES:
        raise Invalid(f"the handle '{name}' is reserved; choose another")
    return name


def repository_name(text: str) -> str:
    """Check the name of a repository. Returns it in lower case; raises Invalid if it breaks a rule."""
    name = _name(text, "a repository name")
    if name in RESERVED_REPOSITORIES:
        raise Invalid(f"the repository name '{name}' is reserved; choose another")
    return name


def ref_name(text: str) -> str:
    """Check the name of a branch or tag, and return it. Raises Invalid for names that git-check-ref-format(1)
    refuses, `HEAD`, seal ids, and invisible or reordering characters."""
    fault = _ref_fault(text)
    if fault:
        raise Invalid(f"'{terminal_safe(text[:200])}' is not a valid name of a branch or tag: {fault}")
    return text


def turn(text: str) -> str:
    """Check the name of a turn (the name that an agent gives to a piece of its work), and return it. Raises
    Invalid unless it is 1 to 200 printable ASCII characters without spaces around it."""
    if not _TURN.fullmatch(text):
        raise Invalid("a turn is named by 1 to 200 printable ASCII characters")
    return text


def parse_repo(text: str) -> RepoAddress:
    """Parse the address of a repository: `[HOST/]OWNER/NAME`, `svc://OWNER/NAME` or
    `https://HOST/OWNER/NAME[.git]` (as git uses it). Without https:// a host must have a dot or a port, or be
    localhost: `a/b/c` is refused. Raises Invalid. Reserved words are accepted, because old addresses must
    resolve."""
    if web := _WEB.match(text):
        parts = _GIT.sub("", text[web.end() :].removesuffix("/")).split("/")
        if len(parts) != 3:
            raise Invalid(f"'{terminal_safe(text[:200])}' is not a repository; write https://HOST/OWNER/NAME")
        return _address(f"{web[0].lower()}{_host(parts[0])}", *parts[1:])
    parts = text.removeprefix(SCHEME).split("/")
    if len(parts) not in ((2,) if text.startswith(SCHEME) else (2, 3)):
        raise Invalid(
            f"'{terminal_safe(text[:200])}' is not a repository; "
            f"write [HOST/]OWNER/NAME, {SCHEME}OWNER/NAME or https://HOST/OWNER/NAME"
        )
    *host, owner, name = parts
    if host and host[0].lower() != "localhost" and not any(mark in host[0] for mark in ".:"):
        raise Invalid(
            f"'{terminal_safe(text[:200])}' is not a repository; write OWNER/NAME, or HOST/OWNER/NAME with a "
            "host that has a dot or a port, as node.example"
        )
    return _address(_host(host[0]) if host else None, owner, name)


def _address(host: str | None, owner: str, name: str) -> RepoAddress:
    return RepoAddress(host, _name(owner, "an owner"), _name(name, "a repository name"))


def _name(text: str, what: str) -> str:
    # Only ASCII is lowered: a Kelvin sign must not turn into k.
    name = text.lower() if text.isascii() else text
    if not _NAME.fullmatch(name):
        raise Invalid(f"'{terminal_safe(text[:200])}' is not {what}: {NAME_RULE}")
    if ".." in name:
        raise Invalid(f"'{name}' is not {what}: it may not contain '..'")
    if name.endswith(".git"):
        raise Invalid(f"'{name}' is not {what}: it may not end in '.git'")
    return name


def _host(text: str) -> str:
    host = text.lower() if text.isascii() else text
    if len(host) > 261 or not re.fullmatch(_HOST, host):
        raise Invalid(f"'{terminal_safe(text[:200])}' is not a host name, with or without a port")
    return host


def _ref_fault(text: str) -> str | None:
    if not text:
        return "it is empty"
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        return "it is not valid Unicode"
    if size > REF_NAME_BYTES:
        return f"it is longer than {REF_NAME_BYTES} bytes"
    if text in ("@", "HEAD") or _SEAL_ID.fullmatch(text):
        return "it would be read as something else"
    if text[0] == "-":
        return "it starts with '-'"
    if text[-1] == ".":
        return "it ends in '.'"
    return _ref_character_fault(text) or _ref_component_fault(text)


def _ref_character_fault(text: str) -> str | None:
    for char in text:
        if char in _REF_FORBIDDEN:
            return f"it may not contain '{char}'"
        if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp"):
            return "it holds a control or invisible character"
    return next((f"it may not contain '{pair}'" for pair in ("..", "@{") if pair in text), None)


def _ref_component_fault(text: str) -> str | None:
    for part in text.split("/"):
        if not part:
            return "it starts or ends with '/' or has '//'"
        if part[0] == ".":
            return "a part starts with '.'"
        if part.endswith(".lock"):
            return "a part ends in '.lock'"
    return None


def page_path(kind: str, full_name: str) -> str:
    """The path of a repository's page in the URL of its relay: `/apps/OWNER/NAME`, `/lib/OWNER/NAME` …"""
    return f"/{'apps' if kind == 'app' else kind}/{full_name}"
