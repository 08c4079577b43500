"""A Kubernetes in one process: store → API → bootstrap objects → controllers → scheduler → nodes.

Parts are started in that order because each needs the one before, and stopped in the opposite one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import socket
from importlib import import_module
from typing import TYPE_CHECKING

from danlu import __version__
from danlu.client.client import Client
from danlu.embedded import bootstrap, damage
from danlu.embedded.apiserver import admission, crds, pagination
from danlu.embedded.apiserver.admission.data_directory import DataDirectoryGuard
from danlu.embedded.apiserver.admission.namespace_users import SYSTEM, NamespaceUsers
from danlu.embedded.apiserver.admission.pod_limit import PodLimit
from danlu.embedded.apiserver.admission.policies import Policies
from danlu.embedded.apiserver.admission.webhooks import Webhooks
from danlu.embedded.apiserver.allocator import NODE_PORTS, ServiceAddresses
from danlu.embedded.apiserver.app import App, pages
from danlu.embedded.apiserver.auth import kubeconfig, pkidamage
from danlu.embedded.apiserver.auth.authenticate import Authenticator
from danlu.embedded.apiserver.auth.certificateauthority import Certificates, KeyPair
from danlu.embedded.apiserver.auth.csrsigner import Signer
from danlu.embedded.apiserver.auth.rbac import Authorizer
from danlu.embedded.apiserver.auth.tokens import ServiceAccountTokens, StaticTokens
from danlu.embedded.apiserver.httpslistener import Listener, bind
from danlu.embedded.apiserver.inprocess import InProcess
from danlu.embedded.apiserver.metrics import Metrics
from danlu.embedded.apiserver.registry import Registry
from danlu.embedded.apiserver.request import User
from danlu.embedded.apiserver.server import RequestPolicy, Server
from danlu.embedded.builtin import BUILTINS
from danlu.embedded.clusteraddresses import CLUSTER_RANGE
from danlu.embedded.datadir import DataDirectory, Running
from danlu.embedded.reservedports import ReservedPorts
from danlu.embedded.settings import ClusterSettings, NodeShare
from danlu.embedded.storage import Quarantine, Space, SqliteJournal, Store
from danlu.embedded.trust import Unmet, Unshareable
from danlu.meta import clock
from danlu.meta.wellknown import POD
from danlu.runtime.manager import Manager
from danlu.runtime.setaside import SetAside
from danlu.runtime.watchdog import Watchdog

if TYPE_CHECKING:
    from danlu.embedded.controllers.serviceaccounts import Authority
    from danlu.embedded.node.imagesource import ImageSource

log = logging.getLogger("danlu.cluster")

ADMIN = "kubernetes-admin"
LOOPBACK = "127.0.0.1"
MASTERS = "system:masters"
SPACE_EVERY_S = 2.0  # one system call; a pod writes some GB meanwhile, which the reserve does not care about
CERTIFICATES_EVERY_S = 10.0  # a few comparisons; so long are they useless after the clock was set


class Cluster:
    def __init__(self, settings: ClusterSettings, images: ImageSource | None = None) -> None:
        """`images`: what stands behind the names of images; without it, this machine."""
        self.settings = settings
        self.images = images
        self.directory = DataDirectory(settings.data_dir)
        self.url = ""
        self.reserved_ports = ReservedPorts(self.directory.root)
        self.set_aside = SetAside()
        self.authority: Authority | None = None  # who publishes it; None without controllers

    async def start(self) -> None:
        """Returns when `kubectl` works. Whatever it raises, nothing is left behind: no port, no lock, no process."""
        self._parts = contextlib.AsyncExitStack()
        self._stop_pods = False  # of a start that fails: they go on, and the next start takes them up
        try:
            self.directory.prepare()
            self.directory.acquire()
            self._parts.callback(self.directory.release)
            self._socket = self._bind()
            self._parts.callback(self._socket.close)
            await self._start_api(self._socket)
            await self._start_parts()
            self._keeping = [
                asyncio.create_task(self._keep_certificates(), name="certificates"),
                asyncio.create_task(self._keep_room(), name="space"),
            ]
            self._parts.push_async_callback(self._stop_keeping)
        except BaseException:
            await self._parts.aclose()
            raise

    def _bind(self) -> socket.socket:
        """ "Any free port" means the one of last time if it is still free: kubeconfigs and pods know it."""
        settings = self.settings
        if settings.port == 0 and self.directory.last_port:
            with contextlib.suppress(OSError):
                return bind(settings.host, self.directory.last_port)
        listener = bind(settings.host, settings.port)
        self.directory.remember_port(listener.getsockname()[1])
        return listener

    async def _start_api(self, listener: socket.socket) -> None:
        directory, settings = self.directory, self.settings
        port = listener.getsockname()[1]
        self.url = f"https://{settings.host}:{port}"
        quarantine = Quarantine(directory.quarantine)
        findings = pkidamage.check(directory.certificates, quarantine)
        self.certificates = certificates = Certificates(directory.certificates)
        self._pair, admin = self._ensure_certificates()
        self.space = Space(directory.database, settings.space)
        self.space.open()
        self._parts.callback(self.space.close)
        journal = SqliteJournal(directory.database, space=self.space)
        self.store = store = Store(journal, self.space)
        store.start()
        self._parts.push_async_callback(store.close)
        self.server = self._make_server(store, certificates)
        self._start_audit()
        self.client = Client(InProcess(self.server, User(ADMIN, "", (MASTERS, "system:authenticated"))))
        self.listener = Listener(
            App(self.server),
            listener,
            self._pair.certificate,
            self._pair.key,
            certificates.authority.certificate,
            settings.request_limits.connections,
        )
        await bootstrap.ensure(self.starting_as(ADMIN), store)
        if settings.shared:
            await bootstrap.ensure_baseline(self.starting_as(ADMIN), store, self._system_namespaces())
        await damage.tell(self.client, [*findings, *journal.findings])
        self._parts.push_async_callback(self.listener.stop)
        await self.listener.start()
        self._write_kubeconfig(admin)
        directory.describe(Running(os.getpid(), self.url, clock.now_rfc3339(), __version__, self.settings.shared))

    def _system_namespaces(self) -> frozenset[str]:
        return SYSTEM | {*self.settings.system_namespaces}

    def _ensure_certificates(self) -> tuple[KeyPair, KeyPair]:
        """The server's and the administrator's; what does not hold now, by either end, is made again."""
        self.certificates.ensure_authority()
        server = self.certificates.ensure_server((self.settings.host, *self.settings.extra_names))
        admin = self.certificates.ensure_client("admin", ADMIN, (MASTERS,))
        pkidamage.record(self.directory.certificates)
        return server, admin

    def _write_kubeconfig(self, admin: KeyPair) -> None:
        config = kubeconfig.admin_config(self.url, self.certificates.authority_pem(), admin)
        kubeconfig.write(self.directory.kubeconfig, config)

    async def _keep_certificates(self) -> None:
        """While it runs: before an end comes near, and after the clock was set, which may make all of them useless."""
        while True:
            await asyncio.sleep(CERTIFICATES_EVERY_S)
            try:
                if not self.certificates.outdated():
                    continue
                _, admin = await asyncio.to_thread(self._ensure_certificates)
                self.listener.reload()
                self._write_kubeconfig(admin)
                if self.authority is not None:
                    self.authority.replace(self.certificates.authority_pem())
                log.warning("certificates were made again; %s has the new ones", self.directory.kubeconfig)
            except (OSError, ValueError) as error:
                log.warning("certificates could not be made again: %s; another try soon", error)

    async def _keep_room(self) -> None:
        """Looks at the disk; what changes is told to the nodes, whose condition and events say so."""
        told = ""
        while True:
            with contextlib.suppress(OSError):
                await asyncio.to_thread(self.space.check)
            if self.space.alarm != told and self.settings.run_node:
                told = self.space.alarm
                self.agent.evictions.disk_alarm_changed(told)
            await asyncio.sleep(SPACE_EVERY_S)

    def _start_audit(self) -> None:
        """Raises PolicyError, or OSError when the log cannot be written."""
        audit = self.settings.audit
        if audit.policy_file is None:
            return
        from danlu.embedded.apiserver.audit.auditlog import Log
        from danlu.embedded.apiserver.audit.auditor import Auditor
        from danlu.embedded.apiserver.audit.auditpolicy import read_policy

        policy = read_policy(audit.policy_file)
        file = audit.log_path or self.directory.root / "audit.log"
        self.server.audit = Auditor(policy, Log(file, audit.log_maxsize << 20, audit.log_maxbackup))
        self._parts.callback(self.server.audit.close)

    def _make_server(self, store: Store, certificates: Certificates) -> Server:
        registry = Registry(BUILTINS)
        authorizer = Authorizer(store)
        accounts = ServiceAccountTokens(store, certificates.directory / "service-accounts.key")
        static = StaticTokens(certificates.directory / "tokens.csv")
        # The salt keeps two clusters on one machine from giving the same address to services of the same name.
        further: list[admission.Plugin] = [
            ServiceAddresses(store, salt=str(self.directory.root)),
            crds.Naming(store),
            Policies(store, registry),
            DataDirectoryGuard(self.directory.root),
            PodLimit(store, self.settings.max_pods, self.settings.max_pods_per_namespace),
        ]
        if self.settings.shared:
            users = NamespaceUsers(store, self._system_namespaces())
            _refuse_pods_from_before(users, store)
            further.append(users)
        chain = admission.standard_chain(store, authorizer, further, self.settings.pod_security)
        policy = RequestPolicy(
            Authenticator(authorizer, accounts, static, anonymous=not self.settings.shared),
            authorizer,
            chain,
            Webhooks(store, registry),
            self.settings.request_limits,
        )
        page_key = pagination.read_key(certificates.directory / "continue.secret")
        server = Server(store, registry, policy, pages(), Metrics(), page_key)
        crds.CustomKinds(store, registry)
        return server

    async def _start_parts(self) -> None:
        self.set_aside = SetAside(self.directory.read_set_aside(), self.directory.write_set_aside)
        self.watchdog = Watchdog(self.set_aside, self.directory.set_aside_path)
        self.watchdog.start()
        self._parts.push_async_callback(self.watchdog.stop)
        # The API answers already. The rest of the program, a third of it, is loaded beside that.
        await asyncio.to_thread(_load_parts)
        from danlu.embedded.controllers import CONTROLLERS, system
        from danlu.embedded.controllers.serviceaccounts import Authority
        from danlu.embedded.scheduler.scheduler import Scheduler

        if self.settings.run_controllers:
            self.authority = Authority(self.certificates.authority_pem())
            self.manager = Manager(self.component("kube-controller-manager"), set_aside=self.set_aside)
            self.manager.add_all(CONTROLLERS)
            self.manager.add_all(
                system.factories(self.directory.volumes, self.authority, Signer(self.certificates.authority))
            )
            self.scheduler = Scheduler(self.manager, self.component("kube-scheduler"))
            self._parts.push_async_callback(self.manager.stop)
            await self.manager.start()
            self._parts.push_async_callback(self.scheduler.stop)
            await self.scheduler.start()
        if self.settings.run_node:
            await self._start_nodes()

    async def _start_nodes(self) -> None:
        from danlu.embedded.node.agent import Agent, AgentParts
        from danlu.embedded.node.machineservices import MachineServices, ServiceNetwork
        from danlu.embedded.node.network.podsockets import PodSockets
        from danlu.embedded.node.pressure.usage import Usages
        from danlu.embedded.node.settings import NodeSettings
        from danlu.embedded.node.streams import Streams

        settings, port = self.settings, self._socket.getsockname()[1]
        shares = settings.nodes or [NodeShare(node_name())]
        client = self.component("system:node:" + shares[0].name)
        # One copy of all pods in memory is enough: the node reads along with the controllers.
        shared = self.manager.informer if settings.run_controllers else None
        self.directory.write_held([])
        for address in {settings.host, LOOPBACK}:
            self.reserved_ports.add(address, port)
        self.reserved_ports.add(LOOPBACK, NODE_PORTS[0], NODE_PORTS[-1])
        for number in (settings.ingress.http_port, settings.ingress.https_port):
            self.reserved_ports.add(settings.ingress.host, number)
        node_settings = NodeSettings(shared=settings.shared, service_network=CLUSTER_RANGE)
        sockets = PodSockets.of(self.directory.root, node_settings.pod_network)
        self.node_services = MachineServices(
            client,
            self.directory.root,
            shares,
            ServiceNetwork(
                (settings.host, port),
                sockets,
                (node_settings.pod_network, node_settings.service_network),
                self.directory.write_held,
            ),
            settings.fake_gpus,
            shared,
        )
        self._parts.push_async_callback(self.node_services.stop)
        await self.node_services.start()
        self.agent = Agent(
            client,
            self.directory.root,
            shares=shares,
            settings=node_settings,
            parts=AgentParts(
                node_services=self.node_services,
                images=self.images,
                sockets=sockets,
                port=port,
                pods=shared(POD) if shared else None,
                disk_alarm=lambda: self.space.alarm,
            ),
        )
        self._parts.push_async_callback(self._stop_agent)
        await self.agent.start()
        if settings.run_controllers:
            await self._serve_ingresses()
        streams = Streams(self.agent.containers, sockets)
        self.server.connect = sockets.connect
        self.server.node_streams = dict.fromkeys((share.name for share in shares), streams)
        self.server.node_usage = Usages(self.agent.containers, len(shares))

    async def _serve_ingresses(self) -> None:
        from danlu.embedded.ingress import controller as ingress

        self.directory.write_ingress([])
        services = ingress.IngressServices(
            self.settings.ingress, self.node_services.connect, self._pair, self.directory.write_ingress
        )
        serving = ingress.make(self.manager, services)
        self._parts.push_async_callback(serving.stop)

    async def connect(self, host: str, port: int) -> socket.socket:
        """To a pod behind a service, which is named as the cluster's DNS does (SERVICE.NAMESPACE.svc). Raises OSError.

        The connection is verified: whatever is sent reaches the pod, or nobody.
        """
        service, namespace, _ = host.split(".", 2)
        return await self.node_services.connect(namespace, service, port)

    def component(self, name: str) -> Client:
        """A client for one part of the system, under its own name."""
        return Client(InProcess(self.server, User(name, "", (MASTERS, "system:authenticated"))))

    def starting_as(self, name: str) -> Client:
        """As `component`, for what must be written before anything else works: no webhook or policy is asked."""
        return Client(InProcess(self.server, User(name, "", (MASTERS, "system:authenticated"), starting=True)))

    def describe(self) -> dict[str, str]:
        """Facts for whoever started it."""
        facts = {}
        if self.settings.run_node:
            offers = self.agent.offers
            cores = sum(offer.cpu_milli for offer in offers) / 1000
            memory = sum(offer.memory for offer in offers) / 2**30
            facts["nodes"] = f"{len(offers)} ({cores:.3g} cores, {memory:.0f} GiB memory)"
            facts["pods"] = self.agent.capabilities.reason
        return facts

    def longest_grace_s(self) -> float:
        """For how long stopping may have to wait for pods."""
        return self.agent.pods.longest_grace_s() if self.settings.run_node else 0.0

    async def _stop_agent(self) -> None:
        await self.agent.stop(kill_pods=self._stop_pods)

    async def stop(self, *, stop_pods: bool = True) -> None:
        self._stop_pods = stop_pods
        await self._parts.aclose()

    async def _stop_keeping(self) -> None:
        for task in self._keeping:
            task.cancel()
        await asyncio.gather(*self._keeping, return_exceptions=True)


def _refuse_pods_from_before(users: NamespaceUsers, store: Store) -> None:
    """A pod that was made while one person had the instance runs as the server's own account, and goes on doing so."""
    before = [
        f"{stored.namespace}/{stored.name}" for stored in store.scan(POD.resource) if users.is_stranger(stored.obj)
    ]
    if before:
        raise Unshareable([Unmet("pods-from-before", {"pods": ", ".join(before[:5]), "count": str(len(before))})])


def _load_parts() -> None:
    for name in (
        "controllers.system",
        "ingress.controller",
        "scheduler.scheduler",
        "node.agent",
        "node.streams",
        "node.machineservices",
        "node.pressure.usage",
    ):
        import_module(f"danlu.embedded.{name}")


def node_name() -> str:
    """The machine's own, as far as it can be the name of a node."""
    name = re.sub(r"[^a-z0-9.-]+", "-", socket.gethostname().lower()).strip("-.")
    return name or "danlu"
