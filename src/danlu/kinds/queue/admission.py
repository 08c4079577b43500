"""Who may not use a queue hears it when they create a job, as TensorStack's rule R001 has it.

A policy of the API server, with the queues as its parameters: nothing has to be up for it but the server itself. What a
queue has no room for is another matter: there one waits.
"""

from __future__ import annotations

from danlu.client.client import Client
from danlu.kinds._gang.markers import DEFAULT_QUEUE, QUEUE, SYSTEM_NAMESPACE
from danlu.meta.kind import Kind, Object

GROUP = "admissionregistration.k8s.io"
POLICY = Kind(GROUP, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", False)
BINDING = Kind(GROUP, "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", False)
NAME = "queue-rights.danlu.dev"
MANAGER = "danlu"

ASKED = (
    "!has(object.spec.scheduler) || !has(object.spec.scheduler.t9kScheduler) ? '' : "
    f"has(object.spec.scheduler.t9kScheduler.queue) ? object.spec.scheduler.t9kScheduler.queue : '{DEFAULT_QUEUE}'"
)
LABELS = "has(namespaceObject.metadata.labels) ? namespaceObject.metadata.labels : {}"
SELECTS = (
    "has(params.spec.namespaceSelector) && "
    "(!has(params.spec.namespaceSelector.matchLabels) || params.spec.namespaceSelector.matchLabels.all(k, "
    "k in variables.labels && variables.labels[k] == params.spec.namespaceSelector.matchLabels[k])) && "
    "(!has(params.spec.namespaceSelector.matchExpressions) || params.spec.namespaceSelector.matchExpressions.all(e, "
    "e.operator == 'In' ? e.key in variables.labels && variables.labels[e.key] in e.values : "
    "e.operator == 'NotIn' ? !(e.key in variables.labels && variables.labels[e.key] in e.values) : "
    "e.operator == 'Exists' ? e.key in variables.labels : !(e.key in variables.labels)))"
)
MESSAGE = (
    "'R001: namespace ' + namespaceObject.metadata.name + ' may not use queue ' + params.metadata.name + "
    "': the queue\\'s namespaceSelector does not select it. `kubectl get q -n "
    + SYSTEM_NAMESPACE
    + "` shows the queues [DL-QUEUE-FORBIDDEN namespace=' + namespaceObject.metadata.name + ' queue=' + "
    "params.metadata.name + ']'"
)


def policy() -> Object:
    kinds = (("batch.tensorstack.dev", "*"), ("tensorstack.dev", "notebooks"), ("tensorstack.dev", "tensorboards"))
    rules = [
        {"apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "operations": ["CREATE"]}
        for group, resource in kinds
    ]
    return {
        "apiVersion": POLICY.api_version,
        "kind": POLICY.kind,
        "metadata": {"name": NAME},
        "spec": {
            # Whatever it cannot judge, the scheduler will.
            "failurePolicy": "Ignore",
            "paramKind": {"apiVersion": QUEUE.api_version, "kind": QUEUE.kind},
            "matchConstraints": {"resourceRules": rules},
            "variables": [{"name": "asked", "expression": ASKED}, {"name": "labels", "expression": LABELS}],
            "validations": [
                {
                    "expression": f"variables.asked != params.metadata.name || ({SELECTS})",
                    "messageExpression": MESSAGE,
                    "reason": "Forbidden",
                }
            ],
        },
    }


def binding() -> Object:
    return {
        "apiVersion": BINDING.api_version,
        "kind": BINDING.kind,
        "metadata": {"name": NAME},
        "spec": {
            "policyName": NAME,
            "validationActions": ["Deny"],
            "paramRef": {"namespace": SYSTEM_NAMESPACE, "selector": {}, "parameterNotFoundAction": "Allow"},
        },
    }


async def ensure(client: Client) -> None:
    for kind, wanted in ((POLICY, policy()), (BINDING, binding())):
        await client.patch(kind, NAME, None, wanted, type="apply", manager=MANAGER, force=True)
