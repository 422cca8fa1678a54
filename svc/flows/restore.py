"""`svc restore`: writes files as they are in a seal. The files that are replaced are moved to the trash."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from localstore.core.errors import Conflict, NotFound, ServerMisbehaved
from localstore.core.paths import is_inside, parents
from localstore.core.pathspec import matching, without_match
from localstore.folder.files import Content
from localstore.record.database import SealedFile
from localstore.sync.settle import in_the_way, recover, replace
from localstore.sync.transfer.chunked_download import clear, download
from localstore.sync.trash import move_to_trash
from localstore.sync.withdraw import not_held
from localstore.sync.working_copy import WorkingCopy
from svc.flows.common import tree_of
from svc.flows.executable import mark


class RestoreResult(msgspec.Struct):
    """The result of a restore.

    `paths` are the written files. `removed` are files of the branch that the seal lacks. `kept` are new
    files, which stay. `trash` is the folder with the replaced files, or None if there are none. `on_the_way`
    are the paths of edits that an earlier command has sent without getting an answer, and that the restore
    has undone. The caller withdraws these edits (`take_back`)."""

    paths: list[str] = msgspec.field(default_factory=list)
    removed: list[str] = msgspec.field(default_factory=list)
    kept: list[str] = msgspec.field(default_factory=list)
    trash: Path | None = None
    on_the_way: list[str] = msgspec.field(default_factory=list)


def restore(
    copy: WorkingCopy,
    paths: Sequence[str],
    seal: str | None = None,
    agreed: Callable[[RestoreResult], None] = lambda _: None,
) -> RestoreResult:
    """Write the files `paths`, or everything below these folders, as they are in `seal`. If it is None, the
    folder's last seal is used. For the branch this is an ordinary edit. If a seal is named, files that the
    branch has and the seal lacks are removed.

    `agreed` is called with the plan before anything changes, and may raise to prevent it. Raises NotFound for
    a path that the seal lacks, Conflict if a new file or directory is where a file must be written."""
    recover(copy)
    tree = tree_of(copy, seal)
    scan = copy.scan()
    tracked = {*copy.entries, *copy.db.read_sealed()} if seal is not None else set()
    removed = sorted(
        path for path in tracked if path not in tree and path in scan.files and matching(path, paths)
    )
    chosen = {path: file for path, file in tree.items() if matching(path, paths)}
    for missing in without_match([*chosen, *removed], paths):
        raise NotFound(f"{missing} is not in this seal; see: svc status")
    differing = {path: file for path, file in chosen.items() if copy.digest_on_disk(path) != file.digest}
    untracked = (
        sorted(
            path for path in scan.files if path not in tree and path not in tracked and matching(path, paths)
        )
        if seal is not None
        else []
    )
    require_room(copy, differing, removed)
    done = RestoreResult(sorted(differing), removed, untracked)
    agreed(done)
    done.trash = replace_files(
        copy, contents_of(copy, differing), {p: f.digest for p, f in differing.items()}, removed
    )
    done.on_the_way = sorted({update.path for update in not_held(copy)})
    return done


def require_room(copy: WorkingCopy, targets: Iterable[str], leaving: Iterable[str]) -> None:
    """Raise Conflict, which names the obstacle, if one of the `targets` cannot be written. An obstacle is a
    link or another special file at the path, a file or link in the place of a parent folder, or a directory
    with files at the path. Files in `leaving` do not count, because they are moved away."""
    going = set(leaving)
    targets = list(targets)
    for candidate in sorted({place for path in targets for place in (*parents(path), path)}):
        if copy.files.is_special(candidate):
            blocked = next(path for path in targets if path == candidate or is_inside(path, candidate))
            raise in_the_way(blocked)
    files = copy.scan().files
    folders = {above for path in files if path not in going for above in parents(path)}
    for path in targets:
        above = next(
            (candidate for candidate in parents(path) if candidate in files and candidate not in going), None
        )
        if above is not None or path in folders:
            blocking = above or next(
                candidate for candidate in files if is_inside(candidate, path) and candidate not in going
            )
            raise Conflict(
                f"{blocking} is in the way of {path}; move it away, then try again; nothing was changed"
            )


def replace_files(
    copy: WorkingCopy,
    contents: Iterator[tuple[str, Content]],
    digests: Mapping[str, bytes],
    removed: Sequence[str],
) -> Path | None:
    """Remove the files `removed`, and write the `contents`. Returns the trash folder with the replaced files;
    None if there were none. `digests` has the BLAKE3 of the content for each path."""
    trash = move_to_trash(copy, list(removed))
    for path in removed:
        copy.files.prune(path)
    for path, content in contents:
        trash = replace(copy, path, digests[path], content, trash)
    copy.files.forget()
    mark(copy, digests)
    clear(copy)
    return trash


def contents_of(copy: WorkingCopy, files: Mapping[str, SealedFile]) -> Iterator[tuple[str, Content]]:
    """Yields (path, content) of these files of a seal."""
    for path, file in files.items():
        if file.kind == "chunked":
            yield path, download(copy, file.digest, file.size, near=path)
            continue
        data = copy.objects.get(file.digest)
        if data is None:
            fetched = dict(copy.fetch({file.digest: file.size}, keep=file.kind == "text"))
            data = fetched.get(file.digest)
        if data is None:
            raise ServerMisbehaved(f"the server did not send {path}; try again")
        yield path, data
