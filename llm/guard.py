"""Decides which requests are accepted: those of programs on this machine, and of web pages that were loaded
from it.

A page of any site can send requests to 127.0.0.1, and any site can make its name resolve to that address. So
the header Host must name this machine, and an Origin of another site is refused.
"""

from __future__ import annotations

import re

from llm.problem import Refused

_LOCAL = r"(?:localhost|[a-z0-9-]+\.localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])"
_HOST = re.compile(rf"{_LOCAL}(?::[0-9]{{1,5}})?", re.IGNORECASE)
_ORIGIN = re.compile(rf"https?://{_LOCAL}(?::[0-9]{{1,5}})?", re.IGNORECASE)
_OF_APPS = ("app://", "file://", "tauri://", "vscode-webview://", "vscode-file://")
_METHODS = "GET, POST, DELETE, HEAD, OPTIONS"


def require_local(host: str, origin: str | None) -> None:
    """Raise Refused if the headers Host or Origin name another machine. `origin`: None if the request has no
    Origin header."""
    if not _HOST.fullmatch(host):
        raise Refused(
            403, f"the Host {host[:100]!r} is not this machine; ask http://localhost or http://127.0.0.1"
        )
    if origin is not None and not (_ORIGIN.fullmatch(origin) or origin.startswith(_OF_APPS)):
        raise Refused(
            403, f"pages of {origin[:100]!r} may not use this server; only pages of this machine and apps may"
        )


def headers_for(origin: str | None) -> dict[str, str]:
    """Return the response headers that let a page of this origin read the answer; none if the request has no
    Origin header. The origin must have passed `require_local`."""
    if origin is None:
        return {}
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Methods": _METHODS,
        "Access-Control-Allow-Headers": "Authorization, Content-Type, Accept, User-Agent, X-Requested-With, "
        "anthropic-version, x-api-key, x-stainless-lang, x-stainless-package-version, x-stainless-os, "
        "x-stainless-arch, x-stainless-runtime, x-stainless-runtime-version, x-stainless-retry-count, "
        "x-stainless-timeout, x-stainless-helper-method, x-stainless-async",
        "Access-Control-Max-Age": "43200",
        "Vary": "Origin",
    }
