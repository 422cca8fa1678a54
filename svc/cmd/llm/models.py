"""`svc llm pull|list|show|rm|cp`: the models installed on this machine."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from localstore.core.errors import UsageError
from localstore.models.names import parse
from localstore.models.place import llm_home
from localstore.models.store import Installed, Models
from svc.cmd.frame.context import Ctx
from svc.console import Column, answers
from svc.console.table import size
from svc.flows.models.local import HOW, file_at, is_file, name_of, pull_file


class ModelRow(msgspec.Struct, kw_only=True):
    """An installed model. `how` says how its file was added: copied, or shared by a reflink or hard link.
    `context` is the number of tokens that the model was trained for."""

    name: str
    size: int
    architecture: str
    parameters: int
    quantisation: str
    context: int
    how: str
    source: str
    sha256: str
    blake3: str
    modified_at: str
    template: bool
    license: str


COLUMNS = (
    Column("name", kind="name"),
    Column("size", kind="size"),
    Column("architecture"),
    Column("quantisation"),
    Column("context"),
    Column("how", spare=1),
    Column("modified_at", kind="time"),
)
SHOWN = (
    Column("name", kind="name"),
    Column("size", kind="size"),
    Column("architecture"),
    Column("parameters"),
    Column("quantisation"),
    Column("context"),
    Column("template"),
    Column("license", kind="line"),
    Column("how"),
    Column("source"),
    Column("sha256"),
    Column("blake3"),
    Column("modified_at", kind="time"),
)
Name = Annotated[str, typer.Argument(metavar="MODEL", help="Its name, such as tiny or alice/qwen:q4_k_m")]


def models_of(ctx: Ctx) -> Models:
    return Models(llm_home(ctx.obj.environment))


@answers(COLUMNS, ModelRow)
def pull(
    ctx: Ctx,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|NAME", help="A GGUF file, or [HOST/]OWNER/NAME[:TAG] of a server or registry"
        ),
    ],
    name: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Its name here, instead of its own")
    ] = None,
    projector: Annotated[
        str | None,
        typer.Option("--projector", metavar="FILE", help="The GGUF file that lets the model see pictures"),
    ] = None,
) -> None:
    """Take a model into the cache: from a file, a repository or a registry

    OWNER/NAME is a repository on your server. Its newest seal is verified, and only bytes that no installed
    model has are fetched. TAG is the end of a file's name (q4_k_m), a folder, or an entry under `models` in
    the repository's .svc.yaml. Without TAG, the `default_model` that .svc.yaml names is pulled, or else the
    only model. hf.co/OWNER/NAME:TAG and names without an owner come from registries. An interrupted pull
    continues where it stopped.

    A FILE is not copied if the file system can share its bytes, by a reflink or else by a hard link. If it is
    shared by a hard link, the file is checked each time before it is loaded. If a model has several files
    (-00001-of-00003.gguf), name any of them, and all are added. All SVC_HOMEs of a user share one cache.

    Examples:
    svc llm pull ./tiny.gguf
    svc llm pull ~/Downloads/qwen-q4_k_m.gguf --as qwen:q4_k_m
    svc llm pull alice/qwen:q4_k_m
    svc llm pull hf.co/unsloth/gemma-3-270m-it-GGUF:Q8_0
    """
    if not is_file(file):
        _pull_name(ctx, file, name, projector)
        return
    path = file_at(ctx.obj.folder, file)
    name_of(path, name)
    eye = file_at(ctx.obj.folder, projector) if projector else None
    pulled = pull_file(models_of(ctx), path, name, eye, ctx.out.meter)
    model = _model(pulled.installed)
    how = HOW[model.how] if pulled.new else f"was here already ({model.how})"
    ctx.out.done(
        f"Pulled {model.name} ({size(model.size)}): it {how}", model, COLUMNS, ModelRow, value=model.name
    )


def _pull_name(ctx: Ctx, typed: str, name: str | None, projector: str | None) -> None:
    from svc.flows.models.pull import pull as pull_model

    if projector:
        raise UsageError("--projector goes with a file; a model of a server brings its own")

    def tell(step: Any) -> None:
        if step.digest:
            ctx.out.meter("pulling", step.completed >> 20, step.total >> 20, step.completed)

    ctx.out.goes_on = True
    pulled = pull_model(ctx.obj, models_of(ctx), typed, name, tell)
    model = _model(pulled.installed)
    what = f"Pulled {model.name} ({size(model.size)})" if pulled.new else f"{model.name} is up to date"
    ctx.out.done(what, model, COLUMNS, ModelRow, value=model.name)


@answers(COLUMNS, ModelRow)
def copy(
    ctx: Ctx,
    model: Name,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its further name")],
) -> None:
    """Give a model a further name

    An additional name takes no space, and each name can be removed separately.

    Examples:
    svc llm cp alice/qwen:q4_k_m qwen
    """
    source, target, models = parse(model), parse(name), models_of(ctx)
    copied = _model(models.put(target, models.find(source).record))
    ctx.out.done(f"{copied.name} is {source.short} now", copied, COLUMNS, ModelRow, value=copied.name)


@answers(COLUMNS, ModelRow)
def list_models(ctx: Ctx) -> None:
    """List the models of this machine

    Examples:
    svc llm list
    svc llm list --json name,size
    """
    rows = [_model(model) for model in models_of(ctx).all()]
    ctx.out.rows(rows, COLUMNS, ModelRow, empty="no models; svc llm pull FILE.gguf takes one in")


@answers(SHOWN, ModelRow)
def show(ctx: Ctx, model: Name) -> None:
    """Show a model: what it is, and what it can do

    Examples:
    svc llm show tiny
    svc llm show tiny --json context,quantisation
    """
    ctx.out.record(_model(models_of(ctx).find(parse(model))), SHOWN, ModelRow)


@answers((Column("name", kind="name"), Column("freed", kind="size")))
def remove(ctx: Ctx, model: Name) -> None:
    """Remove a model from this machine

    Its bytes are deleted with the last name that uses them. The file from which the model was pulled stays.

    Examples:
    svc llm rm tiny --yes
    """
    name, models = parse(model), models_of(ctx)
    models.find(name)
    ctx.confirm(f"Removing model {name.short} from this machine")
    removed, freed = models.remove(name)
    record: dict[str, Any] = {"name": str(removed.name), "freed": freed}
    sentence = f"Removed {removed.name.short} ({size(freed)} freed)"
    columns = (Column("name", kind="name"), Column("freed", kind="size"))
    ctx.out.done(sentence, record, columns, value=str(removed.name))


def _model(installed: Installed) -> ModelRow:
    header, about = installed.about.header, installed.about
    return ModelRow(
        name=str(installed.name),
        size=installed.size,
        architecture=header.architecture,
        parameters=installed.parameters,
        quantisation=header.quantisation,
        context=header.of_architecture("context_length"),
        how=about.how,
        source=about.source,
        sha256=installed.record.model,
        blake3=about.blake3,
        modified_at=installed.record.modified_at,
        template=bool(installed.record.template or header.text("tokenizer.chat_template")),
        license=installed.record.license or header.text("general.license"),
    )
