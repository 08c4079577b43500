"""The operations of one served kind, as OpenAPI describes them; v3 first, v2 made from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from danlu.embedded.apiserver.discovery import subresources_of
from danlu.embedded.apiserver.openapi.definitions import META, V2, V3, Document, is_native, name_of
from danlu.embedded.apiserver.served import ServedKind
from danlu.meta.kind import Kind

PATCHES = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
STRATEGIC_PATCH = "application/strategic-merge-patch+json"  # built-in kinds only: it needs Go's struct tags
_ANSWERS = ("application/json", "application/yaml")
_METHODS = {"get": "get", "create": "post", "update": "put", "patch": "patch", "delete": "delete"}
_SUCCESS = {"200": "OK", "201": "Created", "202": "Accepted"}


def _query(name: str, kind: str, description: str) -> Document:
    return {"name": name, "in": "query", "description": description, "schema": {"type": kind, "uniqueItems": True}}


_PRETTY = _query("pretty", "string", "'true' asks for indented output.")
_DRY_RUN = _query("dryRun", "string", "'All' runs every check and stores nothing.")
_MANAGER = _query("fieldManager", "string", "Who makes the change; at most 128 printable characters.")
_VALIDATION = _query("fieldValidation", "string", "What unknown or duplicate fields get: Ignore, Warn or Strict.")
_FORCE = _query("force", "boolean", "Takes over fields that another manager applied; for apply only.")
_CONTINUE = _query("continue", "string", "The token of the last page, to read the next one.")
_FIELDS = _query("fieldSelector", "string", "Restricts the answer by field values.")
_LABELS = _query("labelSelector", "string", "Restricts the answer by labels.")
_LIMIT = _query("limit", "integer", "At most so many items in one answer.")
_RESOURCE_VERSION = _query("resourceVersion", "string", "From which state to answer or to watch.")
_MATCH = _query("resourceVersionMatch", "string", "How resourceVersion is meant: Exact or NotOlderThan.")
_INITIAL = _query("sendInitialEvents", "boolean", "A watch that begins with the present objects.")
_TIMEOUT = _query("timeoutSeconds", "integer", "How long a list or watch may take, in seconds.")
_BOOKMARKS = _query("allowWatchBookmarks", "boolean", "A watch may send BOOKMARK events.")
_WATCH = _query("watch", "boolean", "Follows changes instead of answering once.")
_GRACE = _query("gracePeriodSeconds", "integer", "Seconds until the object is removed by force.")
_ORPHAN = _query("orphanDependents", "boolean", "Old form of propagationPolicy.")
_PROPAGATION = _query("propagationPolicy", "string", "What becomes of dependents: Orphan, Background or Foreground.")
_LISTING = [_CONTINUE, _FIELDS, _LABELS, _LIMIT, _RESOURCE_VERSION, _MATCH, _INITIAL, _TIMEOUT]
_DELETING = [_DRY_RUN, _GRACE, _ORPHAN, _PROPAGATION]


def _path_parameter(name: str, description: str) -> Document:
    schema = {"type": "string", "uniqueItems": True}
    return {"name": name, "in": "path", "required": True, "description": description, "schema": schema}


_NAMESPACE = _path_parameter("namespace", "The namespace.")


def _reference(name: str) -> Document:
    return {"$ref": V3 + name}


def _responses(name: str, *codes: str) -> Document:
    content = {media: {"schema": _reference(name)} for media in _ANSWERS}
    found: Document = {code: {"description": _SUCCESS[code], "content": content} for code in codes}
    found["401"] = {"description": "Unauthorized"}
    return found


def _words(text: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in text.replace("-", ".").split("."))


@dataclass(slots=True, frozen=True)
class _Exchange:
    """What one operation sends and takes."""

    responses: Document
    body: Document | None = None
    kind: Kind | None = None  # of what is sent, where it is another than the path's


class Paths:
    """All paths of one served kind in an OpenAPI v3 document."""

    def __init__(self, served: ServedKind) -> None:
        self.served, self.kind = served, served.kind
        self.definition = name_of(served.kind)
        group = served.kind.group.removesuffix(".k8s.io") or "core"
        self.tag = f"{group.replace('.', '').replace('-', '')}_{served.kind.version}"
        self.stem = f"{_words(group)}{_words(served.kind.version)}"
        self.scope = "Namespaced" if served.kind.namespaced else ""
        root = f"/apis/{self.kind.group}" if self.kind.group else "/api"
        self.base = f"{root}/{self.kind.version}"

    def build(self) -> dict[str, Document]:
        inside = f"{self.base}/namespaces/{{namespace}}" if self.kind.namespaced else self.base
        collection, item = f"{inside}/{self.kind.plural}", f"{inside}/{self.kind.plural}/{{name}}"
        paths = {collection: self._collection(), item: self._item()}
        if self.kind.namespaced and "list" in self.served.verbs:
            everywhere = self._operation(
                f"list{self.stem}{self.kind.kind}ForAllNamespaces", "list", "list or watch objects of kind",
                [_BOOKMARKS, *_LISTING, _WATCH], _Exchange(_responses(f"{self.definition}List", "200")),
            )  # fmt: skip
            paths[f"{self.base}/{self.kind.plural}"] = {"get": everywhere, "parameters": [_PRETTY]}
        for name, exchanged, verbs in subresources_of(self.served):
            operations = self._subresource(name, exchanged, verbs)
            if operations:
                paths[f"{item}/{name}"] = operations
        return {path: operations for path, operations in paths.items() if len(operations) > 1}

    def _operation(
        self, identity: str, action: str, text: str, parameters: list[Document], exchange: _Exchange
    ) -> Document:
        exchanged = exchange.kind or self.kind
        operation: Document = {
            "description": f"{text} {self.kind.kind}",
            "operationId": identity,
            "parameters": parameters,
            "responses": exchange.responses,
            "tags": [self.tag],
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": {
                "group": exchanged.group,
                "version": exchanged.version,
                "kind": exchanged.kind,
            },
        }
        if exchange.body is not None:
            operation["requestBody"] = exchange.body
        return operation

    def _parameters(self, *, name: bool) -> list[Document]:
        given = [_path_parameter("name", f"name of the {self.kind.kind}")] if name else []
        if self.kind.namespaced:
            given.append(_NAMESPACE)
        return [*given, _PRETTY]

    def _collection(self) -> Document:
        kind, verbs, definition = self.kind, self.served.verbs, self.definition
        found: Document = {"parameters": self._parameters(name=False)}
        if "list" in verbs:
            found["get"] = self._operation(
                f"list{self.stem}{self.scope}{kind.kind}", "list", "list or watch objects of kind",
                [_BOOKMARKS, *_LISTING, _WATCH], _Exchange(_responses(f"{definition}List", "200")),
            )  # fmt: skip
        if "create" in verbs:
            found["post"] = self._operation(
                f"create{self.stem}{self.scope}{kind.kind}", "post", "create a",
                [_DRY_RUN, _MANAGER, _VALIDATION],
                _Exchange(_responses(definition, "200", "201", "202"), _body(definition)),
            )  # fmt: skip
        if "deletecollection" in verbs:
            found["delete"] = self._operation(
                f"delete{self.stem}Collection{self.scope}{kind.kind}", "deletecollection", "delete collection of",
                [*_DELETING, *_LISTING],
                _Exchange(_responses(f"{META}Status", "200"), _body(f"{META}DeleteOptions", required=False)),
            )  # fmt: skip
        return found

    def _item(self) -> Document:
        found: Document = {"parameters": self._parameters(name=True)}
        found.update(self._accesses(self.served.verbs, "", self.definition, self.kind, "the specified"))
        if "delete" in self.served.verbs:
            found["delete"] = self._operation(
                f"delete{self.stem}{self.scope}{self.kind.kind}", "delete", "delete a", list(_DELETING),
                _Exchange(_responses(f"{META}Status", "200", "202"), _body(f"{META}DeleteOptions", required=False)),
            )  # fmt: skip
        return found

    def _accesses(self, verbs: tuple[str, ...], suffix: str, definition: str, kind: Kind, text: str) -> Document:
        """Read, replace and patch: of the object or of a subresource that is its own kind."""
        stem = f"{self.stem}{self.scope}{self.kind.kind}{suffix}"
        changing = [_DRY_RUN, _MANAGER, _VALIDATION]
        found: Document = {}
        if "get" in verbs:
            found["get"] = self._operation(
                f"read{stem}", "get", f"read {text}", [], _Exchange(_responses(definition, "200"), kind=kind)
            )
        if "update" in verbs:
            found["put"] = self._operation(
                f"replace{stem}", "put", f"replace {text}", changing,
                _Exchange(_responses(definition, "200", "201"), _body(definition), kind),
            )  # fmt: skip
        if "patch" in verbs:
            patches = (*PATCHES, STRATEGIC_PATCH) if is_native(self.kind) else PATCHES
            content = {media: {"schema": _reference(f"{META}Patch")} for media in patches}
            found["patch"] = self._operation(
                f"patch{stem}", "patch", f"partially update {text}", [*changing, _FORCE],
                _Exchange(_responses(definition, "200", "201"), {"content": content, "required": True}, kind),
            )  # fmt: skip
        return found

    def _subresource(self, name: str, exchanged: Kind, verbs: tuple[str, ...]) -> Document:
        definition, suffix = name_of(exchanged), _words(name)
        found: Document = {"parameters": self._parameters(name=True)}
        connects = exchanged.kind.endswith("Options")
        if not connects and ("update" in verbs or "patch" in verbs):
            found.update(self._accesses(verbs, suffix, definition, exchanged, f"{name} of the specified"))
            return found
        tail = f"{self.scope}{self.kind.kind}{suffix}"
        if connects or name == "log":
            text = {"description": "OK", "content": {"text/plain": {"schema": {"type": "string"}}}}
            responses = {"200": text, "401": {"description": "Unauthorized"}}
            for verb, method in _METHODS.items():
                if verb in verbs:
                    called = f"connect{self.stem}{method.title()}{tail}" if connects else f"read{self.stem}{tail}"
                    action = "connect" if connects else "get"
                    found[method] = self._operation(
                        called, action, f"{name} of", [], _Exchange(responses, kind=exchanged)
                    )
        elif "create" in verbs:
            found["post"] = self._operation(
                f"create{self.stem}{tail}", "post", f"create {name} of a", [_DRY_RUN, _MANAGER, _VALIDATION],
                _Exchange(_responses(definition, "200", "201", "202"), _body(definition), exchanged),
            )  # fmt: skip
        return found


def _body(name: str, *, required: bool = True) -> Document:
    body: Document = {"content": {"*/*": {"schema": _reference(name)}}}
    if required:
        body["required"] = True
    return body


def as_v2(paths: dict[str, Document]) -> dict[str, Document]:
    return {path: {key: _v2_entry(key, value) for key, value in item.items()} for path, item in paths.items()}


def _v2_entry(key: str, value: Any) -> Any:
    if key == "parameters":
        return [_v2_parameter(parameter) for parameter in value]
    operation = {name: part for name, part in value.items() if name not in ("requestBody", "responses", "parameters")}
    parameters = [_v2_parameter(parameter) for parameter in value["parameters"]]
    body = value.get("requestBody")
    operation["consumes"] = ["*/*"]
    if body is not None:
        content = body["content"]
        operation["consumes"] = list(content)
        schema = _v2_references(next(iter(content.values()))["schema"])
        shown = {"name": "body", "in": "body", "schema": schema}
        parameters.insert(0, {**shown, "required": True} if body.get("required") else shown)
    operation["parameters"] = parameters
    operation["produces"] = list(_ANSWERS)
    operation["schemes"] = ["https"]
    operation["responses"] = {}
    for code, response in value["responses"].items():
        shown = {"description": response["description"]}
        if "content" in response:
            shown["schema"] = _v2_references(next(iter(response["content"].values()))["schema"])
        operation["responses"][code] = shown
    return operation


def _v2_parameter(parameter: Document) -> Document:
    rest = {key: value for key, value in parameter.items() if key != "schema"}
    return {**rest, **parameter["schema"]}


def _v2_references(schema: Document) -> Document:
    if "$ref" in schema:
        return {"$ref": schema["$ref"].replace(V3, V2)}
    return schema
