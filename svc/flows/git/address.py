"""The address from which git clones a repository."""

from __future__ import annotations

from localstore.core.model.repo import Repo


def git_address(repo: Repo, origin: str) -> str | None:
    """Return the address from which git clones the repository; None if git cannot clone it. The address is
    computed from the origin, not taken from the server's answer, because people paste it into a shell."""
    return None if repo.clone_url is None else f"{origin}/{repo.full_name}.git"
