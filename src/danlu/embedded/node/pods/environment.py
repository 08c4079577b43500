"""The environment variables of a container, resolved as kubelet resolves them.

`build` answers only what Kubernetes itself adds: the caller lays it over the image's own variables, which lie over
`runtime_defaults`. `$(VAR)` in command and args is expanded with what `build` answered, not with the image's variables.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from danlu.client.client import Client
from danlu.embedded.node.imagesource import DEFAULT_PATH
from danlu.embedded.node.pods.fieldrefs import FieldRefError, field_value, resource_value
from danlu.errors import NotFound
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import CONFIG_MAP, NODE, SECRET, SERVICE

HOSTNAME_LENGTH = 63

# What Linux takes when a program is started: in one string (MAX_ARG_STRLEN), and in all of them with the usual stack. A
# value that refers twice to the one before it doubles with each; so sizes are looked at before anything is built.
LONGEST_STRING = 128 * 1024
LARGEST_ENVIRONMENT = 2 * 1024 * 1024


class ConfigError(Exception):
    """The container cannot be configured: CreateContainerConfigError with this message."""


class EnvironmentContext(Protocol):
    """What is needed of the node."""

    @property
    def client(self) -> Client: ...
    @property
    def node_name(self) -> str: ...
    @property
    def api_address(self) -> Callable[[], tuple[str, int] | None]:
        """Where pods reach the API, when that is not where the `kubernetes` service says."""
        ...

    @property
    def addressed_services(self) -> Callable[[str], Sequence[Object]] | None:
        """The services of a namespace that have an address; None: they are asked for."""
        ...


def expand_text(text: str, *variables: Mapping[str, str], what: str = "an expanded value") -> str:
    """`$(NAME)` replaced by the first mapping that has NAME; a reference that none has stays as written.

    Raises ConfigError, which says `what`, where that would be longer than a program can be given.
    """
    if "$" not in text:
        return text
    pieces: list[str] = []
    size = 0
    for piece in _pieces(text, variables):
        pieces.append(piece)
        size += len(piece)
        if size >= LONGEST_STRING:
            raise ConfigError(f"{what} is longer than {LONGEST_STRING // 1024} KiB when its $(VARIABLES) are expanded")
    return "".join(pieces)


def _pieces(text: str, variables: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """$$ is a dollar; $(NAME) a reference; an unclosed $( and any other character after a dollar stay as they are."""
    at, last_closed = 0, text.rfind(")")
    while (dollar := text.find("$", at)) >= 0 and dollar + 1 < len(text):
        yield text[at:dollar]
        following = text[dollar + 1]
        at = dollar + 2
        if following == "$":
            yield "$"
        elif following == "(" and last_closed > dollar:
            end = text.index(")", at)
            name = text[at:end]
            yield next((mapping[name] for mapping in variables if name in mapping), f"$({name})")
            at = end + 1
        else:
            yield f"${following}"
    yield text[at:]


def expand(args: Iterable[str], env: Mapping[str, str]) -> list[str]:
    """Raises ConfigError where the whole, or one of them, is more than a program can be given."""
    expanded: list[str] = []
    size = 0
    for number, arg in enumerate(args):
        expanded.append(expand_text(arg, env, what=f"word {number + 1} of command or args"))
        size += len(expanded[-1])
        if size > LARGEST_ENVIRONMENT:
            raise ConfigError(f"command and args are longer than {LARGEST_ENVIRONMENT // 1024} KiB when expanded")
    return expanded


def hostname(pod: Object) -> str:
    """What the pod calls itself: at most 63 characters, never ending in a dash or a dot."""
    spec = pod.get("spec", {})
    name = str(spec.get("hostnameOverride") or spec.get("hostname") or pod["metadata"]["name"])
    return name[:HOSTNAME_LENGTH].rstrip("-.") if len(name) > HOSTNAME_LENGTH else name


def runtime_defaults(pod: Object, home: str = "/root") -> dict[str, str]:
    """What a container runtime sets when neither image nor pod does."""
    return {"PATH": DEFAULT_PATH, "HOME": home, "HOSTNAME": hostname(pod)}


async def build(pod: Object, container: Object, context: EnvironmentContext) -> dict[str, str]:
    """Raises ConfigError with kubelet's text when something referred to is not there."""
    sources = _Sources(pod["metadata"]["namespace"], context.client)
    links = await service_links(pod, context.client, context.addressed_services)
    api = context.api_address()
    if api is not None:
        links |= {"KUBERNETES_SERVICE_HOST": api[0], "KUBERNETES_SERVICE_PORT": str(api[1])}
    own: dict[str, str] = {}
    for source in container.get("envFrom") or []:
        await _add_from(source, sources, own)
    size = sum(map(len, own.values()))
    for variable in container.get("env") or []:
        if variable.get("value"):
            what = f"environment variable {variable['name']}"
            value: str | None = expand_text(variable["value"], own, links, what=what)
        else:
            value = await _referred(variable.get("valueFrom") or {}, pod, container, context, sources)
        if value is not None:
            own[variable["name"]] = value
            size += len(value)
        if size > LARGEST_ENVIRONMENT:
            limit = LARGEST_ENVIRONMENT // 1024
            raise ConfigError(f"the environment is larger than {limit} KiB at variable {variable['name']}")
    return {**links, **own}


async def service_links(
    pod: Object, client: Client, known: Callable[[str], Sequence[Object]] | None = None
) -> dict[str, str]:
    """{NAME}_SERVICE_HOST and its kin for the services of the pod's namespace, and always for `kubernetes`."""
    namespace = pod["metadata"]["namespace"]
    chosen: dict[str, Object] = {}
    with suppress(NotFound):
        chosen["kubernetes"] = await client.get(SERVICE, "kubernetes", "default")
    if pod["spec"].get("enableServiceLinks", True):
        found = known(namespace) if known else (await client.list(SERVICE, namespace)).items
        for service in found:
            if namespace != "default" or service["metadata"]["name"] != "kubernetes":
                chosen[service["metadata"]["name"]] = service
    links: dict[str, str] = {}
    for service in chosen.values():
        links.update(_links_to(service))
    return links


def _links_to(service: Object) -> dict[str, str]:
    spec = service.get("spec", {})
    address, ports = spec.get("clusterIP"), spec.get("ports") or []
    if not address or address == "None" or not ports:
        return {}
    prefix = _variable_name(service["metadata"]["name"])
    links = {f"{prefix}_SERVICE_HOST": address, f"{prefix}_SERVICE_PORT": str(ports[0]["port"])}
    for position, port in enumerate(ports):
        number, protocol = str(port["port"]), port.get("protocol") or "TCP"
        if port.get("name"):
            links[f"{prefix}_SERVICE_PORT_{_variable_name(port['name'])}"] = number
        host = f"[{address}]" if ":" in address else address
        url = f"{protocol.lower()}://{host}:{number}"
        if position == 0:
            links[f"{prefix}_PORT"] = url
        base = f"{prefix}_PORT_{number}_{protocol.upper()}"
        links |= {
            base: url,
            f"{base}_PROTO": protocol.lower(),
            f"{base}_PORT": number,
            f"{base}_ADDR": address,
        }
    return links


def _variable_name(name: str) -> str:
    return name.replace("-", "_").upper()


class _Sources:
    """ConfigMaps and Secrets of one namespace, each read once for a container."""

    def __init__(self, namespace: str, client: Client) -> None:
        self.namespace = namespace
        self._client = client
        self._read: dict[tuple[str, str], dict[str, str]] = {}

    async def data(self, kind: Kind, name: str, optional: bool) -> dict[str, str] | None:
        known = self._read.get((kind.kind, name))
        if known is not None:
            return known
        try:
            found = await self._client.get(kind, name, self.namespace)
        except NotFound:
            if optional:
                return None
            raise ConfigError(f'{kind.kind.lower()} "{name}" not found') from None
        data = dict(found.get("data") or {})
        if kind is SECRET:
            data = {key: base64.b64decode(value).decode("utf-8", "surrogateescape") for key, value in data.items()}
        self._read[(kind.kind, name)] = data
        return data


async def _add_from(source: Object, sources: _Sources, own: dict[str, str]) -> None:
    for field, kind in (("configMapRef", CONFIG_MAP), ("secretRef", SECRET)):
        ref = source.get(field)
        if ref is None:
            continue
        data = await sources.data(kind, ref.get("name", ""), bool(ref.get("optional")))
        for key, value in (data or {}).items():
            name = source.get("prefix", "") + key
            if "=" not in name:
                own[name] = value


async def _referred(
    source: Object, pod: Object, container: Object, context: EnvironmentContext, sources: _Sources
) -> str | None:
    """What a `valueFrom` leads to. None: leave the variable out (an optional source that is not there)."""
    try:
        if "fieldRef" in source:
            return field_value(pod, source["fieldRef"]["fieldPath"])
        if "resourceFieldRef" in source:
            allocatable = await node_allocatable(context)
            return resource_value(source["resourceFieldRef"], pod, container, allocatable)
    except FieldRefError as error:
        raise ConfigError(str(error)) from error
    for field, kind in (("configMapKeyRef", CONFIG_MAP), ("secretKeyRef", SECRET)):
        if field not in source:
            continue
        ref = source[field]
        optional = bool(ref.get("optional"))
        data = await sources.data(kind, ref.get("name", ""), optional)
        if data is None:
            return None
        if ref["key"] in data:
            return data[ref["key"]]
        if optional:
            return None
        raise ConfigError(f"couldn't find key {ref['key']} in {kind.kind} {sources.namespace}/{ref.get('name', '')}")
    return ""


async def node_allocatable(context: EnvironmentContext) -> dict[str, str]:
    try:
        node = await context.client.get(NODE, context.node_name)
    except NotFound:
        return {}
    return dict(node.get("status", {}).get("allocatable") or {})
