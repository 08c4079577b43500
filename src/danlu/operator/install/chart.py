"""The Helm chart: the same objects with `{{ .Values… }}` where something can be chosen.

The objects are made by `manifests.parts` from options whose values are marks, ⟦like this⟧, which become template
expressions when the text is written. What a kind brings (its definition, its rights) stands in an `if`.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, cast

from danlu import __version__
from danlu.kinds import platformroles
from danlu.kinds.platform import PlatformKind
from danlu.kinds.registry import REGISTRY
from danlu.meta.kind import Object
from danlu.operator.install import manifests, written
from danlu.operator.install.kustomize import definition_file
from danlu.operator.install.options import ADDONS, CONSOLE_RESOURCES, GANGS, IMAGE, OPERATOR_RESOURCES, InstallOptions
from danlu.operator.install.plan import is_kept
from danlu.operator.logs import FORMATS

KEEP = "helm.sh/resource-policy"
COMMENT = "{{- /* Written by scripts/generate-deploy from src/danlu/operator/install; not to be edited. */ -}}\n"
SWITCHES = {  # component: the value that switches it on
    "console": ".Values.console.enabled",
    "network": ".Values.networkPolicies",
    "addons/nvidia": ".Values.addons.nvidia",
    "addons/dcgm": ".Values.addons.dcgm",
}
LEFT_TO_HELM = ("namespace", "crds", "rbac")  # --create-namespace; written with conditions below
_WITH = re.compile(r"^(?P<indent> *)(?P<key>[\w-]+): ['\"]?⟦with (?P<value>[^⟧]+)⟧['\"]?$", re.M)
_EACH = re.compile(r"^( *)- ['\"]?⟦each ([^⟧]+)⟧['\"]?$", re.M)
_MARK = re.compile(r"⟦([^⟧]+)⟧")


def files() -> dict[str, str]:
    """Path below deploy/ → content. chart/files/crds is a link to deploy/crds."""
    found = {
        "chart/Chart.yaml": _chart(),
        "chart/values.yaml": _values(),
        "chart/values.schema.json": json.dumps(_schema(), indent=2) + "\n",
        "chart/templates/_names.tpl": _names(),
        "chart/templates/crds.yaml": _definitions(),
        "chart/templates/rbac.yaml": _roles(),
        "chart/templates/NOTES.txt": _notes(),
    }
    components: defaultdict[str, list[Object]] = defaultdict(list)
    for part in manifests.parts(_marked()):
        components[part.component].append(part.object)
    for component, objects in components.items():
        if component not in LEFT_TO_HELM:
            switch = SWITCHES.get(component)
            body = "---\n".join(_template(one) for one in objects)
            text = f"{{{{- if {switch} }}}}\n{body}{{{{- end }}}}\n" if switch else body
            found[f"chart/templates/{component.replace('/', '-')}.yaml"] = COMMENT + text
    return found


def _marked() -> InstallOptions:
    """Every choice is a mark, of whatever type it may be otherwise."""
    marks: dict[str, Any] = {
        "namespace": "⟦.Release.Namespace⟧",
        "image": "⟦.Values.image.name⟧",
        "pull_policy": "⟦.Values.image.pullPolicy⟧",
        "replicas": "⟦.Values.operator.replicas⟧",
        "gang": "⟦.Values.operator.gang⟧",
        "log_format": "⟦.Values.logFormat⟧",
        "console_url": "⟦.Values.console.url⟧",
        "apps_url": "⟦.Values.console.appsUrl⟧",
        "console_arguments": ("⟦each .Values.console.arguments⟧",),
        "operator_resources": "⟦with .Values.operator.resources⟧",
        "console_resources": "⟦with .Values.console.resources⟧",
        "pull_secrets": "⟦with .Values.image.pullSecrets⟧",
        "node_selector": "⟦with .Values.nodeSelector⟧",
        "tolerations": "⟦with .Values.tolerations⟧",
    }
    return _Marked(**cast(Any, marks), addons=ADDONS)


class _Marked(InstallOptions):
    @property
    def kind_names(self) -> str:
        return '⟦include "danlu.kinds" .⟧'


def _template(obj: Object) -> str:
    text = written.text(obj)
    text = _WITH.sub(
        lambda found: (
            f"{found['indent']}{{{{- with {found['value']} }}}}\n"
            f"{found['indent']}{found['key']}: {{{{- toYaml . | nindent {len(found['indent']) + 2} }}}}\n"
            f"{found['indent']}{{{{- end }}}}"
        ),
        text,
    )
    text = _EACH.sub(r"\1{{- range \2 }}\n\1- {{ . | quote }}\n\1{{- end }}", text)
    return _MARK.sub(r"{{ \1 }}", text).replace("'{{", "{{").replace("}}'", "}}")


def _definitions() -> str:
    lines = [COMMENT.rstrip("\n")]
    kept = f'replace "\\nmetadata:\\n" "\\nmetadata:\\n  annotations:\\n    {KEEP}: keep\\n"'
    for part in manifests.parts(InstallOptions()):
        if part.component == "crds":
            path = f"files/crds/{definition_file(part.object)}"
            lines += [
                f"{{{{- if .Values.kinds.{part.object['spec']['names']['kind']} }}}}",
                "---",
                f'{{{{ .Files.Get "{path}" | {kept} }}}}',
                "{{- end }}",
            ]
    return "\n".join(lines) + "\n"


def _roles() -> str:
    return COMMENT + "---\n".join(_role(number) for number in range(len(manifests.roles(InstallOptions()))))


def _role(number: int) -> str:
    """A rule stands where one of the kinds that need it does."""

    def of(kinds: Sequence[PlatformKind]) -> Object:
        return [platformroles.operator_role(kinds), *platformroles.user_roles(kinds)][number]

    whole = of(REGISTRY)
    meta = whole["metadata"]
    if is_kept(whole):
        meta = {**meta, "annotations": {KEEP: "keep"}}
    lines = [written.text({**whole, "metadata": meta, "rules": []}).removesuffix(" []\n")]
    single = {kind.kind.kind: of((kind,))["rules"] for kind in REGISTRY}
    for rule in whole["rules"]:
        needed_by = [name for name, rules in single.items() if rule in rules]
        text = written.text([rule]).rstrip("\n")
        if len(needed_by) == len(REGISTRY):
            lines.append(text)
        else:
            any_of = " ".join(f".Values.kinds.{name}" for name in needed_by)
            condition = any_of if len(needed_by) == 1 else f"or {any_of}"
            lines += [f"{{{{- if {condition} }}}}", text, "{{- end }}"]
    return "\n".join(lines) + "\n"


def _names() -> str:
    steps = "".join(
        f'{{{{- if .Values.kinds.{name} }}}}{{{{- $found = append $found "{name}" }}}}{{{{- end }}}}\n'
        for name in _kinds()
    )
    return (
        COMMENT
        + '{{- define "danlu.kinds" -}}\n{{- $found := list }}\n'
        + steps
        + '{{- join "," $found }}\n{{- end }}\n'
    )


def _kinds() -> Iterator[str]:
    return (kind.kind.kind for kind in REGISTRY)


def _chart() -> str:
    return written.HEAD + written.text(
        {
            "apiVersion": "v2",
            "name": "danlu",
            "description": "Build and train AI models on Kubernetes: the operator, the web console, add-ons for GPUs",
            "type": "application",
            "version": __version__,
            "appVersion": __version__,
            "kubeVersion": ">=1.29.0-0",
        }
    )


def _values() -> str:
    """With a reason beside each; `danlu install --help` says the same."""
    kinds = "".join(f"  {name}: true\n" for name in _kinds())
    operator, console = (
        written.text(resources).replace("\n", "\n    ").rstrip()
        for resources in (OPERATOR_RESOURCES, CONSOLE_RESOURCES)
    )
    return f"""{written.HEAD}
image:
  name: {IMAGE}  # of the operator and the console
  pullPolicy: IfNotPresent
  pullSecrets: []  # - name: SECRET

operator:
  replicas: 2  # one works, the others take over within seconds
  gang: none  # the engine that starts a job's pods together: {", ".join(GANGS)}
  resources:
    {operator}

console:
  enabled: true
  url: ""  # where people open it; written into the status of notebooks and TensorBoards
  appsUrl: ""  # where they open notebooks: https://*.apps.example.com gives each a host name of its own
  arguments: []  # further ones for `danlu console`: - --session-hours=8
  # Sign-in with an identity provider: kubectl -n NAMESPACE create secret generic {manifests.IDENTITY}
  # --from-literal=issuer=URL --from-literal=client-id=ID --from-literal=client-secret=SECRET
  resources:
    {console}

# A kind that another operator has is false: its definition, rights and controller are left out.
kinds:
{kinds}
logFormat: text  # of the operator and the console: {", ".join(FORMATS)}

networkPolicies: true  # limit who reaches the operator and the console

# For nodes with NVIDIA GPUs; both go to kube-system.
addons:
  nvidia: false  # the device plugin: nvidia.com/gpu becomes a resource
  dcgm: false  # dcgm-exporter: the GPUs' metrics, on nodes with the label nvidia.com/gpu.present=true

nodeSelector: {{}}
tolerations: []
"""


def _schema() -> Object:
    """Refuses a misspelt value before anything is installed."""
    words, switch, free, some = {"type": "string"}, {"type": "boolean"}, {"type": "object"}, {"type": "array"}

    def closed(**properties: Object) -> Object:
        return {"type": "object", "additionalProperties": False, "properties": properties}

    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$comment": "Written by scripts/generate-deploy; not to be edited.",
        **closed(
            image=closed(name=words, pullPolicy={"enum": ["Always", "IfNotPresent", "Never"]}, pullSecrets=some),
            operator=closed(replicas={"type": "integer", "minimum": 1}, gang={"enum": list(GANGS)}, resources=free),
            console=closed(enabled=switch, url=words, appsUrl=words, arguments=some, resources=free),
            kinds=closed(**dict.fromkeys(_kinds(), switch)),
            logFormat={"enum": list(FORMATS)},
            networkPolicies=switch,
            addons=closed(**dict.fromkeys(ADDONS, switch)),
            nodeSelector=free,
            tolerations=some,
            **{"global": free},
        ),
    }


def _notes() -> str:
    return COMMENT + (
        "Danlu {{ .Chart.AppVersion }} is installed in namespace {{ .Release.Namespace }}.\n"
        "  kubectl -n {{ .Release.Namespace }} rollout status deployment/danlu-operator\n"
        "{{- if .Values.console.enabled }}\n"
        "  kubectl -n {{ .Release.Namespace }} port-forward service/danlu-console 8080:80 8081:8081\n"
        "{{- end }}\n"
        "`helm uninstall` keeps the definitions of the kinds, and with them every job and notebook.\n"
    )
