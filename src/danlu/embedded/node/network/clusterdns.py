"""The service kube-dns and the server behind it: where a pod's resolv.conf leads."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from danlu.client.client import Client
from danlu.embedded.node.network.dnsrecords import ClusterRecords
from danlu.embedded.node.network.dnsserver import PORT, DnsServer, MachineServers, Resolver
from danlu.embedded.node.network.podsockets import PodSockets
from danlu.embedded.node.network.servicetable import Key, ServiceTable
from danlu.embedded.node.settings import CLUSTER_DOMAIN
from danlu.errors import AlreadyExists
from danlu.meta.kind import Object
from danlu.meta.wellknown import SERVICE

log = logging.getLogger("danlu.dns")

KUBE_DNS: Key = ("kube-system", "kube-dns")
LABELS = {"k8s-app": "kube-dns", "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS"}


class ClusterDns:
    def __init__(self, client: Client, table: ServiceTable, networks: Sequence[str], sockets: PodSockets) -> None:
        self._client = client
        self._sockets = sockets
        self._table = table
        self._records = ClusterRecords(table, CLUSTER_DOMAIN, networks)
        self._server = DnsServer(self._records, Resolver(MachineServers(own=lambda: self._records.address)))
        self.address = ""  # the `nameserver` of pods; "" while there is none that they could reach

    async def start(self) -> None:
        """Without it names are what /etc/hosts and the machine's resolver say: pods start all the same."""
        service = self._table.service(KUBE_DNS) or await self._make()
        host = (service.get("spec") or {}).get("clusterIP") or ""
        port = self._sockets.meant(PORT)
        self._records.address = host
        try:
            await self._server.listen(host, port)
        except OSError as error:
            log.warning("no DNS server for pods: %s:%d: %s", host, port, error.strerror or error)
            return
        self.address = host

    async def stop(self) -> None:
        await self._server.stop()

    async def _make(self) -> Object:
        ports = [{"name": "dns", "port": PORT, "protocol": "UDP"}, {"name": "dns-tcp", "port": PORT, "protocol": "TCP"}]
        namespace, name = KUBE_DNS
        made = {"metadata": {"name": name, "namespace": namespace, "labels": LABELS}, "spec": {"ports": ports}}
        try:
            return await self._client.create(SERVICE, made, namespace)
        except AlreadyExists:
            return await self._client.get(SERVICE, name, namespace)
