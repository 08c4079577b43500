"""The console of the embedded cluster: its two ports, and the API server of the same process behind it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import secrets
import socket
import ssl
from collections.abc import Sequence

from danlu.console.apptransport import Directly
from danlu.console.consoleserver import ConsoleServer
from danlu.console.kubeapi import InThisProcess
from danlu.console.settings import HOUR, ConsoleSettings
from danlu.embedded.apiserver.app import App
from danlu.embedded.cluster import Cluster
from danlu.net.listener import bind
from danlu.standalone.consolelink import HOST, ConsoleFile

PORT, APPS_PORT = 8080, 8081
# Another name than the console's: browsers then keep the cookies of the two apart, which they do not do for ports.
APPS_HOST = "localhost"
SESSION_S = 30 * 24 * HOUR  # whoever has this machine's account needs no sign-in at all to read the kubeconfig


class EmbeddedConsole:
    def __init__(self, cluster: Cluster, port: int | None) -> None:
        """`port` None: the usual one, or any free one if it is taken. Raises OSError when a port asked for is taken."""
        self._file = ConsoleFile(cluster.directory.root)
        kept = self._file.read()
        asked = [port] if port is not None else [kept.get("port") or PORT, PORT, 0]
        self._listeners = _bind(asked)
        own = self._listeners[0].getsockname()[1]
        apps = [kept["appsPort"]] if kept.get("appsPort") else []
        self._apps_listeners = _bind([*apps, own + 1, APPS_PORT, 0])
        apps_port = self._apps_listeners[0].getsockname()[1]
        for listener in (*self._listeners, *self._apps_listeners):
            cluster.reserved_ports.add(*listener.getsockname()[:2])
        cluster.reserved_ports.settle()
        # After a crash pods go on without us. Where our ports were, one of them may have listened, and open tabs have
        # sent it their sign-ins and people their link: none of these is good any more.
        known = kept if kept.get("ended") else {}
        self._kept = {
            "token": known.get("token") or secrets.token_hex(24),
            "key": known.get("key") or base64.b64encode(os.urandom(32)).decode(),
            "port": own,
            "appsPort": apps_port,
            "pid": os.getpid(),
        }
        self.settings = ConsoleSettings(
            target="embedded",
            url=f"http://{HOST}:{own}",
            apps_url=f"http://{APPS_HOST}:{apps_port}",
            key=base64.b64decode(self._kept["key"]),
            link_token=self._kept["token"],
            session_s=SESSION_S,
        )
        admin = cluster.certificates.directory / "admin.crt"
        api = InThisProcess(App(cluster.server), ssl.PEM_cert_to_DER_cert(admin.read_text()))
        reach = Directly(cluster.connect)
        self._server = ConsoleServer(self.settings, api, reach, self._listeners, self._apps_listeners)
        self._held: list[socket.socket] = []

    @property
    def link(self) -> str:
        return f"{self.settings.url}/?token={self.settings.link_token}"

    async def start(self) -> None:
        await self._server.start()
        self._file.write(self._kept)

    async def stop(self) -> None:
        """Serves nobody any more. The ports stay ours until `release`: pods are still to end."""
        self._held = [listener.dup() for listener in (*self._listeners, *self._apps_listeners)]
        await self._server.stop()
        for listener in self._held:
            asyncio.get_running_loop().add_reader(listener, _turn_away, listener)

    def release(self, *, pods_ended: bool) -> None:
        if pods_ended:
            self._file.write(self._kept | {"ended": True})
        for listener in self._held:
            asyncio.get_running_loop().remove_reader(listener)
            listener.close()


def _turn_away(listener: socket.socket) -> None:
    with contextlib.suppress(OSError):
        listener.accept()[0].close()


def _bind(ports: Sequence[int]) -> list[socket.socket]:
    """The first port that is free; on IPv6's loopback, too, where `localhost` may lead."""
    for number, port in enumerate(ports):
        try:
            found = [bind(HOST, port)]
        except OSError:
            if number == len(ports) - 1:
                raise
            continue
        with contextlib.suppress(OSError):
            found.append(bind("::1", found[0].getsockname()[1]))
        return found
    raise ValueError("no port was named")
