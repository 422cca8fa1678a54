"""Images of watched folders, of other linked folders of this machine, and of repositories on a server.

The result of a scan is stored in SVC_HOME, so that images can be listed offline and without another scan."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec

from localstore import known
from localstore.core import paths
from localstore.core.errors import ClientError, Invalid, NotFound, TooLarge, UsageError
from localstore.core.ignore import matcher
from localstore.core.ignore.matcher import SOURCES
from localstore.core.model import history, ref
from localstore.core.model.history import TreeQuery
from localstore.core.model.limits import MIB, in_words
from localstore.core.model.repo import Repo
from localstore.core.names import parse_repo
from localstore.core.times import rfc3339
from localstore.folder.files import Files
from localstore.folder.walk_rules import LISTED, NESTED, fault_of, rules_in
from svc.agent.invoke.picture import Metadata, Refusal, Thumbnail
from svc.agent.invoke.table import Args, Invocation, command
from svc.api import Api
from svc.http.bounds import Deadline, within

KINDS = {
    **{suffix: suffix for suffix in ("png", "gif", "webp", "bmp")},
    **{"jpg": "jpeg", "jpeg": "jpeg", "tif": "tiff", "tiff": "tiff"},
}
IMAGES_MAX = 50_000  # of one place
IMAGE_BYTES = 64 * MIB
DEEP = 64  # folders below each other
CALL_SECONDS = 60.0
_SPACE = "gallery"
_PICTURE = "svc.agent.invoke.picture"
T = TypeVar("T", Metadata, Thumbnail)
Kind = Literal["png", "jpeg", "gif", "webp", "bmp", "tiff"]


class Image(msgspec.Struct):
    """An image in a folder or repository. `place` is the folder's path, or OWNER/NAME of the repository.
    `modified_at` is None for an image in a repository."""

    place: str
    path: str
    kind: str
    size: int
    modified_at: str | None = None


class ScanResult(msgspec.Struct):
    """The result of a scan of one folder or repository. `complete` is False if it has more than IMAGES_MAX
    images, so that some are missing."""

    place: str
    images: int
    bytes: int
    complete: bool


class GalleryArgs(Args, kw_only=True):
    """Arguments that name the place whose images are wanted. It is a linked `folder` (absolute path), or the
    head of the default branch of a `repo` (OWNER/NAME). If both are left out, all linked folders are
    meant."""

    folder: str | None = None
    repo: str | None = None


class ListArgs(GalleryArgs, kw_only=True):
    """Arguments for listing images of a place: at most `limit` images, sorted by path. With `kind`, only
    images of this kind are listed. With `after`, a path, only images whose paths come later in the order are
    listed."""

    kind: Kind | None = None
    after: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1_000


class ImageArgs(GalleryArgs, kw_only=True):
    """Names one image by its `path` in a folder or repository. The folder or the repository must be named,
    too."""

    path: str


class ThumbnailArgs(ImageArgs, kw_only=True):
    """Names an image of which a thumbnail is wanted. `size` is the thumbnail's largest width and height in
    pixels."""

    size: Annotated[int, msgspec.Meta(ge=16, le=1024)] = 256


@command("Gallery", GalleryArgs)
def gallery_scan(context: Invocation, args: GalleryArgs) -> list[ScanResult]:
    """Look for images, and store the result"""
    return [_scan(context, place, args.repo is not None)[0] for place in _places(context, args)]


@command("Gallery", ListArgs)
def gallery_list(context: Invocation, args: ListArgs) -> list[Image]:
    """The images from the last scan; scans places that were never scanned"""
    page: list[Image] = []
    for place in _places(context, args):
        with closing(_store(context)) as store:
            stored = store.get(_SPACE, _key(context, place, args.repo is not None), list[Image])
        images = stored[0] if stored is not None else _scan(context, place, args.repo is not None)[1]
        chosen = (image for image in images if args.kind in (None, image.kind))
        page += [image for image in chosen if args.after is None or image.path > args.after]
        if len(page) >= args.limit:
            break
    return page[: args.limit]


@command("Gallery", ImageArgs)
def gallery_get_metadata(context: Invocation, args: ImageArgs) -> Metadata:
    """Kind, width and height of an image, its frames, and the time and camera of the picture"""
    return _read_picture(context, args, ["metadata"], Metadata)


@command("Gallery", ThumbnailArgs)
def gallery_thumbnail(context: Invocation, args: ThumbnailArgs) -> Thumbnail:
    """A small PNG of an image, upright, in base64"""
    return _read_picture(context, args, ["thumbnail", str(args.size)], Thumbnail)


def _places(context: Invocation, args: GalleryArgs) -> list[str]:
    """Return the folders, or the one repository, that the arguments name. Raises UsageError if they name both
    a folder and a repository, and NotLinked if the folder is not linked."""
    if args.folder is not None and args.repo is not None:
        raise UsageError("a folder and a repository are two places; name one")
    if args.repo is not None:
        named = parse_repo(args.repo)
        return [f"{named.owner}/{named.name}"]
    watched = [state.folder for state in context.host.states()]
    linked = [record.folder for _, record in context.host.home.records()]
    every = sorted({folder for folder in (*watched, *linked) if Path(folder, ".svc").is_dir()})
    if args.folder is None:
        return every
    if args.folder not in every:
        from localstore.errors import NotLinked

        raise NotLinked(args.folder)
    return [args.folder]


def _scan(context: Invocation, place: str, on_server: bool) -> tuple[ScanResult, list[Image]]:
    images: list[Image] = []
    complete = True
    for image in _on_server(context, place) if on_server else _on_disk(place):
        if len(images) == IMAGES_MAX:
            complete = False
            break
        images.append(image)
    images.sort(key=lambda image: image.path)
    with closing(_store(context)) as store:
        store.put(_SPACE, _key(context, place, on_server), images)
    return ScanResult(place, len(images), sum(image.size for image in images), complete), images


def _store(context: Invocation) -> known.Store:
    return known.Store(context.host.home.root / known.FILE)


def _key(context: Invocation, place: str, on_server: bool) -> str:
    return f"{context.host.reader(context.server).http.origin}/{place}" if on_server else place


def _on_disk(root: str) -> Iterator[Image]:
    """Yields the images below a folder, except images that are ignored (by `.gitignore` and the like)."""
    open_ = [("", matcher.root(_rules(root, "")))]
    while open_:
        prefix, scope = open_.pop()
        try:
            with os.scandir(f"{root}/{prefix}") as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError:
            continue
        if prefix and any(entry.name in NESTED for entry in entries):
            continue  # a repository of its own
        for entry in entries:
            path = f"{prefix}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in NESTED and path.count("/") < DEEP and not scope.prune(entry.name):
                    open_.append((f"{path}/", scope.enter(entry.name, _rules(root, f"{path}/"))))
                continue
            kind = kind_of(path)
            if kind is None or fault_of(path) is not None or scope.is_ignored(entry.name, False):
                continue
            try:
                info = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISREG(info.st_mode):
                moment = rfc3339(int(info.st_mtime))
                yield Image(root, path, kind, info.st_size, moment)


def _rules(root: str, prefix: str) -> dict[str, str]:
    try:
        opened = os.open(f"{root}/{prefix}", LISTED)
    except OSError:
        return {}
    try:
        return rules_in(opened, prefix, SOURCES)
    except TooLarge:
        return {}  # a walk says so
    finally:
        os.close(opened)


def kind_of(path: str) -> str | None:
    """Return the kind of image that the file name implies; None if it is not the name of an image."""
    return KINDS.get(path.rpartition(".")[2].lower()) if "." in path else None


def _on_server(context: Invocation, place: str) -> Iterator[Image]:
    with within(Deadline(CALL_SECONDS)):
        api = context.host.reader(context.server)
        repo, head = _repository(api, place)
        tree = api.send(history.TREE, query=TreeQuery(recursive=True), id=repo.id, sha=head)
    for entry in tree.entries:
        kind = kind_of(entry.path)
        if kind is not None and entry.kind != "dir":
            yield Image(place, entry.path, kind, entry.size)


def _repository(api: Api, place: str) -> tuple[Repo, str]:
    """Return the repository OWNER/NAME, and the id of the newest seal of its default branch. Raises NotFound
    if the branch has no seal."""
    owner, _, name = place.partition("/")
    repo = api.repo.find(owner, name)
    head = api.send(ref.GET, id=repo.id, type="branch", name=repo.default_branch).head
    if head is None:
        raise NotFound(f"nothing is sealed in {place} yet")
    return repo, head


def _read_picture(context: Invocation, args: ImageArgs, words: list[str], kind: type[T]) -> T:
    if args.folder is None and args.repo is None:
        raise UsageError("name the place of the image: folder, or repo")
    place, path = _places(context, args)[0], paths.check(args.path)
    raw = _from_server(context, place, path) if args.repo is not None else _from_disk(place, path)
    output = context.host.programs.run(_PICTURE, words, raw, context.host.home.root, context.hung_up)
    try:
        return msgspec.json.decode(output, type=kind)
    except msgspec.ValidationError:
        why = msgspec.json.decode(output, type=Refusal).error
        raise Invalid(f"{path} is not an image that svc can read: {why}") from None


def _from_disk(folder: str, path: str) -> bytes:
    with closing(Files(Path(folder))) as files:
        if files.stat(path) is None:
            raise ClientError(f"there is no file {path} in {folder}")
        raw = files.read_up_to(path, IMAGE_BYTES)
    if raw is None:
        raise TooLarge(f"{path} is not a file, or has more than {in_words(IMAGE_BYTES)}")
    return raw


def _from_server(context: Invocation, place: str, path: str) -> bytes:
    with within(Deadline(CALL_SECONDS)):
        api = context.host.reader(context.server)
        repo, head = _repository(api, place)
        blob = api.send(history.BLOB, id=repo.id, sha=head, path=path)
        if blob.content is not None:
            return base64.b64decode(blob.content) if blob.encoding == "base64" else blob.content.encode()
        if blob.size > IMAGE_BYTES or blob.kind == "chunked":
            raise TooLarge(f"{path} has {blob.size} bytes; an image has at most {in_words(IMAGE_BYTES)}")
        return api.payload.get(repo.id, bytes.fromhex(blob.blake3), IMAGE_BYTES)
