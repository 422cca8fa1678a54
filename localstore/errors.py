"""Errors of working copies: raised on this machine, never sent over the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from localstore.core.errors import ClientError
from localstore.core.paths import terminal_safe


class NotLinked(ClientError):
    """The folder is not linked to a repository."""

    code = "not_linked"

    def __init__(self, folder: str = "this folder") -> None:
        super().__init__(f"{folder} is not linked to a repository; run: svc repo init OWNER/NAME")


class FolderGone(ClientError):
    """The current folder was deleted."""

    code = "folder_gone"

    def __init__(self) -> None:
        super().__init__("the folder that you stand in does not exist any more; go to another one: cd FOLDER")


class LocalEdits(ClientError):
    """A command (`command`) refuses to run, because this folder has edits that are not pushed. `paths`: the
    edited files that it would overwrite. If `beside` is set, it would overwrite none of them, and `paths` has
    all edited files."""

    code = "local_edits"

    def __init__(self, paths: list[str], command: str = "pull", beside: bool = False) -> None:
        names = ", ".join(paths[:5]) + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")
        what = f"this folder has edits that are not pushed, in {names}"
        if not beside:
            what = f"{command} would overwrite local edits in {names}"
        merges = "keep" if beside else "merge"
        super().__init__(
            f"{what}; run: svc {command} --merge to {merges} them "
            f"(svc {command} --force to move them to the trash)",
            paths=paths,
        )


class BranchGone(ClientError):
    """The branch that the folder is on was deleted. `base`: the folder's last seal."""

    code = "branch_gone"

    def __init__(self, branch: str, base: str | None, default: str) -> None:
        start = base[:12] if base else default
        super().__init__(
            f"branch {branch} was deleted on the server; this folder keeps its files and your edits. "
            f"Switch to another branch: svc switch {default}; or make the branch again: "
            f"svc repo branch {branch} --from {start}, then: svc pull --merge",
            branch=branch,
        )


class BranchReplaced(ClientError):
    """The branch that the folder is on was deleted, and another one has its name now."""

    code = "branch_replaced"

    def __init__(self, branch: str) -> None:
        super().__init__(
            f"branch {branch} was deleted and made again: it is another branch now, and this folder is still "
            "on the old one; nothing was sent. To take the folder and its edits onto the new one, run: "
            "svc pull --merge",
            branch=branch,
        )


class FolderShowsSeal(ClientError):
    """The folder shows a past seal, not a branch, so nothing can be sent from it."""

    code = "read_only_look"

    def __init__(self, seal: str, branch: str) -> None:
        short = seal[:12]
        super().__init__(
            f"this folder shows the seal {short}, which never changes; nothing was sent. To keep edits on a "
            f"branch of their own: svc repo branch NAME --from {short}, then: svc switch NAME; "
            f"to go back: svc switch {branch}",
            seal=seal,
        )


class UnpulledSeal(ClientError):
    """The branch has a seal that this folder has not pulled."""

    code = "unpulled_seal"

    def __init__(self, branch: str, head: str | None) -> None:
        super().__init__(
            f"{branch} has a seal you have not pulled ({(head or 'none')[:12]}); run: svc pull "
            "(with local edits: svc pull --merge), then push again",
            head=head,
        )


class NotSealed(ClientError):
    """Another seal was made on the branch after this push sent its edits and before it sealed them. The edits
    are on the live branch, but not sealed."""

    code = "not_sealed"

    def __init__(self, branch: str) -> None:
        super().__init__(
            f"{branch} was sealed by somebody else just now: your edits are live, not sealed; "
            "run: svc pull, then push again"
        )


class EditsConflict(ClientError):
    """A pushed edit cannot be merged with an edit on the branch. `conflicts`: the conflict copies.
    `foretold`: this was a dry run, and `conflicts` are the copies that a real run would make."""

    code = "edits_conflict"

    def __init__(self, path: str, by: str | None, conflicts: Sequence[Any], foretold: bool = False) -> None:
        self.conflicts = conflicts
        others = f" (and {len(conflicts) - 1} more)" if len(conflicts) > 1 else ""
        whose = f"@{by}'s live edit" if by else "a live edit by others"
        stands = "would not be sealed" if foretold else "not sealed"
        after = "run: svc pull --merge, " if foretold else ""
        super().__init__(
            f"{stands}: {path}{others} conflicts with {whose}; {after}look at both files, then push again"
        )


class MergeOpen(ClientError):
    """A merge was written into this folder and is not sealed yet. `name`: the merged ref."""

    code = "merge_open"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the merge of {name} is not sealed yet; finish it: svc merge --continue; "
            "or undo it: svc merge --abort",
            name=name,
        )


class MergeUnresolved(ClientError):
    """This folder has unresolved conflicts of a merge, at `paths`."""

    code = "merge_unresolved"

    def __init__(self, name: str, paths: list[str]) -> None:
        more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
        conflict = "conflicts" if len(paths) == 1 else "conflict"
        super().__init__(
            f"not sealed: {', '.join(paths[:3])}{more} {conflict} with {name}; run: svc resolve {paths[0]}, "
            "then: svc merge --continue",
            paths=paths,
        )


class ConflictsUnresolved(ClientError):
    """This folder has conflict copies that are not resolved yet and are not on the branch. `paths`: the files
    in conflict."""

    code = "conflicts_unresolved"

    def __init__(self, paths: list[str], kept_as: str) -> None:
        more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
        conflict = "is in conflict" if len(paths) == 1 else "are in conflict"
        super().__init__(
            f"nothing was sent: {', '.join(paths[:3])}{more} {conflict}, and your version is {kept_as}; "
            f"run: svc resolve {paths[0]}, then push again (to keep both files, rename the copy)",
            paths=paths,
        )


class MergeInterrupted(ClientError):
    """A merge was interrupted while it was written to this folder."""

    code = "merge_interrupted"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the merge of {name} was interrupted and is here in part; "
            "undo it: svc merge --abort, then merge again"
        )


class NoMerge(ClientError):
    """No merge is open in this folder."""

    code = "no_merge"

    def __init__(self) -> None:
        super().__init__("no merge is open in this folder; begin one: svc merge BRANCH")


class MergeCollides(ClientError):
    """A merge would change files with unsealed edits, at `paths`."""

    code = "merge_collides"

    def __init__(self, name: str, paths: list[str]) -> None:
        names = ", ".join(paths[:5]) + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")
        super().__init__(
            f"merging {name} would change {names}, which no seal holds as they are here; nothing was "
            "changed; seal them first: svc push",
            paths=paths,
        )


class LinkDamaged(ClientError):
    """A file in `.svc/` cannot be read."""

    code = "link_damaged"

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(
            f"{path} is damaged ({reason}); move the .svc folder away and run: svc repo init OWNER/NAME "
            "(your files stay as they are)"
        )


class CopyBusy(ClientError):
    """Another process owns this working copy and did not end in time. `owner`: that process."""

    code = "copy_busy"

    def __init__(self, folder: object, owner: Any) -> None:
        self.owner = owner
        remedy = f"wait for it, or end it (kill {owner.pid})" if owner.pid else "wait for it or end it"
        super().__init__(
            f"{owner} is working in {folder}; {remedy}, then try again",
            pid=owner.pid,
            since=owner.since,
            command=owner.command,
        )


class FolderTurned(ClientError):
    """While a command waited for the folder, the folder was switched to another branch, seal or
    repository."""

    code = "folder_turned"

    def __init__(self, folder: object, now: str) -> None:
        super().__init__(
            f"{folder} was turned to {now} while this waited for it; nothing was done; look, then try again"
        )


class NotWatchable(ClientError):
    """The folder is on a file system that does not report changes."""

    code = "not_watchable"


class FolderNotEmpty(ClientError):
    """The target folder of a clone is not empty."""

    code = "folder_not_empty"

    def __init__(
        self, folder: object, instead: str = "choose another folder, or link it: svc repo init OWNER/NAME"
    ) -> None:
        super().__init__(f"{folder} is not empty; {instead}")


class CloneIncomplete(ClientError):
    """Files of a clone differ from the seal, at `paths`."""

    code = "clone_incomplete"

    def __init__(self, folder: object, paths: list[str]) -> None:
        names = ", ".join(map(terminal_safe, paths[:3])) + (
            f" and {len(paths) - 3} more" if len(paths) > 3 else ""
        )
        super().__init__(
            f"{folder} does not hold what was cloned: {names} changed or vanished while it was written. "
            "Run the same clone again; it writes what is missing, and keeps what you changed under another "
            "name",
            paths=paths,
        )


class DiskError(ClientError):
    """A local file could not be read or written. The message contains the file, the reason and the remedy."""

    code = "disk_trouble"


class NotWatched(ClientError):
    """The folder is not watched by the agent."""

    code = "not_watched"

    def __init__(self, folder: str) -> None:
        super().__init__(f"{folder} is not watched; run: svc watch", folder=folder)


class AgentMissing(ClientError):
    """The agent did not start. `words`: its error output."""

    code = "agent_missing"

    def __init__(self, words: str) -> None:
        super().__init__(f"the agent did not start ({words}); agent.log in SVC_HOME says more")
