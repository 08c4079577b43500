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
PAGE = Path(__file__).with_name("hostile.html")


def test_a_page_of_an_app_cannot_act_as_its_reader(
    danlu: Danlu, new_person: Callable[[str], Person], link: str
) -> None:
    person = new_person("en")
    person.sign_in()
    port = person.console.rpartition(":")[2]
    page = PAGE.read_text().replace("CONSOLE", person.console).replace("PORT", port)
    variables: list[dict[str, Any]] = [
        {"name": "MY_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "PAGE", "value": page.replace("$(", "$$(")},
        {"name": "PORT", "value": port},
    ]
    container = {"name": "c", "image": "python:3", "command": ["python3", "-c", SERVER], "env": variables}
    pod = {"metadata": {"name": "evil", "labels": {"app": "evil"}}, "spec": {"containers": [container]}}
    service = {
        "metadata": {"name": "evil"},
        "spec": {"selector": {"app": "evil"}, "ports": [{"port": 80, "targetPort": 8000}]},
    }
    for kind, obj in (("Pod", pod), ("Service", service)):
        danlu.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": kind, **obj}))
    danlu.kubectl("wait", "--for=condition=Ready", "pod/evil", "--timeout=60s")
    # As the console's own pages open it: from the console, in a tab of its own.
    open_it = """async () => {
      const told = await (await fetch('/console/session')).json()
      const asked = {method: 'POST', headers: {'X-Danlu-CSRF': told.csrf}, body: JSON.stringify(
        {namespace: 'default', kind: 'service', name: 'evil:80'})}
      return (await (await fetch('/console/apps/open', asked)).json()).url }"""
    tab = person.context.new_page()

    def loaded() -> bool:
        tab.goto(person.page.evaluate(open_it))
        return tab.title() == "evil"

    danlu.wait("the hostile page", loaded)
    tab.wait_for_selector("body[data-got]", timeout=60_000)
    assert json.loads(tab.get_attribute("body", "data-got") or "") == []
    assert danlu.fails("get", "configmap", "stolen")
    # And the person is who they were.
    person.page.reload()
    assert person.page.evaluate("async () => (await fetch('/console/session')).status") == 200
