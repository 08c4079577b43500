"""A pod that turns against what is not its own: processes, memory, devices, the kernel's own settings."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from tests.running import ORDINARY, Danlu

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
SECRET = "what-only-the-victim-knows"

# Each attempt is told by the name of its error; "did" means that it worked. PIDS are processes of others, by the
# machine's numbers: the victim's, its shim's, danlu's. What is destructive comes last, and only behind a border.
ATTEMPTS = """
import ctypes, errno, json, os, socket, stat, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
PIDS = json.loads(os.environ["PIDS"])
said = {}

def attempt(name, call):
    try:
        answer = call()
        said[name] = "did" if answer is None else answer
    except OSError as error:
        said[name] = errno.errorcode.get(error.errno, str(error))

def checked(answer):
    if answer == -1:
        raise OSError(ctypes.get_errno(), "")

def each(call):
    def all_of_them():
        worked = []
        for pid in PIDS:
            try:
                call(pid)
                worked.append(pid)
            except OSError:
                pass
        return worked
    return all_of_them

def environments():
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and b"SECRET=" in open(f"/proc/{name}/environ", "rb").read():
                found.append(name)
        except OSError:
            pass
    return found

def made_device():
    os.mknod("/tmp/device", 0o666 | stat.S_IFBLK, os.makedev(7, 0))
    open("/tmp/device").close()

attempt("number", os.getpid)
attempt("processes", lambda: sorted(int(name) for name in os.listdir("/proc") if name.isdigit()))
attempt("environments", environments)
attempt("signal", each(lambda pid: os.kill(pid, 0)))
attempt("trace", each(lambda pid: checked(libc.ptrace(16, pid, 0, 0))))
attempt("memory", each(lambda pid: open(f"/proc/{pid}/mem", "rb").close()))
attempt("files", each(lambda pid: os.listdir(f"/proc/{pid}/root")))
attempt("device", made_device)
attempt("mount", lambda: checked(libc.mount(b"none", b"/mnt", b"tmpfs", 0, None)))
attempt("namespace", lambda: checked(libc.unshare(0x10000000)))
attempt("packets", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x0300).close())
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close())
attempt("settings", lambda: open("/proc/sys/kernel/core_pattern", "w").close())
attempt("caches", lambda: open("/proc/sys/vm/drop_caches", "w").close())
attempt("disks", lambda: [n for n in os.listdir("/dev") if stat.S_ISBLK(os.stat("/dev/" + n).st_mode)])
if os.getpid() == 1:
    attempt("everybody", lambda: os.kill(-1, 9))
print(json.dumps(said), flush=True)
"""
REFUSED = {
    "number": 1, "processes": [1], "environments": [], "signal": [], "trace": [], "memory": [], "files": [],
    "device": "EPERM", "mount": "EPERM", "namespace": "EPERM", "packets": "EPERM", "raw": "EPERM",
    "settings": "EROFS", "caches": "EROFS", "disks": [], "everybody": "ESRCH",
}  # fmt: skip


def pod(name: str, *command: str, env: dict[str, str] | None = None, **spec: Any) -> str:
    variables = [{"name": key, "value": value} for key, value in (env or {}).items()]
    container = {"name": "c", "image": "python", "command": list(command), "env": variables}
    body = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, **spec, "containers": [container]}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body})


def pids_of_containers(danlu: Danlu) -> list[int]:
    """And of their shims; by the machine's numbers."""
    found = [json.loads(file.read_text()) for file in danlu.data.glob("pods/*/containers/*/*/pid")]
    return [number for one in found for number in (one["pid"], one["shim"])]


@pytest.fixture(scope="module", params=["root", "ordinary"])
def danlu(request: pytest.FixtureRequest, make_danlu: Callable[..., Danlu]) -> Danlu:
    is_root = os.geteuid() == 0
    if request.param == "root" and not is_root:
        pytest.skip("not root")
    found = make_danlu("--no-console", user=ORDINARY if is_root and request.param == "ordinary" else None)
    if "own file tree, processes" not in found.command("status").stdout:
        pytest.skip(f"containers have no processes of their own here: {found.command('status').stdout}")
    found.kubectl("apply", "-f", "-", stdin=pod("victim", "sleep", "3600", env={"SECRET": SECRET}))
    found.kubectl("wait", "--for=condition=Ready", "pod/victim", "--timeout=60s")
    return found


def test_a_default_pod_reaches_nothing_of_others(danlu: Danlu) -> None:
    pids = [*pids_of_containers(danlu), danlu.pid()]
    attacker = pod("attacker", "python3", "-c", ATTEMPTS, env={"PIDS": json.dumps(pids)})
    danlu.kubectl("apply", "-f", "-", stdin=attacker)
    danlu.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/attacker", "--timeout=60s")
    assert json.loads(danlu.kubectl("logs", "attacker")) == REFUSED
    assert danlu.kubectl("exec", "victim", "--", "printenv", "SECRET") == f"{SECRET}\n"
    assert danlu.kubectl("get", "pod", "victim", "-o", "jsonpath={.status.containerStatuses[0].restartCount}") == "0"


def test_who_asks_for_the_machines_processes_sees_them(danlu: Danlu) -> None:
    count = f"import os; print(os.getpid(), os.path.exists('/proc/{danlu.pid()}'))"
    danlu.kubectl("apply", "-f", "-", stdin=pod("guest", "python3", "-c", count, hostPID=True))
    danlu.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/guest", "--timeout=60s")
    number, sees = danlu.kubectl("logs", "guest").split()
    assert (int(number) > 1, sees) == (True, "True")


FIND_AND_STOP = """
import os, signal, time
for _ in range(600):
    for name in filter(str.isdigit, os.listdir("/proc")):
        if b"3210" in open(f"/proc/{name}/cmdline", "rb").read().split(b"\\0"):
            os.kill(int(name), signal.SIGTERM)
            print(os.getpid() > 1, open("/proc/1/comm").read(), flush=True)
            raise SystemExit
    time.sleep(0.1)
"""


def test_containers_that_share_their_processes(danlu: Danlu) -> None:
    made = json.loads(pod("pair", "sleep", "3210", shareProcessNamespace=True))
    looks = {"name": "looks", "image": "python", "command": ["python3", "-c", FIND_AND_STOP]}
    made["spec"]["containers"].append(looks)
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps(made))
    danlu.kubectl("wait", "--for=jsonpath={.status.phase}=Failed", "pod/pair", "--timeout=60s")
    assert danlu.kubectl("logs", "pair", "-c", "looks").split() == ["True", "sleep"]
    code = "jsonpath={.status.containerStatuses[?(@.name=='c')].state.terminated.exitCode}"
    assert danlu.kubectl("get", "pod", "pair", "-o", code) == "143"


def test_a_debugging_container_sees_its_target(danlu: Danlu) -> None:
    danlu.kubectl("debug", "victim", "--image=python", "--target=c", "-c", "look", "--", "cat", "/proc/1/cmdline")
    seen = danlu.wait("its words", lambda: danlu.kubectl("logs", "victim", "-c", "look", check=False))
    assert seen == "sleep\x003600\x00"


def test_without_namespaces_of_process_numbers_it_works_and_says_so(make_danlu: Callable[..., Danlu]) -> None:
    danlu = make_danlu("--no-console", variables={"DANLU_PIDS": "shared"})
    assert "processes are shared: DANLU_PIDS=shared asks for it" in danlu.command("status").stdout
    danlu.kubectl("apply", "-f", "-", stdin=pod("plain", "sh", "-c", "echo $$$$; sleep 0.1"))
    danlu.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/plain", "--timeout=60s")
    assert int(danlu.kubectl("logs", "plain")) > 1
