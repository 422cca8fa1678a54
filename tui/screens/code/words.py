"""Texts about a repository, such as its counts and its catalog listing, for the overview and the line
mode."""

from __future__ import annotations

from localstore.core.model.listing import Listing
from localstore.core.model.repo import Repo
from localstore.core.words import count
from tui.text import safe

SEARCH = "search files"  # what the key of the search in all files does, in the line of keys


def counts(repo: Repo) -> str:
    """Returns a text that says how many stars, watchers and forks the repository has."""
    numbers = ((repo.stars, "star"), (repo.watchers, "watcher"), (repo.forks, "fork"))
    return ", ".join(count(number, name) for number, name in numbers)


def describe_listing(listing: Listing) -> str:
    """Returns a catalog listing as text: its name, its category, and whether it can be installed."""
    category = f", {safe(listing.category)}" if listing.category else ""
    return f"{safe(listing.name)}{category}: {'' if listing.installable else 'not '}installable"
