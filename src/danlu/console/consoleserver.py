"""The console's two servers, pages and apps, over one way to the API and one way to the apps."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from danlu.console.app import Console
from danlu.console.apps import Apps
from danlu.console.apptransport import Reach
from danlu.console.kubeapi import KubeApi
from danlu.console.settings import ConsoleSettings, OidcSettings
from danlu.net.listener import Listening


class ConsoleServer:
    def __init__(
        self,
        settings: ConsoleSettings,
        api: KubeApi,
        reach: Reach,
        listeners: Sequence[socket.socket],
        apps_listeners: Sequence[socket.socket],
    ) -> None:
        self.settings = settings
        self._reach = reach
        self._console = Console(settings, api)
        apps = Apps(settings, self._console.finder, reach, self._console.sealer, self._console.renewals)
        self._serving = [Listening(self._console, *listeners), Listening(apps, *apps_listeners)]

    async def start(self) -> None:
        for one in self._serving:
            await one.start()

    async def stop(self) -> None:
        for one in self._serving:
            await one.stop()
        await self._reach.close()

    async def close(self) -> None:
        """After `stop`: also what it holds towards the API and the identity provider."""
        await self._console.close()

    async def change_identity(self, oidc: OidcSettings | None) -> None:
        """People sign in with another identity provider from now on."""
        await self._console.change_identity(oidc)
