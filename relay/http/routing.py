"""The route table. A route names its operation; the operation's row in `localstore.core.model.rights` says
who may call the route.

    @serves(endpoints.LIST, operation="ref.list")
    async def list_refs(view: View, query: RefQuery) -> Page[Ref]:
        \"\"\"Branches and tags by name\"\"\"
        return await refs.page(view, query.type, query.cursor, query.limit)

A service function whose parameters are those of the route is the handler itself:

    serves(endpoints.LIST, operation="label.list")(label.list_labels)

`serves` declares the endpoints of `localstore.core`. `route` declares everything else: pages, their forms,
sockets, and paths that other programs have fixed.

The handler's parameters are filled by name:

    caller    the Caller
    view      the View, for routes on `{id}` of a repository
    query     a Struct, by its annotation
    body      a Struct, by its annotation; a Struct with any other name is the body too
    upload    the Upload, for streamed bodies
    raw       the bytes of an optional body
    request   the HTTP request; rarely needed
    socket    the open WebSocket, for routes that open one

Every other parameter is a path parameter. One of them may have another name than in the path: `number` gets
`{n}` if no other path parameter is left. The handler returns a Struct (JSON), None (204), or a `Reply`
(bytes, stream, page, redirect). Routing, the gate, validation and the OpenAPI document all use the table.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.identity.request_signature import SAFE_METHODS
from localstore.core.model.limits import JSON_BODY
from localstore.core.model.rights import OPERATIONS, Operation
from relay.http.router import parameters_of


@dataclass(slots=True)
class Reply:
    """An answer other than JSON with the status 200: one with another status, with raw bytes, or with a
    stream. `length`: bytes of the stream. `section`: returns a stream of the bytes [start, end), for content
    that can be read from any position."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    stream: AsyncIterator[bytes] | None = None
    length: int | None = None
    section: Callable[[int, int], AsyncIterator[bytes]] | None = None
    cookies: tuple[str, ...] = ()  # whole Set-Cookie values
    etag: str | None = None  # a quoted strong tag; with it, If-None-Match and Range are answered
    compress: bool = False  # for clients that take gzip; never where a secret stands beside what they sent


class Upload(typing.Protocol):
    """A streamed request body, whose size is limited while it arrives.

    A handler must await `finish` after the last chunk and before any effect: it compares the body with the
    digest in the request's signature.
    """

    length: int | None

    def chunks(self) -> AsyncIterator[bytes]: ...
    async def whole(self) -> bytes:
        """The whole body, for routes whose limit fits in memory."""

    def promise(self, toc: bytes) -> None:
        """Declare that the body is a pack and the signed digest covers only `toc`, its table of contents."""

    async def finish(self) -> None: ...


Handler = Callable[..., Awaitable[Any]]
REPOSITORIES = "TR_REPOS_ENABLED"
# What a parameter of these names is filled with, beside the parameters of the path.
FILLED = ("caller", "view", "query", "body", "upload", "request", "raw", "socket")


@dataclass(frozen=True, slots=True)
class Route:
    """A row of the route table, which declares one route."""

    method: str
    path: str
    operation: Operation
    handler: Handler
    flag: str | None
    returns: Any
    status: int
    body: type[msgspec.Struct] | None
    query: type[msgspec.Struct] | None
    params: tuple[str, ...]
    filled: Mapping[str, str]  # the handler's parameter → what it is filled with
    wants: frozenset[str]
    max_body: int
    stream: bool
    errors: tuple[int, ...]
    others: tuple[int, ...]
    media: str
    cost: int
    per_minute: int | None
    forms: bool
    gzip: bool
    password: bool
    name: str
    summary: str

    @property
    def changes(self) -> bool:
        """Whether the method of the route changes something. GET, HEAD and the like do not."""
        return self.method not in SAFE_METHODS

    @property
    def keyed(self) -> bool:
        """Whether the route supports an Idempotency-Key. Routes for streamed bytes do not need one, because
        bytes are stored by digest and a repeat is harmless. Routes without an account cannot have one,
        because a key belongs to an account."""
        return self.changes and not self.stream and self.operation.about != "node"

    @property
    def about_repo(self) -> bool:
        """Whether the route's path names a repository as `{id}`, which the gate then reads."""
        return self.operation.about == "repository"


TABLE: list[Route] = []


def serves(endpoint: Endpoint[Any], **settings: Any) -> Callable[[Handler], Handler]:
    """Declare the route of an endpoint of `localstore.core`. `settings`: the other arguments of `route`.
    Raises TypeError if the handler's parameters or result differ from those of the endpoint."""

    def declare(handler: Handler) -> Handler:
        hints = typing.get_type_hints(handler)
        shape = endpoint.shape
        taken = {argument: hints.get(name) for name, argument in _sources_of(handler, endpoint.path).items()}
        for name, declared in (("body", endpoint.body), ("query", endpoint.query)):
            if taken.get(name) != declared:
                raise TypeError(
                    f"{handler.__name__} takes {name} {taken.get(name)}; its endpoint declares {declared}"
                )
        answers = (Reply, type(None)) if shape is None else (Reply, shape, shape | Reply)
        if hints.get("return") not in answers:
            raise TypeError(
                f"{handler.__name__} returns {hints.get('return')}; its endpoint declares {shape}"
            )
        served = route(endpoint.method, endpoint.path, returns=shape, status=endpoint.status, **settings)
        served(handler)
        if TABLE[-1].keyed != endpoint.takes_key:
            raise TypeError(f"{handler.__name__} and its endpoint disagree about an Idempotency-Key")
        return handler

    return declare


def behind(flag: str) -> Callable[..., Callable[[Handler], Handler]]:
    """Make a decorator like `serves` that declares routes with the feature flag `flag`. For a module whose
    routes all have this flag."""
    return functools.partial(serves, flag=flag)


def route(
    method: str,
    path: str,
    *,
    operation: str,
    flag: str | None = None,
    returns: Any = None,
    status: int = 200,
    errors: tuple[int, ...] = (),
    others: tuple[int, ...] = (),
    max_body: int = JSON_BODY,
    stream: bool = False,
    media: str = "application/json",
    cost: int = 1,
    per_minute: int | None = None,
    forms: bool = False,
    gzip: bool = False,
    password: bool = False,
    name: str = "",
) -> Callable[[Handler], Handler]:
    """Declare a route.

    `path` has `{name}` for one segment and `{name...}` for the rest. `operation`: its name in the table of
    rights. `flag`: the feature flag without which the route always answers 404. Operations on a repository
    have TR_REPOS_ENABLED unless another flag is given. Raises KeyError for an unknown operation, and
    TypeError if the operation is about a repository but the path names none.

    The answer: `returns` is the type of the handler's result; `status` its status on success, `others`
    further ones; `errors` the statuses of refusals besides those that every such route has; `media` the
    content type if not JSON.

    The body: `max_body` is its limit in bytes. `stream`: the handler reads it itself (`upload`). `forms`: it
    may also come from an HTML form. `gzip`: it may be compressed; `max_body` then limits its unpacked size.

    Limits: `cost` is the number of tokens that a request takes from the rate limit; `per_minute` a strict
    limit for each address. `password`: the route reads the repository {owner}/{name} for git. So the token
    may come as a password, no request needs a signature, and refusals are text. `name`: the route's unique
    name in logs and OpenAPI, by default made of its noun and the handler's name.
    """
    rights = OPERATIONS[operation]
    if flag is None and rights.about == "repository":
        flag = REPOSITORIES
    if rights.about == "repository" and not path.startswith(REPO):
        raise TypeError(f"{operation} is about a repository, and {path} names none")

    def declare(handler: Handler) -> Handler:
        filled = _sources_of(handler, path)
        hints = typing.get_type_hints(handler)
        types = {argument: hints.get(parameter) for parameter, argument in filled.items()}
        declared = Route(
            method=method,
            path=path,
            operation=rights,
            handler=handler,
            flag=flag,
            returns=returns,
            status=status,
            body=types.get("body"),
            query=types.get("query"),
            params=parameters_of(path),
            filled=filled,
            wants=frozenset(filled.values()),
            max_body=max_body,
            stream=stream,
            errors=errors,
            others=others,
            media=media,
            cost=cost,
            per_minute=per_minute,
            forms=forms,
            gzip=gzip,
            password=password,
            name=name or f"{_noun_of(handler.__module__)}.{handler.__name__}",
            summary=(inspect.getdoc(handler) or handler.__name__).splitlines()[0],
        )
        TABLE.append(declared)
        return handler

    return declare


def _sources_of(handler: Handler, path: str) -> dict[str, str]:
    """Find what fills each parameter of the handler. Returns the parameter's name → a name in FILLED, such as
    "body" or "view", or a path parameter. A parameter whose type is a Struct gets the body, unless it is
    called `query`. One parameter may have another name than the path parameter that fills it. Raises
    TypeError for a parameter that nothing fills."""
    filled = {}
    hints = typing.get_type_hints(handler)
    names = list(inspect.signature(handler).parameters)
    not_of_path = {*names, "id"} if "view" in names else {*names}  # the view has the repository's
    of_path = [name for name in parameters_of(path) if name not in not_of_path]
    for name in names:
        if name in FILLED or name in parameters_of(path):
            filled[name] = name
        elif isinstance(hints.get(name), type) and issubclass(hints[name], msgspec.Struct):
            filled[name] = "body"
        elif len(of_path) == 1:
            filled[name] = of_path.pop()
        else:
            raise TypeError(f"{handler.__name__} takes {name}, which is nothing of {path}")
    return filled


def _noun_of(module: str) -> str:
    """The noun of the routes in a module: the module's name, or that of its folder in `relay.domain`."""
    folder, _, name = module.rpartition(".")
    return folder.rpartition(".")[2] if name in ("routes", "pages") else name
