"""A hostile page among the apps tries, in a real browser, to act as the person who opened it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.browser.person import Person
from tests.running import Danlu

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

SERVER = """
import http.server, os
PAGE = os.environ["PAGE"].encode()
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Set-Cookie", "danlu-session-%s-0=fixed; Path=/" % os.environ["PORT"])
        self.end_headers()
        self.wfile.write(PAGE)
http.server.HTTPServer((os.environ["MY_ADDRESS"], 8000), Page).serve_forever()
"""
DIARY = """
import http.server, os
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print(self.command, self.headers.get("Sec-Fetch-Dest"), flush=True)
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(b"<title>diary</title>dear diary")
    do_POST = do_GET
    def log_message(self, *words): pass
http.server.HTTPServer((os.environ["MY_ADDRESS"], 8000), Page).serve_forever()
"""
MY_ADDRESS = {"name": "MY_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
# As the console's own pages open it: from the console, in a tab of its own.
OPEN = """async (name) => {
  const asked = {method: 'POST', headers: {'X-Danlu-Proof': localStorage.getItem('danlu.proof')}, body: JSON.stringify(
    {namespace: 'default', kind: 'service', name: `${name}:80`})}
  return (await (await fetch('/console/apps/open', asked)).json()).url }"""
PAGE = Path(__file__).with_name("hostile.html")


def serve(danlu: Danlu, name: str, program: str, variables: dict[str, str]) -> None:
    """A program behind a Service of this name."""
    env: list[dict[str, Any]] = [MY_ADDRESS, *({"name": key, "value": value} for key, value in variables.items())]
    container = {"name": "c", "image": "python:3", "command": ["python3", "-c", program], "env": env}
    pod = {"metadata": {"name": name, "labels": {"app": name}}, "spec": {"containers": [container]}}
    ports = [{"port": 80, "targetPort": 8000}]
    service = {"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": ports}}
    for kind, obj in (("Pod", pod), ("Service", service)):
        danlu.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": kind, **obj}))
    danlu.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")


def opened(danlu: Danlu, person: Person, name: str) -> Any:
    """The app in a tab of its own; its title is its name."""
    tab = person.context.new_page()

    def loaded() -> bool:
        tab.goto(person.page.evaluate(OPEN, name))
        return bool(tab.title() == name)

    danlu.wait(f"the page {name}", loaded)
    return tab


def test_a_page_of_an_app_cannot_act_as_its_reader(
    danlu: Danlu, new_person: Callable[[str], Person], link: str
) -> None:
    """Neither in the console nor in another app that the same person has open."""
    person = new_person("en")
    person.sign_in()
    serve(danlu, "diary", DIARY, {})
    diary = opened(danlu, person, "diary")
    port = person.console.rpartition(":")[2]
    page = PAGE.read_text().replace("CONSOLE", person.console).replace("DIARY", diary.url).replace("PORT", port)
    serve(danlu, "evil", SERVER, {"PAGE": page.replace("$(", "$$("), "PORT": port})
    tab = opened(danlu, person, "evil")
    tab.wait_for_selector("body[data-got]", timeout=60_000)
    assert json.loads(tab.get_attribute("body", "data-got") or "") == []
    assert danlu.fails("get", "configmap", "stolen")
    # All that the diary was asked for is what the person opened.
    assert set(danlu.kubectl("logs", "diary").splitlines()) == {"GET document"}
    # And the person is who they were.
    person.page.reload()
    proof = "{headers: {'X-Danlu-Proof': localStorage.getItem('danlu.proof')}}"
    assert person.page.evaluate(f"async () => (await fetch('/console/session', {proof})).status") == 200
    diary.reload()
    assert "dear diary" in diary.content()
