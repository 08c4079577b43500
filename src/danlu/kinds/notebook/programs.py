"""The command lines of the programs in a notebook's pod."""

from __future__ import annotations

from importlib.resources import files

from danlu.kinds._served import shape
from danlu.kinds.notebook.schema import NOTEBOOK
from danlu.kinds.webapp import AppPlace, app_path
from danlu.meta.kind import Object

PORTS = {"jupyter": 8888, "rstudio": 8787}
SSH_PORT = 2222
SSH_ACTIVITY_PORT = 2223
FOLDER = "/etc/danlu/notebook"  # where the ConfigMap is mounted
KEYS_FOLDER = "/etc/danlu/authorized-keys"
ADDRESS = "$(NB_ADDRESS)"


def base_path(namespace: str, name: str) -> str:
    return app_path(NOTEBOOK, namespace, name)


def type_of(notebook: Object) -> str:
    return str(notebook["spec"].get("type") or "jupyter")


def http_service(notebook: Object) -> str:
    return f"managed-notebook-http-{shape.digits(notebook)}"


def place(notebook: Object) -> AppPlace:
    """To enter a notebook is to run programs in its pod: reading the Notebook is not enough, its token is asked for."""
    type = type_of(notebook)
    if type != "jupyter":
        return AppPlace(http_service(notebook), PORTS[type])
    secret = str((notebook.get("status") or {}).get("tokenSecret") or "")
    return AppPlace(http_service(notebook), PORTS[type], "lab", secret)


def jupyter(base: str, home: str) -> list[str]:
    """The token comes from the environment (JUPYTER_TOKEN), so that it is in no process list."""
    found = [
        "jupyter", "lab", f"--ip={ADDRESS}", f"--port={PORTS['jupyter']}", "--no-browser", "--allow-root",
        "--ServerApp.port_retries=0",
        f"--ServerApp.base_url={base}",
        # Host names are checked by whoever stands before it: it is always reached through a proxy.
        "--ServerApp.allow_remote_access=True",
        "--ServerApp.trust_xheaders=True",
        "--ServerApp.terminals_enabled=True",
    ]  # fmt: skip
    if home:
        found.append(f"--ServerApp.root_dir={home}")
    return found


def rstudio(base: str) -> list[str]:
    """Its own folders belong to root, and the pod need not: what it keeps while it runs goes into one of ours."""
    missing = "RStudio Server is not installed in this image: there is no program rserver on its PATH"
    return [
        "sh",
        "-c",
        'PATH="$PATH:/usr/lib/rstudio-server/bin:/usr/lib/rstudio/bin"; '
        f"command -v rserver >/dev/null || {{ echo '{missing}' | tee /dev/termination-log; exit 127; }}; "
        'own=$(mktemp -d); printf "provider=sqlite\\ndirectory=%s\\n" "$own" >"$own/database.conf"; '
        'exec rserver --server-daemonize=0 --auth-none=1 --server-user="$(id -un)" --server-data-dir="$own" '
        '--database-config-file="$own/database.conf" --secure-cookie-key-file="$own/cookie-key" '
        # It is shown by a proxy, in a page of whoever stands before it.
        "--www-frame-origin=same --www-verify-user-agent=0 "
        f'--www-address="$NB_ADDRESS" --www-port={PORTS["rstudio"]} --www-root-path={base.rstrip("/")}',
    ]


def with_ssh(command: list[str]) -> list[str]:
    """The SSH server shares the container, so that whoever logs in sees the same files, programs and devices."""
    start = (
        f"(while :; do python3 {FOLDER}/ssh_server.py; sleep 5; done) & "
        'exec "$@"'
    )  # fmt: skip
    return ["sh", "-c", start, "notebook", *command]


def ssh_check() -> list[str]:
    """Ends well in any case; what is missing is its termination message, which the Notebook's condition repeats."""
    missing = "the image has neither the Python package asyncssh nor an sshd"
    return [
        "sh",
        "-c",
        f"python3 -c 'import asyncssh' 2>/dev/null || command -v sshd >/dev/null || [ -x /usr/sbin/sshd ] || "
        f"echo '{missing}' >/dev/termination-log",
    ]


def ssh_program() -> str:
    return files(__package__).joinpath("ssh_server.py").read_text(encoding="utf-8")
