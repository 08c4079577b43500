"""The folders for `kubectl apply -k deploy/default`: one per component, and what puts them together."""

from __future__ import annotations

import json
from collections import defaultdict

from danlu.meta.kind import Object
from danlu.meta.wellknown import CUSTOM_RESOURCE_DEFINITION, DEPLOYMENT
from danlu.operator.install import manifests, written
from danlu.operator.install.options import ADDONS, InstallOptions, kinds_without
from danlu.operator.install.plan import kind_of

LIMIT = 262_144  # bytes: what `kubectl apply` can put into an annotation, where it does not apply on the server
# Without an ending, so that `kubectl apply -f FOLDER` does not take it for an object.
KUSTOMIZATION = "Kustomization"
ALL = ("namespace", "crds", "rbac", "operator", "console", "network")


def files() -> dict[str, str]:
    """Path below deploy/ → content."""
    found: dict[str, str] = {}
    folders: defaultdict[str, dict[str, list[Object]]] = defaultdict(lambda: defaultdict(list))
    for part in manifests.parts(InstallOptions(addons=ADDONS)):
        folders[part.component][_file_name(part.component, part.object)].append(part.object)
    for folder, contents in folders.items():
        for name, objects in contents.items():
            found[f"{folder}/{name}"] = written.file(objects)
        found[f"{folder}/{KUSTOMIZATION}"] = _kustomization(resources=sorted(contents))
    found[f"default/{KUSTOMIZATION}"] = _kustomization(
        resources=[f"../{folder}" for folder in ALL],
        images=[
            {"name": InstallOptions().image.rpartition(":")[0], "newTag": InstallOptions().image.rpartition(":")[2]}
        ],
    )
    addons = [f"../addons/{name}" for name in ADDONS]
    found[f"gpu/{KUSTOMIZATION}"] = _kustomization(resources=["../default", *addons])
    found[f"without-kubeflow/{KUSTOMIZATION}"] = _without("kubeflow")
    found[f"json-logs/{KUSTOMIZATION}"] = _with_json_logs()
    return found


def _file_name(component: str, obj: Object) -> str:
    if kind_of(obj) == CUSTOM_RESOURCE_DEFINITION:
        size = len(json.dumps(obj))
        name = obj["metadata"]["name"]
        if size >= LIMIT:
            raise SystemExit(f"generate-deploy: the definition {name} has {size} bytes; at most {LIMIT} work")
        return definition_file(obj)
    return "roles.yaml" if component == "rbac" else f"{component.rpartition('/')[2]}.yaml"


def definition_file(definition: Object) -> str:
    return f"{definition['spec']['group']}_{definition['spec']['names']['plural']}.yaml"


def _kustomization(**content: object) -> str:
    head: Object = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    return written.HEAD + written.text({**head, **content})


def _without(group: str) -> str:
    """The whole, less the kinds that another operator has: their definitions, their rights, their controllers."""
    everything, fewer = InstallOptions(), InstallOptions(kinds=kinds_without([group]))
    kept = {kind.kind for kind in fewer.kinds}
    patches: list[Object] = [
        {
            "target": {"kind": "CustomResourceDefinition", "name": f"{kind.kind.plural}.{kind.kind.group}"},
            "patch": written.text(
                {
                    "apiVersion": CUSTOM_RESOURCE_DEFINITION.api_version,
                    "kind": CUSTOM_RESOURCE_DEFINITION.kind,
                    "metadata": {"name": f"{kind.kind.plural}.{kind.kind.group}"},
                    "$patch": "delete",
                }
            ),
        }
        for kind in everything.kinds
        if kind.kind not in kept
    ]
    for role in manifests.roles(fewer):
        patches.append(_replaced("ClusterRole", role["metadata"]["name"], "/rules", role["rules"]))
    patches.append(_with_arguments(manifests.OPERATOR, manifests.operator_arguments(fewer)))
    return _kustomization(resources=["../default"], patches=patches)


def _with_json_logs() -> str:
    options = InstallOptions(log_format="json")
    patches = [
        _with_arguments(manifests.OPERATOR, manifests.operator_arguments(options)),
        _with_arguments(manifests.CONSOLE, manifests.console_arguments(options)),
    ]
    return _kustomization(resources=["../default"], patches=patches)


def _with_arguments(deployment: str, arguments: list[str]) -> Object:
    return _replaced(DEPLOYMENT.kind, deployment, "/spec/template/spec/containers/0/args", arguments)


def _replaced(kind: str, name: str, path: str, value: object) -> Object:
    patch = [{"op": "replace", "path": path, "value": value}]
    return {"target": {"kind": kind, "name": name}, "patch": written.text(patch)}
