"""A Kubernetes in one process: store → API → bootstrap objects → controllers → scheduler → nodes.

Parts are started in that order because each needs the one before, and stopped in the opposite one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket

from danlu import __version__
from danlu.client.client import Client
from danlu.embedded import bootstrap
from danlu.embedded.apiserver import admission
from danlu.embedded.apiserver.addresses import ServiceAddresses
from danlu.embedded.apiserver.app import App, pages
from danlu.embedded.apiserver.auth import kubeconfig
from danlu.embedded.apiserver.auth.authenticate import Authenticator
from danlu.embedded.apiserver.auth.certificates import Certificates
from danlu.embedded.apiserver.auth.rbac import Authorizer
from danlu.embedded.apiserver.auth.tokens import ServiceAccountTokens, StaticTokens
from danlu.embedded.apiserver.inprocess import InProcess
from danlu.embedded.apiserver.listening import Listener, bind
from danlu.embedded.apiserver.metrics import Metrics
from danlu.embedded.apiserver.registry import Registry
from danlu.embedded.apiserver.request import User
from danlu.embedded.apiserver.server import Server
from danlu.embedded.builtin import BUILTINS
from danlu.embedded.controllers import CONTROLLERS
from danlu.embedded.datadir import DataDirectory, Running
from danlu.embedded.storage import SqliteJournal, Store
from danlu.meta import clock
from danlu.runtime.manager import Manager
from danlu.settings import ClusterSettings

log = logging.getLogger("danlu.cluster")

ADMIN = "kubernetes-admin"
MASTERS = "system:masters"


class Cluster:
    def __init__(self, settings: ClusterSettings) -> None:
        self.settings = settings
        self.directory = DataDirectory(settings.data_dir)
        self.url = ""
        self._stopping: list[object] = []

    async def start(self) -> None:
        """Returns when `kubectl` works. Raises DataDirectoryError or OSError (the port) with nothing left behind."""
        self.directory.prepare()
        self.directory.acquire()
        try:
            self._socket = bind(self.settings.host, self.settings.port)
            try:
                await self._start_api(self._socket)
            except BaseException:
                self._socket.close()
                raise
        except BaseException:
            self.directory.release()
            raise
        await self._start_parts()

    async def _start_api(self, listener: socket.socket) -> None:
        directory, settings = self.directory, self.settings
        port = listener.getsockname()[1]
        self.url = f"https://{settings.host}:{port}"
        self.certificates = certificates = Certificates(directory.certificates)
        certificates.ensure_authority()
        pair = certificates.ensure_server((settings.host, *settings.extra_names))
        admin = certificates.ensure_client("admin", ADMIN, (MASTERS,))
        self.store = store = Store(SqliteJournal(directory.database))
        store.start()
        self.server = self._make_server(store, certificates)
        self.client = Client(InProcess(self.server, User(ADMIN, "", (MASTERS, "system:authenticated"))))
        self.listener = Listener(
            App(self.server), listener, pair.certificate, pair.key, certificates.authority.certificate
        )
        await bootstrap.ensure(self.client, store)
        await self.listener.start()
        kubeconfig.write(
            directory.kubeconfig, kubeconfig.admin_config(self.url, certificates.authority_pem(), admin)
        )
        directory.describe(Running(os.getpid(), self.url, clock.now_rfc3339(), __version__))

    def _make_server(self, store: Store, certificates: Certificates) -> Server:
        registry = Registry(BUILTINS)
        authorizer = Authorizer(store)
        accounts = ServiceAccountTokens(store, certificates.directory / "service-accounts.key")
        static = StaticTokens(certificates.directory / "tokens.csv")
        chain = admission.Chain((ServiceAddresses(store), *admission.standard_chain(store, authorizer).plugins))
        server = Server(store, registry, authorizer, Authenticator(authorizer, accounts, static), chain, pages(), Metrics())
        try:  # for the first hours only: crds.py is being written
            from danlu.embedded.apiserver import crds
            crds.serve(store, registry)
        except ImportError:
            pass
        return server

    async def _start_parts(self) -> None:
        if self.settings.run_controllers:
            self.manager = Manager(self.component("system:kube-controller-manager"))
            self.manager.add_all(CONTROLLERS)
            await self.manager.start()

    def component(self, name: str) -> Client:
        """A client for one part of the system, under its own name."""
        return Client(InProcess(self.server, User(name, "", (MASTERS, "system:authenticated"))))

    async def stop(self, *, stop_pods: bool = True) -> None:
        if self.settings.run_controllers:
            await self.manager.stop()
        await self.listener.stop()
        await self.store.close()
        self.directory.release()


async def run_until(cluster: Cluster, stop: asyncio.Event) -> None:
    await cluster.start()
    try:
        await stop.wait()
    finally:
        await cluster.stop()
