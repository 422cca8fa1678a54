"""Feature flags. Each is on or off from the start, the same for everybody, and the client-config route
reports it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from localstore.core.errors import Invalid

ConditionalPut = Literal["native", "emulated"]

# Reference values of the service specification, Feature flags.
DEFAULTS: Mapping[str, bool] = {
    "TR_REPOS_ENABLED": True,
    "TR_MIRROR_SYNC_ENABLED": True,
    "TR_GIT_CLONE_ENABLED": True,
    "TR_FORK_ENABLED": True,
    "TR_TIME_MACHINE_ENABLED": True,
    "TR_REPO_SEALING": True,
    "TR_REPO_MERGE_ENABLED": False,
    "TR_REPO_LIVE_TEXT": True,
    "TR_SOCIAL_ENABLED": False,
}
# Flags that switch something within routes of another flag; every other one is behind routes or not built.
TIME_MACHINE = "TR_TIME_MACHINE_ENABLED"
WITHOUT_ROUTES = frozenset({"TR_REPO_MERGE_ENABLED", TIME_MACHINE})
CONDITIONAL_PUT = "TR_LAKEFS_S3_CONDITIONAL_PUT"

_ON, _OFF = frozenset({"1", "true", "on", "yes"}), frozenset({"0", "false", "off", "no"})


def parse_switch(name: str, value: str | None, default: bool) -> bool:
    """Whether the environment variable `name` switches something on. `value`: its value; if it is None or
    empty, the result is `default`. Raises Invalid unless the value is a spelling of on or off, such as `yes`
    or `0`."""
    if value is None or value == "":
        return default
    word = value.strip().lower()
    if word not in _ON | _OFF:
        raise Invalid(f"{name}={value!r} is neither on (1, true, on, yes) nor off (0, false, off, no)")
    return word in _ON


@dataclass(frozen=True, slots=True)
class Flags:
    values: Mapping[str, bool]
    conditional_put: ConditionalPut = "emulated"

    @classmethod
    def read(cls, get: Callable[[str], str | None]) -> Flags:
        """Read the feature flags. `get`: returns the value of an environment variable or None. Raises Invalid
        for a value that does not mean on or off."""
        put = get(CONDITIONAL_PUT) or "emulated"
        if put not in ("native", "emulated"):
            raise Invalid(f"{CONDITIONAL_PUT}={put!r} is neither native nor emulated")
        values = {name: parse_switch(name, get(name), default) for name, default in DEFAULTS.items()}
        return cls(values, "native" if put == "native" else "emulated")

    def on(self, name: str) -> bool:
        """Whether the flag is on. If TR_REPOS_ENABLED is off, the flags TR_REPO_*, TR_FORK_ENABLED and
        TR_TIME_MACHINE_ENABLED count as off too. Raises KeyError for an unknown flag, which is a bug of the
        caller."""
        return self.values[name] and (not _is_of_repos(name) or self.values["TR_REPOS_ENABLED"])


def _is_of_repos(name: str) -> bool:
    """Whether the flag counts as off if TR_REPOS_ENABLED is off."""
    return name.startswith("TR_REPO_") or name in ("TR_FORK_ENABLED", TIME_MACHINE)
