"""The models of this machine: installed and loaded models, and pulls in the background."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import msgspec
from blake3 import blake3

from localstore.core.errors import Cancelled, UsageError
from localstore.models.errors import BadModel
from localstore.models.gguf import read
from localstore.models.names import parse
from localstore.models.place import llm_home
from localstore.models.store import Installed, Models
from svc.agent.invoke.table import Args, Invocation, command
from svc.flows.llm.port import port_of
from svc.flows.llm.talk import Server, probe
from svc.flows.models import background
from svc.flows.models.background import Download

FOLDERS, FILES = 2_000, 500  # that are looked through for models, and that are answered
_PIECE = 4 << 20


class ModelArgs(Args):
    """Names a model by its `name`, such as alice/qwen:q4_k_m."""

    name: str


class CopyArgs(ModelArgs):
    """Names a model, and the additional name `to` that it is given."""

    to: str


class PortArgs(Args):
    """Names a local LLM server by its `port`. The default port is used if it is left out."""

    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] | None = None


class LoadedModelArgs(PortArgs, kw_only=True):
    """Names a model by its `name`, and by its `port` the local LLM server that has loaded the model."""

    name: str


class PullArgs(ModelArgs):
    """Names a model to pull. With `again`, a model that is already installed is pulled again, to get the
    current version of its repository."""

    again: bool = False


class FolderArgs(Args):
    """Names a folder by its absolute path. If it is left out, the client's current folder is meant."""

    folder: str | None = None


class Model(msgspec.Struct):
    """A model. `context` is the number of tokens that it was trained for. `blobs` has the SHA-256 of its
    files."""

    name: str
    size: int
    architecture: str
    parameters: int
    quantisation: str
    context: int
    modified_at: str
    blobs: list[str]


class File(msgspec.Struct):
    """A GGUF file that could be added to the models of this machine. An answer lists at most 500 files from
    at most 2,000 folders, so more files may exist."""

    path: str
    size: int
    architecture: str
    quantisation: str


class VerificationResult(msgspec.Struct):
    """The result of checking a model's files. `damaged` lists the SHA-256 of the files whose bytes have
    changed."""

    name: str
    intact: bool
    damaged: list[str]


class RemovalResult(msgspec.Struct):
    """The result of removing a model. `freed` is the number of bytes that were freed."""

    name: str
    freed: int


@command("Models")
def model_list(_asked: Invocation, _args: Args) -> list[Model]:
    """The models of this machine"""
    return [_model(installed) for installed in _models().all()]


@command("Models", ModelArgs)
def model_show(_asked: Invocation, args: ModelArgs) -> Model:
    """A model of this machine"""
    return _model(_models().find(parse(args.name)))


@command("Models", FolderArgs)
def model_discover(context: Invocation, args: FolderArgs) -> list[File]:
    """The GGUF files below a folder, which llm_pull can add"""
    root = Path(args.folder) if args.folder is not None else context.folder
    if root is None or not root.is_absolute() or not root.is_dir():
        raise UsageError("folder is the absolute path of one that exists")
    files: list[File] = []
    for number, (place, _, names) in enumerate(os.walk(root)):
        if number == FOLDERS or len(files) >= FILES or context.hung_up():
            break
        files += [file for name in sorted(names) if (file := _file(Path(place, name))) is not None]
    return files[:FILES]


@command("Models", PullArgs)
def model_download(context: Invocation, args: PullArgs) -> Download:
    """Start pulling a model from a repository or registry; called again, returns the progress"""
    home, name = context.host.home.root, parse(args.name)
    state = background.state_of(home, name, _models())
    if state.state == "pulling" or (state.state == "done" and not args.again):
        return state
    return background.start(home, name, context.host.programs.environment, context.server)


@command("Models", ModelArgs)
def model_cancel(context: Invocation, args: ModelArgs) -> Download:
    """End a pull that model_download started; received bytes are kept for the next pull"""
    return background.cancel(context.host.home.root, parse(args.name), _models())


@command("Models", ModelArgs)
def model_delete(_asked: Invocation, args: ModelArgs) -> RemovalResult:
    """Remove a model from this machine"""
    removed, freed = _models().remove(parse(args.name))
    return RemovalResult(str(removed.name), freed)


@command("Models", CopyArgs)
def model_copy(_asked: Invocation, args: CopyArgs) -> Model:
    """Give a model an additional name"""
    models = _models()
    return _model(models.put(parse(args.to), models.find(parse(args.name)).record))


@command("Models", PortArgs)
def model_running(context: Invocation, args: PortArgs) -> list[dict[str, Any]]:
    """The models that the local LLM server has loaded"""
    port = _port(context, args)
    if probe(port) != "llm":
        return []
    return [model for model in Server(port).get("/api/ps").get("models") or [] if isinstance(model, dict)]


@command("Models", LoadedModelArgs)
def model_unload(context: Invocation, args: LoadedModelArgs) -> list[dict[str, Any]]:
    """Unload a model after its current answers; returns the models that stay loaded"""
    name, port = parse(args.name), _port(context, args)
    if probe(port) == "llm":
        Server(port).post("/api/generate", {"model": str(name), "keep_alive": 0, "stream": False})
    else:
        _models().find(name)
    return model_running(context, args)


@command("Models", ModelArgs)
def model_verify(context: Invocation, args: ModelArgs) -> VerificationResult:
    """Whether the bytes of a model are unchanged since they were fetched"""
    models = _models()
    installed = models.find(parse(args.name))
    damaged = []
    for digest, about in zip(installed.record.digests, installed.abouts, strict=True):
        hasher = blake3()
        with models.blob(digest).open("rb") as file:
            while piece := file.read(_PIECE):
                hasher.update(piece)
                if context.hung_up():
                    raise Cancelled
        if hasher.hexdigest() != about.blake3:
            damaged.append(digest)
    return VerificationResult(str(installed.name), not damaged, damaged)


def _models() -> Models:
    return Models(llm_home())


def _port(context: Invocation, args: PortArgs) -> int:
    return port_of(args.port, context.folder or Path("/"), os.environ)


def _model(installed: Installed) -> Model:
    header = installed.about.header
    return Model(
        str(installed.name),
        installed.size,
        header.architecture,
        installed.parameters,
        header.quantisation,
        header.of_architecture("context_length"),
        installed.record.modified_at,
        installed.record.digests,
    )


def _file(path: Path) -> File | None:
    """Read the header of a GGUF file. Returns None if the file is not a GGUF file."""
    if path.suffix.lower() != ".gguf" or not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            header = read(file, size)
    except (BadModel, OSError):
        return None
    return File(str(path), size, header.architecture, header.quantisation)
