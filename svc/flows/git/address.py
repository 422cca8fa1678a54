"""The address from which git clones a repository."""

from __future__ import annotations

from localstore.core.model.repo import Repo


def git_address(repo: Repo, origin: str) -> str | None:
    """The address on this server; None where git cannot clone it. Made here, since people put it into a
    shell: of the server's answer it counts only whether there is one."""
    return None if repo.clone_url is None else f"{origin}/{repo.full_name}.git"
