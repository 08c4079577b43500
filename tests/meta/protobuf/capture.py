"""Writes captured.json: what a real kubectl sends for some commands, byte for byte, and the object that it meant.

    python tests/meta/protobuf/capture.py [PATH/TO/kubectl]

A server that only listens takes down each body; `--dry-run=client -o json` says what it stands for.
"""

from __future__ import annotations

import base64
import http.server
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, ClassVar

COMMANDS = (
    "namespace team-a",
    "secret generic key --from-literal=token=hidden",
    "secret docker-registry pull --docker-username=u --docker-password=p --docker-server=registry.example",
    "configmap settings --from-literal=rate=0.1 --from-literal=empty=",
    "serviceaccount robot",
    "quota limits --hard=cpu=1,memory=1G,pods=2,requests.nvidia.com/gpu=1",
    "priorityclass high --value=1000 --global-default=false --description=first",
    "rolebinding reads --role=reader --user=jane --serviceaccount=default:robot",
    "clusterrolebinding reads --clusterrole=reader --group=team",
    "job once --image=busybox -- sh -c true",
    "deployment web --image=nginx --replicas=2 --port=8080",
    "service clusterip web --tcp=80:8080",
    "service nodeport out --tcp=5678:8080 --node-port=31000",
    "token robot --duration=10m",
)


class Recorder(http.server.BaseHTTPRequestHandler):
    bodies: ClassVar[list[tuple[str, bytes]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.bodies.append((self.headers["Content-Type"], body))
        self.send_error(418)

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


def main() -> None:
    kubectl = sys.argv[1] if len(sys.argv) > 1 else "kubectl"
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    where = f"--server=http://127.0.0.1:{server.server_port}"
    found = []
    for command in COMMANDS:
        words = [kubectl, "create", *command.split()]
        cut = words.index("--") if "--" in words else len(words)
        Recorder.bodies.clear()
        for flags in (["--validate=false"], []):  # `create token` does not know the flag
            if not Recorder.bodies:
                subprocess.run([*words[:cut], where, *flags, *words[cut:]], capture_output=True)
        if not Recorder.bodies or "protobuf" not in Recorder.bodies[0][0]:
            print(f"not protobuf: {command}", file=sys.stderr)
            continue
        meant = subprocess.run(
            [*words[:cut], "--dry-run=client", "-o", "json", *words[cut:]], capture_output=True, text=True
        )
        entry: dict[str, Any] = {"command": command, "body": base64.b64encode(Recorder.bodies[0][1]).decode()}
        if meant.returncode == 0:
            entry["object"] = json.loads(meant.stdout)
        found.append(entry)
    Path(__file__).with_name("captured.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
