"""One `danlu install`, before anything is changed: what is asked for now and was asked for before, as objects."""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from danlu import __version__
from danlu.client.client import Client
from danlu.meta.kind import Object
from danlu.meta.wellknown import DEPLOYMENT
from danlu.operator.install import planexecution
from danlu.operator.install.manifests import InstallPart, parts
from danlu.operator.install.options import ADDONS, NAMESPACE, InstallOptions, OptionError, kinds_without
from danlu.operator.install.plan import InstallPlan
from danlu.operator.install.planexecution import Memory

NONE = "none"  # takes back what an earlier installation was asked for
PLAIN = ("image", "replicas", "gang", "log_format", "console_url", "apps_url")
REMEMBERED = (*PLAIN, "console_arguments", "without_kinds", "console", "network_policies", "addons")
# Files of the Secret with the identity provider, as `danlu console --oidc-folder` reads them.
ISSUER, CLIENT_ID, CLIENT_SECRET, CA = "issuer", "client-id", "client-secret", "ca.crt"


class InstalledElsewhere(Exception):
    def __init__(self, namespace: str) -> None:
        super().__init__(namespace)
        self.namespace = namespace


@dataclass(frozen=True, slots=True)
class InstallRequest:
    chosen: Object  # by the names in REMEMBERED, what is said; for the rest counts what an earlier installation said
    namespace: str | None = None
    # Files of the identity provider; None: none any more.
    identity: dict[str, bytes] | None = field(default_factory=dict)
    take_over: bool = False
    crds_only: bool = False


@dataclass(frozen=True, slots=True)
class Installation:
    options: InstallOptions
    chosen: Object
    last: Memory | None  # the installation that is here already
    wanted: list[InstallPart]

    def kept(self, request: InstallRequest) -> list[str]:
        """Names of what is as an earlier installation said."""
        earlier = self.last.chosen if self.last is not None else {}
        return [name for name in earlier if name not in request.chosen and name in self.chosen]


async def prepare(client: Client, request: InstallRequest) -> Installation:
    """Raises OptionError, and InstalledElsewhere: one cluster has one."""
    last = _last(await planexecution.remembered(client), request.namespace)
    chosen = _chosen(request, last)
    options = _options(request, chosen, last)
    return Installation(options, chosen, last, await _wanted(client, options, chosen, request))


def deployments(plan: InstallPlan) -> list[tuple[str, str]]:
    """Namespace and name of those that are to work in the end."""
    return [
        (change.namespace or "", change.name)
        for change in plan.changes
        if change.kind == DEPLOYMENT and change.action != "delete"
    ]


def _last(known: Sequence[Memory], namespace: str | None) -> Memory | None:
    if not known:
        return None
    here = [one for one in known if namespace in (None, one.namespace)]
    if not here:
        raise InstalledElsewhere(known[0].namespace)
    return here[0]


def _chosen(request: InstallRequest, last: Memory | None) -> Object:
    found = {**(last.chosen if last is not None else {}), **request.chosen}
    if last is not None and "image" not in request.chosen and "image" in found:
        # An image that was named after its version goes with the version.
        found["image"] = re.sub(f":{re.escape(last.version)}$", f":{__version__}", found["image"])
    return {name: value for name, value in sorted(found.items()) if name in REMEMBERED and value != NONE}


def _options(request: InstallRequest, chosen: Object, last: Memory | None) -> InstallOptions:
    addons = _words(chosen.get("addons"))
    for name in addons:
        if name not in ADDONS:
            raise OptionError(f"there is no add-on {name!r}; there are {', '.join(ADDONS)}")
    try:
        kinds = kinds_without(_words(chosen.get("without_kinds")))
    except OptionError as error:
        raise OptionError(f"--without-kinds: {error}") from error
    if chosen.get("replicas", 1) < 1:
        raise OptionError("--replicas is at least 1; `danlu uninstall` takes the operator away")
    return InstallOptions(
        **{name: chosen[name] for name in PLAIN if name in chosen},
        console_arguments=tuple(shlex.split(chosen.get("console_arguments", ""))),
        namespace=request.namespace or (last.namespace if last is not None else NAMESPACE),
        kinds=kinds,
        console=chosen.get("console", True),
        network_policies=chosen.get("network_policies", True),
        addons=addons,
        take_over=request.take_over,
    )


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(word.strip() for word in (text or "").split(",") if word.strip() not in ("", NONE))


async def _wanted(
    client: Client, options: InstallOptions, chosen: Object, request: InstallRequest
) -> list[InstallPart]:
    found = parts(options)
    if request.crds_only:
        return [part for part in found if part.component == "crds"]
    if options.console:
        found.append(await planexecution.console_key(client, options))
        found += await _identity_provider(client, options, request.identity)
    return [*found, planexecution.memory(options.namespace, chosen)]


async def _identity_provider(
    client: Client, options: InstallOptions, given: dict[str, bytes] | None
) -> list[InstallPart]:
    if given is None:
        return []
    encoded = {name: base64.b64encode(content).decode() for name, content in given.items()}
    part = await planexecution.identity_provider(client, options, encoded)
    if part is None:
        return []
    if encoded and not {ISSUER, CLIENT_ID} <= part.object["data"].keys():
        raise OptionError("--oidc-issuer and --oidc-client-id belong together")
    return [part]
