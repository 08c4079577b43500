"""networking.k8s.io Ingress: routes for those of our class, listeners while there are any, and their status."""

from __future__ import annotations

import asyncio
import base64
import errno
import ssl
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from danlu.diagnose import stated
from danlu.embedded.apiserver.auth.certificateauthority import KeyPair
from danlu.embedded.bootstrap import INGRESS_CONTROLLER
from danlu.embedded.ingress import routes
from danlu.embedded.ingress.ingressproxy import Connect, IngressProxy
from danlu.embedded.ingress.routes import RouteBackend
from danlu.embedded.settings import IngressSettings
from danlu.meta import objects
from danlu.meta.kind import Object
from danlu.meta.wellknown import INGRESS, INGRESS_CLASS, SECRET, SERVICE
from danlu.net.listener import Listening, bind
from danlu.runtime import Controller, Manager, Outcome, Request
from danlu.runtime.outcomewriter import write_status

CLASS_ANNOTATION = "kubernetes.io/ingress.class"
RETRY_S = 5.0
GATHER_S = 0.05
_ALL = Request("", "all")  # routes come from all Ingresses together


@dataclass(frozen=True, slots=True)
class IngressServices:
    settings: IngressSettings
    connect: Connect
    certificate: KeyPair  # for hosts that have none of their own
    write_addresses: Callable[[list[str]], None]  # for `danlu status`


def make(manager: Manager, services: IngressServices) -> IngressController:
    ingresses = IngressController(manager, services)
    controller = Controller("ingress", ingresses.reconcile)

    def everything(_: Object) -> list[Request]:
        return [_ALL]

    for informer in (ingresses.ingresses, ingresses.classes, ingresses.secrets):
        controller.watches(informer, everything, gather_s=GATHER_S)
    manager.add(controller)
    return ingresses


class IngressController:
    def __init__(self, manager: Manager, services: IngressServices) -> None:
        self.client, self._services = manager.client, services
        self.recorder = manager.recorder("ingress-controller")
        self.ingresses = manager.informer(INGRESS)
        self.classes = manager.informer(INGRESS_CLASS)
        self.secrets = manager.informer(SECRET, fields="type=kubernetes.io/tls")
        self.services = manager.informer(SERVICE)
        self.proxy = IngressProxy(services.connect, self._port)
        self._listening: dict[bool, Listening] = {}  # with TLS, and without
        self._stopped = False
        self._told: set[tuple[str, bool]] = set()  # which Ingresses have heard that a port cannot be had
        self._contexts: dict[tuple[str, str], tuple[str, ssl.SSLContext]] = {}  # by secret: its version, and what it is

    async def stop(self) -> None:
        self._stopped = True
        for secure in [*self._listening]:
            await self._close(secure)
        await self.proxy.close()

    async def reconcile(self, _: Request) -> Outcome | None:
        informers = (self.ingresses, self.classes, self.secrets, self.services)
        await asyncio.gather(*(one.synced() for one in informers))  # else a start would take back what statuses say
        if self._stopped:
            return None
        known = self.ingresses.list()
        ours = [one for one in known if self._is_ours(one) and not objects.is_deleting(one)]
        self.proxy.routes = routes.routes(ours)
        failed = [
            await self._keep(bool(ours), secure=False, told=ours),
            await self._keep(any(objects.get(one, "spec.tls") for one in ours), secure=True, told=ours),
        ]
        self._services.write_addresses([self._url(secure) for secure in sorted(self._listening)])
        served = {objects.uid(one) for one in ours}
        for ingress in known:
            await self._say(ingress, objects.uid(ingress) in served)
        return Outcome(requeue_after=RETRY_S) if any(failed) else None

    def _is_ours(self, ingress: Object) -> bool:
        name = objects.get(ingress, "spec.ingressClassName") or objects.annotations_of(ingress).get(CLASS_ANNOTATION)
        found = self.classes.get("", name) if name else None
        return found is not None and objects.get(found, "spec.controller") == INGRESS_CONTROLLER

    def _port(self, backend: RouteBackend) -> int | None:
        service = self.services.get(backend.namespace, backend.service)
        for port in objects.get(service or {}, "spec.ports") or ():
            if backend.port in (port.get("name"), port["port"]):
                return int(port["port"])
        return None

    # -- listeners

    async def _keep(self, wanted: bool, *, secure: bool, told: list[Object]) -> bool:
        """Whether it could not be had."""
        if not wanted or secure in self._listening:
            if not wanted and secure in self._listening:
                await self._close(secure)
            return False
        settings = self._services.settings
        try:
            listener = bind(settings.host, self._number(secure))
        except OSError as error:
            for ingress in told:
                if (objects.uid(ingress), secure) not in self._told:
                    self._told.add((objects.uid(ingress), secure))
                    self.recorder.warning(ingress, "FailedToListen", self._refused(secure, error))
            return True
        self._told.clear()
        options: dict[str, Any] = {}
        if secure:
            pair = self._services.certificate
            options = {"ssl_certfile": str(pair.certificate), "ssl_keyfile": str(pair.key)}
        made = self._listening[secure] = Listening(self.proxy, listener, **options)
        await made.start()
        if (context := made.tls) is not None:
            context.sni_callback = self._choose
        return False

    async def _close(self, secure: bool) -> None:
        await self._listening.pop(secure).stop()

    def _number(self, secure: bool) -> int:
        return self._services.settings.https_port if secure else self._services.settings.http_port

    def _url(self, secure: bool) -> str:
        return f"{'https' if secure else 'http'}://{self._services.settings.host}:{self._number(secure)}"

    def _refused(self, secure: bool, error: OSError) -> str:
        at = f"{self._services.settings.host}:{self._number(secure)}"
        if error.errno == errno.EADDRINUSE:
            return stated("DL-INGRESS-PORT", at=at)
        return stated("DL-PORT-REFUSED", at=at, error=error.strerror or str(error))

    # -- certificates

    def _choose(self, connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        """While a client greets: the certificate of the host it names; without one the listener's own stays."""
        key = self.proxy.routes.secret((name or "").lower())
        context = self._context(key) if key is not None else None
        if context is not None:
            connection.context = context

    def _context(self, key: tuple[str, str]) -> ssl.SSLContext | None:
        secret = self.secrets.get(*key)
        if secret is None:
            return None
        version = objects.get(secret, "metadata.resourceVersion", "")
        known = self._contexts.get(key)
        if known is None or known[0] != version:
            try:
                known = self._contexts[key] = version, _context_of(secret)
            except (OSError, ValueError, KeyError):
                return None  # what is no certificate is served as if there were none
        return known[1]

    # -- status

    async def _say(self, ingress: Object, ours: bool) -> None:
        """Another controller's Ingress is its own; one that was ours says no longer that it answers here."""
        here = {"ip": self._services.settings.host}
        told = objects.get(ingress, "status.loadBalancer.ingress") or []
        secure = bool(objects.get(ingress, "spec.tls"))
        listening = [flag for flag in (False, True) if flag in self._listening and (secure or not flag)]
        ports = [{"port": self._number(flag), "protocol": "TCP"} for flag in listening]
        wanted = [{**here, "ports": ports}] if ours and ports else []
        if told == wanted or (not ours and [point.get("ip") for point in told] != [here["ip"]]):
            return
        balancer = {"ingress": wanted} if wanted else {}
        await write_status(self.client, INGRESS, ingress, {**(ingress.get("status") or {}), "loadBalancer": balancer})


def _context_of(secret: Object) -> ssl.SSLContext:
    """The library reads certificates from files only: they are there for that moment, and nobody else can read them."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("tls.crt", "tls.key")]
        for file in files:
            file.touch(mode=0o600)
            file.write_bytes(base64.b64decode(secret["data"][file.name]))
        context.load_cert_chain(files[0], files[1])
    return context
