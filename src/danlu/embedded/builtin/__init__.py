"""One file for each built-in kind the embedded server serves; each exports its `SERVED`.

`BUILTINS` is the whole list, in the order discovery shows it within a group.
"""

from __future__ import annotations

from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.builtin.admissionregistration import (
    mutatingadmissionpolicy,
    mutatingadmissionpolicybinding,
    mutatingwebhookconfiguration,
    validatingadmissionpolicy,
    validatingadmissionpolicybinding,
    validatingwebhookconfiguration,
)
from danlu.embedded.builtin.apiextensions import customresourcedefinition
from danlu.embedded.builtin.apps import controllerrevision, daemonset, deployment, replicaset, statefulset
from danlu.embedded.builtin.authorization import reviews
from danlu.embedded.builtin.autoscaling import horizontalpodautoscaler, horizontalpodautoscaler_v1
from danlu.embedded.builtin.batch import cronjob, job
from danlu.embedded.builtin.certificates import certificatesigningrequest
from danlu.embedded.builtin.coordination import lease
from danlu.embedded.builtin.core import (
    binding,
    configmap,
    endpoints,
    event,
    limitrange,
    namespace,
    persistentvolume,
    persistentvolumeclaim,
    pod,
    podtemplate,
    replicationcontroller,
    resourcequota,
    secret,
    service,
    serviceaccount,
)
from danlu.embedded.builtin.core import node as core_node  # `node` is a group's folder, too
from danlu.embedded.builtin.discovery import endpointslice
from danlu.embedded.builtin.events import eventsevent
from danlu.embedded.builtin.flowcontrol import flowschema, prioritylevelconfiguration
from danlu.embedded.builtin.metrics import nodemetrics, podmetrics
from danlu.embedded.builtin.networking import ingress, ingressclass, ipaddress, networkpolicy, servicecidr
from danlu.embedded.builtin.node import runtimeclass
from danlu.embedded.builtin.policy import poddisruptionbudget
from danlu.embedded.builtin.rbac import clusterrole, clusterrolebinding, role, rolebinding
from danlu.embedded.builtin.scheduling import priorityclass
from danlu.embedded.builtin.storage import storageclass

BUILTINS: tuple[ServedKind, ...] = (
    binding.SERVED,
    configmap.SERVED,
    endpoints.SERVED,
    event.SERVED,
    limitrange.SERVED,
    namespace.SERVED,
    core_node.SERVED,
    persistentvolumeclaim.SERVED,
    persistentvolume.SERVED,
    pod.SERVED,
    podtemplate.SERVED,
    replicationcontroller.SERVED,
    resourcequota.SERVED,
    secret.SERVED,
    serviceaccount.SERVED,
    service.SERVED,
    *reviews.SERVED,
    controllerrevision.SERVED,
    daemonset.SERVED,
    deployment.SERVED,
    replicaset.SERVED,
    statefulset.SERVED,
    horizontalpodautoscaler.SERVED,
    horizontalpodautoscaler_v1.SERVED,
    cronjob.SERVED,
    job.SERVED,
    lease.SERVED,
    endpointslice.SERVED,
    eventsevent.SERVED,
    ingressclass.SERVED,
    ingress.SERVED,
    ipaddress.SERVED,
    networkpolicy.SERVED,
    servicecidr.SERVED,
    runtimeclass.SERVED,
    poddisruptionbudget.SERVED,
    clusterrolebinding.SERVED,
    clusterrole.SERVED,
    rolebinding.SERVED,
    role.SERVED,
    priorityclass.SERVED,
    storageclass.SERVED,
    customresourcedefinition.SERVED,
    certificatesigningrequest.SERVED,
    mutatingadmissionpolicy.SERVED,
    mutatingadmissionpolicybinding.SERVED,
    validatingadmissionpolicy.SERVED,
    validatingadmissionpolicybinding.SERVED,
    mutatingwebhookconfiguration.SERVED,
    validatingwebhookconfiguration.SERVED,
    flowschema.SERVED,
    prioritylevelconfiguration.SERVED,
    nodemetrics.SERVED,
    podmetrics.SERVED,
)
