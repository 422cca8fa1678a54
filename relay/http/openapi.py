"""Makes the OpenAPI 3.1 document from the route table."""

from __future__ import annotations

import functools
import types
import typing
from typing import Any

import msgspec

from localstore.core.model.base import Problem
from relay.base import edition
from relay.http.routing import TABLE, Route

TITLES = {
    200: "Already exists",
    202: "Recorded, and not complete yet",
    206: "Partial content",
    301: "Moved Permanently",
    303: "See other",
    304: "Not modified",
    307: "Temporary redirect",
    400: "Malformed request",
    401: "Missing or invalid credential",
    403: "Forbidden",
    404: "Not found, hidden or disabled",
    405: "Method not allowed",
    408: "Request timeout",
    409: "Conflict with the current state",
    410: "Expired",
    413: "Larger than a limit",
    415: "Unsupported media type",
    416: "Range not satisfiable",
    422: "Invalid field, digest, signature or path",
    429: "Too many requests",
    501: "Not in this edition",
    503: "Service unavailable",
    507: "Insufficient storage",
}
_REF = "#/components/schemas/{name}"
_SECURITY: list[dict[str, list[str]]] = [{"session": []}, {"bearer": []}]

_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A request that is sent again with its key gets its first answer, for 30 days",
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
}


@functools.cache
def make_document(off: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Make the OpenAPI document as plain data. Routes whose feature flag is in `off` are left out."""
    table = [route for route in TABLE if route.flag not in off]
    shapes = _shapes_of(table)
    refs, components = msgspec.json.schema_components(shapes, ref_template=_REF)
    schema = dict(zip(map(repr, shapes), refs, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in table:
        if "socket" not in route.wants:
            path = route.path.replace("...}", "}")
            paths.setdefault(path, {})[route.method.lower()] = _describe_operation(route, schema, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "svc relay", "version": edition.VERSION, "license": {"name": "AGPL-3.0-or-later"}},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": _describe_schemes()},
    }


def _shapes_of(table: list[Route]) -> list[Any]:
    named = [Problem]
    for route in table:
        named += [shape for shape in (route.body, route.query, *_alternatives(route.returns)) if shape]
    return [*{repr(shape): shape for shape in named}.values()]


def _alternatives(returns: Any) -> tuple[Any, ...]:
    """The types that an answer may have, by the annotation `returns` of its handler: for `A | B` both A and
    B. They are described separately, because msgspec cannot describe such a union of structs."""
    union = typing.get_origin(returns) in (typing.Union, types.UnionType)
    return typing.get_args(returns) if union else (returns,)


def _describe_operation(route: Route, schema: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.name.partition(".")[0]],
        "parameters": [
            *_path_parameters(route),
            *_query_parameters(route, schema, components),
            *([_KEY] if route.keyed else []),
        ],
        "responses": _describe_responses(route, schema),
    }
    if route.body is not None:
        media = ["application/json", *(["application/x-www-form-urlencoded"] if route.forms else [])]
        content = {name: {"schema": schema[repr(route.body)]} for name in media}
        operation["requestBody"] = {"required": True, "content": content}
    elif route.stream:
        binary = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
        operation["requestBody"] = {"required": True, "content": binary}
    security = _describe_security(route)
    if security is not None:
        operation["security"] = security
    return operation


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    schema = {"type": "string", "minLength": 1}
    return [{"name": name, "in": "path", "required": True, "schema": schema} for name in route.params]


def _query_parameters(
    route: Route, schema: dict[str, Any], components: dict[str, Any]
) -> list[dict[str, Any]]:
    if route.query is None:
        return []
    shape = components[schema[repr(route.query)]["$ref"].rpartition("/")[2]]
    required = shape.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": part}
        for name, part in shape["properties"].items()
    ]


def _describe_responses(route: Route, schema: dict[str, Any]) -> dict[str, Any]:
    status = route.status if route.returns is not None or route.status != 200 else 200
    good: dict[str, Any] = {"description": route.summary}
    if route.returns is not None:
        shapes = [schema[repr(shape)] for shape in _alternatives(route.returns)]
        content = shapes[0] if len(shapes) == 1 else {"anyOf": shapes}
        good["content"] = {"application/json": {"schema": content}}
    elif status < 300 and status != 204:
        good["content"] = {route.media.partition(";")[0]: {}}
    answers = {str(status): good}
    for code in route.others:
        answers[str(code)] = (good if code < 300 else {}) | {"description": TITLES[code]}
    problem: dict[str, Any] = {"application/problem+json": {"schema": schema[repr(Problem)]}}
    if route.media.startswith("text/html"):  # a page shows the errors of its form itself
        problem["text/html"] = {}
    if route.password:  # git shows its user text
        problem["text/plain"] = {}
    for code in sorted(_problem_statuses(route)):
        answers.setdefault(str(code), {"description": TITLES.get(code, "Refused"), "content": problem})
    return answers


def _problem_statuses(route: Route) -> set[int]:
    codes = {400, 401, 403, 429, *route.errors}  # every route refuses a malformed or invalid credential
    if route.params or route.flag:
        codes |= {400, 404, 422}
    if route.operation.about != "node":
        codes |= {404}
    if route.body is not None or route.stream:
        codes |= {400, 408, 413, 415, 422}
    strict = route.path.startswith("/api/")  # refuses a parameter that it does not know
    if strict or route.query is not None or (route.changes and not route.stream):  # its Idempotency-Key
        codes |= {422}
    if not route.operation.archived:
        codes |= {409}  # the repository is archived
    if route.operation.grows or route.keyed:  # an account keeps so many keys
        codes |= {507}
    return codes


def _describe_security(route: Route) -> list[dict[str, list[str]]] | None:
    rights = route.operation
    if route.password:
        return [{}, {"bearer": []}, {"password": []}]
    if rights.about == "node":
        return None
    if rights.about == "browser":
        return [{"session": []}]
    return [{}, *_SECURITY] if rights.anonymous else list(_SECURITY)


def _describe_schemes() -> dict[str, Any]:
    return {
        "session": {"type": "apiKey", "in": "cookie", "name": "__Host-session"},
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "description": "A capability token. Every POST, PUT, PATCH and DELETE with it also carries a "
            "request signature (RFC 9421, tag svc-req-v1) by the key the token is bound to.",
        },
        "password": {
            "type": "http",
            "scheme": "basic",
            "description": "A capability token as the password, for git; the name counts for nothing.",
        },
    }
