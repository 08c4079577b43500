"""`danlu install`: Danlu on a cluster. Looks first, shows what would change, changes it, waits until it works."""

from __future__ import annotations

import argparse
import base64
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from danlu import __version__
from danlu.cli import cluster
from danlu.cli.consoleidentity import CA, CLIENT_ID, CLIENT_SECRET, ISSUER, read
from danlu.cli.main import CommandError, UsageError
from danlu.client.client import Client
from danlu.meta.wellknown import DEPLOYMENT
from danlu.operator.install import applying, checks, plan, readiness
from danlu.operator.install.applying import Memory
from danlu.operator.install.manifests import Part, parts
from danlu.operator.install.options import ADDONS, GANGS, NAMESPACE, InstallOptions, OptionError, kinds_without
from danlu.operator.logs import FORMATS

NONE = "none"
PLAIN = ("image", "replicas", "gang", "log_format", "console_url", "apps_url")
REMEMBERED = (*PLAIN, "console_arguments", "without_kinds", "console", "network_policies", "addons")
SIGNS = {"create": "+", "change": "~", "delete": "-"}
MOST_LINES = 40  # of one object's difference; a definition's can have thousands


def arguments(command: argparse.ArgumentParser) -> None:
    cluster.arguments(command)
    add = command.add_argument
    add("--namespace", "-n", metavar="NAME", help=f"where the operator and the console run (default: {NAMESPACE})")
    add("--image", metavar="IMAGE", help="of the operator and the console (default: that of this version)")
    add("--replicas", type=int, metavar="N", help="of the operator: one works, the others stand by (default: 2)")
    add("--gang", choices=GANGS, help="the engine that starts a job's pods together (default: none)")
    add(
        "--log-format", choices=FORMATS, help="of the operator and the console (default: text; json: one object a line)"
    )
    add("--console-url", metavar="URL", help="where people open the console")
    add(
        "--apps-url",
        metavar="URL",
        help="where they open notebooks; https://*.apps.example.com: each has a host name of its own",
    )
    add("--console-arguments", metavar="WORDS", help="further ones for `danlu console`, such as --session-hours=8")
    add(
        "--oidc-issuer",
        metavar="URL",
        help="people sign in to the console with this identity provider; none: no longer",
    )
    add("--oidc-client-id", metavar="ID", help="as whom the console is known there")
    add("--oidc-client-secret-file", type=Path, metavar="FILE", help="if it has given one; kept in a Secret")
    add("--oidc-ca-file", type=Path, metavar="FILE", help="authority of its certificate (PEM)")
    add("--console", action=argparse.BooleanOptionalAction, default=None, help="with the web console (default: yes)")
    add(
        "--network-policies",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="limit who reaches the operator and the console (default: yes)",
    )
    add(
        "--without-kinds",
        metavar="A,B",
        help="kinds that another operator has: kubeflow, tensorstack, or single ones; none: all are Danlu's",
    )
    add("--addons", metavar="A,B", help="for GPU nodes: nvidia (device plugin), dcgm (metrics); none (default)")
    add("--take-over", action="store_true", help="change definitions of kinds that somebody else installed")
    add("--crds-only", action="store_true", help="only the definitions of the kinds")
    add("--dry-run", action="store_true", help="check, show what would change, and change nothing")
    add("--yes", "-y", action="store_true", help="do not ask")
    add("--wait", action=argparse.BooleanOptionalAction, default=True, help="until it works (default: yes)")
    add("--timeout", type=float, default=300.0, metavar="S", help="seconds to wait at most (default: 300)")


def run(arguments: argparse.Namespace) -> int:
    async def work(client: Client, server: str) -> int:
        return await _install(client, server, arguments)

    return cluster.on_cluster(arguments, work)


async def _install(client: Client, server: str, arguments: argparse.Namespace) -> int:
    known = await applying.remembered(client)
    last = _last(known, arguments.namespace)
    chosen = _chosen(arguments, last)
    options = _options(arguments, chosen, last)
    wanted = await _wanted(client, options, chosen, arguments)
    print(f"Danlu {__version__} on {server}, namespace {options.namespace}")
    if last is not None:
        _tell_kept(arguments, chosen, last)
    await _check(client, options, wanted)
    try:
        made = await plan.make(client, wanted, prune=not arguments.crds_only)
    except plan.Refused as error:
        raise CommandError(
            f"{error}. Nothing was changed; who installs needs every right that the roles grant, as cluster-admin has"
        ) from error
    for line in made.left_out:
        print(f"note: {line}")
    _show(made, all_lines=arguments.dry_run)
    if not made.wanted:
        print("nothing changes: all of it is installed as it should be")
    elif arguments.dry_run:
        print("nothing was changed (--dry-run)")
        return 0
    else:
        if not cluster.agreed("Change this?", arguments.yes):
            print("nothing was changed")
            return 1
        await applying.carry_out(client, made, print)
    if arguments.dry_run or not arguments.wait or arguments.crds_only:
        return 0
    deployments = [
        (change.namespace or "", change.name)
        for change in made.changes
        if change.kind == DEPLOYMENT and change.action != "delete"
    ]
    try:
        await readiness.wait(client, deployments, arguments.timeout, _say)
    except readiness.NotReady as error:
        raise CommandError(str(error)) from error
    if made.wanted:
        _tell_next(options)
    return 0


def _say(line: str) -> None:
    print(line, flush=True)


# ---------------------------------------------------------------- what is wanted


def _last(known: Sequence[Memory], namespace: str | None) -> Memory | None:
    """The installation that is here already, if there is one."""
    if not known:
        return None
    here = [one for one in known if namespace in (None, one.namespace)]
    if not here:
        raise CommandError(
            f"Danlu is installed in namespace {known[0].namespace} already; one cluster has one. "
            f"Change it there with --namespace {known[0].namespace}, or take it away first: danlu uninstall"
        )
    return here[0]


def _chosen(arguments: argparse.Namespace, last: Memory | None) -> dict[str, Any]:
    """What this command line says, and for the rest what an earlier one said."""
    found = dict(last.chosen) if last is not None else {}
    found |= {name: value for name in REMEMBERED if (value := getattr(arguments, name)) is not None}
    if last is not None and arguments.image is None and "image" in found:
        # An image that was named after its version goes with the version.
        found["image"] = re.sub(f":{re.escape(last.version)}$", f":{__version__}", found["image"])
    return {name: value for name, value in sorted(found.items()) if name in REMEMBERED and value != NONE}


def _options(arguments: argparse.Namespace, chosen: dict[str, Any], last: Memory | None) -> InstallOptions:
    namespace = arguments.namespace or (last.namespace if last is not None else NAMESPACE)
    addons = _words(chosen.get("addons"))
    for name in addons:
        if name not in ADDONS:
            raise UsageError(f"there is no add-on {name!r}; there are {', '.join(ADDONS)}")
    try:
        kinds = kinds_without(_words(chosen.get("without_kinds")))
    except OptionError as error:
        raise UsageError(f"--without-kinds: {error}") from error
    if chosen.get("replicas", 1) < 1:
        raise UsageError("--replicas is at least 1; `danlu uninstall` takes the operator away")
    return InstallOptions(
        **{name: chosen[name] for name in PLAIN if name in chosen},
        console_arguments=tuple(shlex.split(chosen.get("console_arguments", ""))),
        namespace=namespace,
        kinds=kinds,
        console=chosen.get("console", True),
        network_policies=chosen.get("network_policies", True),
        addons=addons,
        take_over=arguments.take_over,
    )


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(word.strip() for word in (text or "").split(",") if word.strip() not in ("", NONE))


async def _wanted(
    client: Client, options: InstallOptions, chosen: dict[str, Any], arguments: argparse.Namespace
) -> list[Part]:
    found = parts(options)
    if arguments.crds_only:
        return [part for part in found if part.component == "crds"]
    if options.console:
        found.append(await applying.console_key(client, options))
        found += await _identity_provider(client, options, arguments)
    return [*found, applying.memory(options.namespace, chosen)]


async def _identity_provider(client: Client, options: InstallOptions, arguments: argparse.Namespace) -> list[Part]:
    if arguments.oidc_issuer == NONE:
        return []
    given = {ISSUER: arguments.oidc_issuer, CLIENT_ID: arguments.oidc_client_id}
    encoded = {name: text.encode() for name, text in given.items() if text}
    for name, option in ((CLIENT_SECRET, "oidc_client_secret_file"), (CA, "oidc_ca_file")):
        file = getattr(arguments, option)
        if file is not None:
            encoded[name] = read(f"--{option.replace('_', '-')}", file)
    part = await applying.identity_provider(
        client, options, {name: base64.b64encode(text).decode() for name, text in encoded.items()}
    )
    if part is None:
        return []
    if encoded and not {ISSUER, CLIENT_ID} <= part.object["data"].keys():
        raise UsageError("--oidc-issuer and --oidc-client-id belong together")
    return [part]


# ---------------------------------------------------------------- what is told


async def _check(client: Client, options: InstallOptions, wanted: list[Part]) -> None:
    found = await checks.findings(checks.Asked(client, options, wanted))
    for finding in found:
        if not finding.fatal:
            print(f"warning: {finding}")
    fatal = [finding for finding in found if finding.fatal]
    if fatal:
        raise CommandError("\ndanlu: ".join(map(str, fatal)) + "\nNothing was changed.")


def _tell_kept(arguments: argparse.Namespace, chosen: dict[str, Any], last: Memory) -> None:
    kept = [name for name in last.chosen if getattr(arguments, name, None) is None and name in chosen]
    if last.version != __version__:
        print(f"upgrades version {last.version}; jobs keep running")
    if kept:
        said = ", ".join(f"{name.replace('_', '-')} {_said(chosen[name])}" for name in kept)
        print(f"as chosen before: {said}")


def _said(value: object) -> str:
    return str(value) if not isinstance(value, bool) else "yes" if value else "no"


def _show(made: plan.Plan, *, all_lines: bool) -> None:
    for change in made.wanted:
        print(f"  {SIGNS[change.action]} {change.title}")
        lines = [line for line in change.diff[2:] if not line.startswith("@@")]
        shown = lines if all_lines else lines[:MOST_LINES]
        for line in shown:
            print(f"      {line}")
        if len(lines) > len(shown):
            print(f"      … {len(lines) - len(shown)} more lines; --dry-run shows all")
    counted = ", ".join(
        f"{count} {word}"
        for action, word in (
            ("create", "to create"),
            ("change", "to change"),
            ("delete", "to delete"),
            ("same", "as is"),
        )
        if (count := sum(change.action == action for change in made.changes))
    )
    print(counted)


def _tell_next(options: InstallOptions) -> None:
    print(
        "Danlu is installed. A first job: kubectl apply -f examples/03-kubeflow-pytorchjob/job.yaml; "
        "docs/en/how-to/cluster.md tells more"
    )
    if options.console and not options.console_url:
        print(
            f"The console: kubectl -n {options.namespace} port-forward service/danlu-console 8080:80 8081:8081, "
            "then http://127.0.0.1:8080"
        )
