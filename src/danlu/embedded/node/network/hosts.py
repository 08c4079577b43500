"""Names of services and pods, as hosts files: one for each namespace, bound over /etc/hosts in its pods.

A file that is bound somewhere must stay the same file: it is rewritten in place, never replaced. Changes are gathered
for a moment, and a file is written only when its text differs.

Order matters to those who read: what a namespace calls its own stands first, then names that hold everywhere.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass

from danlu.client.client import Client
from danlu.client.informer import Informer
from danlu.embedded import private_files
from danlu.embedded.node.network.servicetable import Key, ServiceTable
from danlu.embedded.node.pods.environment import hostname
from danlu.embedded.node.settings import CLUSTER_DOMAIN
from danlu.meta.addresses import parse_address
from danlu.meta.kind import Object
from danlu.meta.wellknown import POD

log = logging.getLogger(__name__)

GATHER_SECONDS = 0.05
RETRY_SECONDS = 2.0  # after a full disk
HEAD = """\
# Written by danlu: names of services and pods. Changes made here are lost.
127.0.0.1 localhost
::1 localhost ip6-localhost ip6-loopback
"""


@dataclass(frozen=True, slots=True)
class _Place:
    """What is known of a pod by name."""

    name: str
    hostname: str
    subdomain: str
    address: str


class Hosts:
    """`file_for` answers with a file that knows this pod and all that came before it."""

    def __init__(self, table: ServiceTable, data_dir: str, client: Client, pods: Informer | None = None) -> None:
        self._table = table
        self._folder = f"{data_dir}/hosts"
        self._data_dir = data_dir
        self._own_informer = pods is None
        self._pods = Informer(client, POD) if pods is None else pods
        self._places: dict[str, dict[str, _Place]] = {}  # namespace -> pod -> place
        self._namespaces: set[str] = set()  # those whose file someone has asked for
        self._aliases: dict[str, tuple[str, str, str]] = {}  # pod uid -> namespace, path, lines of its own
        self._written: dict[str, str] = {}
        self._service_lines: dict[Key, tuple[str, str]] = {}  # own names, names that hold everywhere
        self._stale: set[Key] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._changed = True
        table.listen(self._service_changed)
        self._pods.add_handler(self._pod_changed)

    async def start(self) -> None:
        os.makedirs(self._folder, exist_ok=True)
        if self._own_informer:
            self._pods.start()
        self._stale.update((s["metadata"]["namespace"], s["metadata"]["name"]) for s in self._table.services.list())
        await self._pods.synced()
        for name in os.listdir(self._folder):  # pods that went on running have these files bound
            self._namespaces.add(name)
        self._write_all()

    async def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._own_informer:
            await self._pods.stop()

    def file_for(self, pod: Object) -> str:
        """The path to bind at /etc/hosts of this pod."""
        namespace, uid = pod["metadata"]["namespace"], pod["metadata"]["uid"]
        self._namespaces.add(namespace)
        # The API hears of a pod's address when it runs; the pod itself may ask for its own name before that.
        place = _place(pod)
        is_new = pod["metadata"]["name"] not in self._places.get(namespace, ())
        is_changed = self._learn(pod, place)
        aliases = pod["spec"].get("hostAliases") or []
        path = f"{self._folder}/{namespace}"
        if aliases:
            path = f"{self._data_dir}/pods/{uid}/hosts"
            lines = "".join(f"{alias['ip']} {' '.join(alias.get('hostnames') or [])}\n" for alias in aliases)
            self._aliases[uid] = (namespace, path, f"\n# Entries added by HostAliases.\n{lines}")
            os.makedirs(os.path.dirname(path), exist_ok=True)
        if path not in self._written or (
            is_changed and not (is_new and place is not None and self._add(namespace, place))
        ):
            self._write_all()
        elif self._changed:
            self._plan()  # what others have told since then is on its way
        return path

    def forget(self, pod_uid: str) -> None:
        """A pod's own file is no longer kept (its folder is about to go)."""
        gone = self._aliases.pop(pod_uid, None)
        if gone is not None:
            self._written.pop(gone[1], None)

    # -- what changed

    def _service_changed(self, key: Key) -> None:
        self._stale.add(key)
        self._plan()

    def _pod_changed(self, event: str, pod: Object, _old: Object | None) -> None:
        place = None if event == "DELETED" else _place(pod)
        if place is None and event != "DELETED" and not _is_over(pod):
            return  # no address yet, as far as the API knows
        if self._learn(pod, place):
            self._plan()

    def _learn(self, pod: Object, place: _Place | None) -> bool:
        """Whether that changes anything."""
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        places = self._places.setdefault(namespace, {})
        if places.get(name) == place:
            return False
        if place is None:
            places.pop(name, None)
        else:
            places[name] = place
        self._stale.add((namespace, name))
        self._changed = True
        return True

    def _plan(self, seconds: float = GATHER_SECONDS) -> None:
        self._changed = True
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._write_planned)

    def _write_planned(self) -> None:
        try:
            self._write_all()
        except OSError as error:
            log.warning("hosts files: %s; trying again", error)
            self._plan(RETRY_SECONDS)

    # -- what is written

    def _write_all(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._changed = False
        for key in self._stale:
            lines = self._lines_for(key)
            if lines is None:
                self._service_lines.pop(key, None)
            else:
                self._service_lines[key] = lines
        self._stale.clear()
        own: dict[str, list[str]] = {}
        everywhere = []
        for (namespace, _), (short, full) in self._service_lines.items():
            own.setdefault(namespace, []).append(short)
            everywhere.append(full)
        for namespace, places in self._places.items():
            for place in places.values():
                everywhere.append(_full_names(namespace, place))
        common = "".join(everywhere)
        texts = {ns: self._text(ns, own.get(ns, ()), common) for ns in self._namespaces}
        for namespace, text in texts.items():
            self._write(f"{self._folder}/{namespace}", text)
        for namespace, path, own_lines in self._aliases.values():
            self._write(path, texts[namespace] + own_lines)

    def _add(self, namespace: str, place: _Place) -> bool:
        """Whether a new pod could be put at the end of the files: they can be long, and nearly every pod is new."""
        key = (namespace, place.name)
        if place.subdomain or place.hostname != place.name or self._aliases or any(self._service_lines.get(key, ())):
            return False
        if any(self._lines_for(other) != self._service_lines.get(other) for other in self._stale if other != key):
            return False  # a service that came before this pod is to be found, too
        short, full = self._lines_for(key) or (f"{place.address} {place.name}\n", "")
        for other in self._namespaces:
            path = f"{self._folder}/{other}"
            if path in self._written:
                self._write(path, self._written[path] + (short if other == namespace else "") + full)
        return True

    def _text(self, namespace: str, services: Iterable[str], common: str) -> str:
        taken = {name for ns, name in self._service_lines if ns == namespace}
        pods = []
        for place in self._places.get(namespace, {}).values():
            names = [name for name in dict.fromkeys((place.name, place.hostname)) if name not in taken]
            if place.subdomain:
                # The first name of a line is what `hostname -f` says.
                qualified = f"{place.hostname}.{place.subdomain}"
                names = [f"{qualified}.{namespace}.svc.{CLUSTER_DOMAIN}", *names, qualified]
            if names:
                pods.append(f"{place.address} {' '.join(names)}\n")
        return HEAD + "".join(services) + "".join(pods) + common

    def _lines_for(self, key: Key) -> tuple[str, str] | None:
        service = self._table.service(key)
        if service is None:
            return None
        namespace, name = key
        spec = service.get("spec") or {}
        address = spec.get("clusterIP")
        if spec.get("type") == "ExternalName" or not address:
            return None
        addresses = [address] if address != "None" else [b.address for b in self._table.backends(key)]
        addresses = [one for one in addresses if parse_address(one) is not None]  # a slice may hold names (FQDN)
        if not addresses and (place := self._places.get(namespace, {}).get(name)) is not None:
            addresses = [place.address]  # a job's replica: the others ask for it before it is ready, and so does itself
        qualified = f"{name}.{namespace}"
        short = "".join(f"{ip} {name}\n" for ip in dict.fromkeys(addresses))
        full = "".join(
            f"{ip} {qualified} {qualified}.svc {qualified}.svc.{CLUSTER_DOMAIN}\n" for ip in dict.fromkeys(addresses)
        )
        return short, full

    def _write(self, path: str, text: str) -> None:
        if self._written.get(path) == text:
            return
        before = self._written.get(path)
        kept = len(before) if before is not None and text.startswith(before) else 0  # all of it is ASCII
        data = text[kept:].encode()
        is_new = not os.path.exists(path)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            os.fchmod(fd, 0o644)  # for whoever the pods run as, whatever our umask; the folder is closed
            # All of the room first: half a file would be worse for those who have it bound than yesterday's.
            private_files.try_to_allocate(fd, kept, len(data))
            os.pwrite(fd, data, kept)
            os.ftruncate(fd, kept + len(data))
        except OSError as error:
            if is_new or not private_files.is_full(error):
                raise
            self._plan(RETRY_SECONDS)
            return
        finally:
            os.close(fd)
        self._written[path] = text


def _place(pod: Object) -> _Place | None:
    status = pod.get("status") or {}
    address = status.get("podIP")
    if not address or parse_address(address) is None or _is_over(pod):
        return None
    return _Place(pod["metadata"]["name"], hostname(pod), pod["spec"].get("subdomain") or "", address)


def _is_over(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _full_names(namespace: str, place: _Place) -> str:
    if not place.subdomain:
        return ""
    base = f"{place.hostname}.{place.subdomain}.{namespace}"
    return f"{place.address} {base} {base}.svc {base}.svc.{CLUSTER_DOMAIN}\n"
