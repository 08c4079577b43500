"""Stands in for web servers (nginx, httpd): Python's file server on port 80 of the pod's address.

It serves files and reads no configuration. What it cannot do ends it: a server that serves nothing must not be Ready.
"""

from __future__ import annotations

import functools
import http.server
import os
import signal
import sys
from typing import NoReturn

PORT = 80
CONFIGURATION = ("/etc/nginx", "/usr/local/apache2/conf", "/etc/httpd", "/etc/apache2")
ROOTS = ("/usr/share/nginx/html", "/usr/local/apache2/htdocs", "/var/www/html")
WELCOME = (
    "<!DOCTYPE html><title>Welcome to nginx!</title><h1>Welcome to nginx!</h1>"
    "<p>Served by Danlu's stand-in for this image.</p>\n"
)


def configured(mounts: str) -> str:
    """Where somebody has mounted a configuration that nobody would read; "" where they have not."""
    points = [line.split()[4] for line in mounts.splitlines()]
    return next((p for p in points if any(p == c or p.startswith(c + "/") for c in CONFIGURATION)), "")


def end(why: str) -> NoReturn:
    """Also where the pod's status shows it."""
    text = f"danlu: stand-in for {os.environ.get('DANLU_IMAGE', 'a web server')}: {why}"
    try:
        with open("/dev/termination-log", "r+") as file:
            file.write(text)
    except OSError:
        pass
    sys.exit(text)


def root() -> str:
    found = next((folder for folder in ROOTS if os.path.isdir(folder)), "")
    if not found:
        found = ROOTS[-1]
        os.makedirs(found, exist_ok=True)
        with open(f"{found}/index.html", "w") as page:
            page.write(WELCOME)
    return found


def main() -> None:
    with open("/proc/self/mountinfo") as file:
        place = configured(file.read())
    if place:
        end(f"it serves files only and would not read the configuration at {place}")
    address = os.environ.get("DANLU_POD_IP") or "127.0.0.1"
    for number in (signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        server = http.server.ThreadingHTTPServer((address, PORT), http.server.SimpleHTTPRequestHandler)
    except OSError as error:
        remedy = " (sudo sysctl net.ipv4.ip_unprivileged_port_start=0 allows it)" if error.errno == 13 else ""
        end(f"port {PORT} of {address} cannot be used: {error.strerror}{remedy}")
    server.RequestHandlerClass = functools.partial(http.server.SimpleHTTPRequestHandler, directory=root())
    print(f"danlu: stand-in for {os.environ.get('DANLU_IMAGE')}: http://{address}:{PORT}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
