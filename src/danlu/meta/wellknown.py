"""The built-in kinds by name, so that nobody spells a path by hand."""

from __future__ import annotations

from danlu.meta.kind import Kind

ALL = ("all",)

NAMESPACE = Kind("", "v1", "Namespace", "namespaces", False, ("ns",))
NODE = Kind("", "v1", "Node", "nodes", False, ("no",))
POD = Kind("", "v1", "Pod", "pods", True, ("po",), ALL)
SERVICE = Kind("", "v1", "Service", "services", True, ("svc",), ALL)
ENDPOINTS = Kind("", "v1", "Endpoints", "endpoints", True, ("ep",))
CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps", True, ("cm",))
SECRET = Kind("", "v1", "Secret", "secrets", True)
SERVICE_ACCOUNT = Kind("", "v1", "ServiceAccount", "serviceaccounts", True, ("sa",))
PERSISTENT_VOLUME_CLAIM = Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", True, ("pvc",))
PERSISTENT_VOLUME = Kind("", "v1", "PersistentVolume", "persistentvolumes", False, ("pv",))
EVENT = Kind("", "v1", "Event", "events", True, ("ev",))
RESOURCE_QUOTA = Kind("", "v1", "ResourceQuota", "resourcequotas", True, ("quota",))
LIMIT_RANGE = Kind("", "v1", "LimitRange", "limitranges", True, ("limits",))
REPLICATION_CONTROLLER = Kind("", "v1", "ReplicationController", "replicationcontrollers", True, ("rc",), ALL)
POD_TEMPLATE = Kind("", "v1", "PodTemplate", "podtemplates", True)

EVENTS_EVENT = Kind("events.k8s.io", "v1", "Event", "events", True, ("ev",))
ENDPOINT_SLICE = Kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", True)
STORAGE_CLASS = Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", False, ("sc",))
RUNTIME_CLASS = Kind("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", False)
PRIORITY_CLASS = Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", False, ("pc",))
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases", True)

JOB = Kind("batch", "v1", "Job", "jobs", True, (), ALL)
CRON_JOB = Kind("batch", "v1", "CronJob", "cronjobs", True, ("cj",), ALL)
DEPLOYMENT = Kind("apps", "v1", "Deployment", "deployments", True, ("deploy",), ALL)
REPLICA_SET = Kind("apps", "v1", "ReplicaSet", "replicasets", True, ("rs",), ALL)
STATEFUL_SET = Kind("apps", "v1", "StatefulSet", "statefulsets", True, ("sts",), ALL)
DAEMON_SET = Kind("apps", "v1", "DaemonSet", "daemonsets", True, ("ds",), ALL)
CONTROLLER_REVISION = Kind("apps", "v1", "ControllerRevision", "controllerrevisions", True)
AUTOSCALER = Kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", True, ("hpa",), ALL)
AUTOSCALER_V1 = Kind("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", True, ("hpa",), ALL)
POD_DISRUPTION_BUDGET = Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", True, ("pdb",))

_NETWORKING = ("networking.k8s.io", "v1")
INGRESS = Kind(*_NETWORKING, "Ingress", "ingresses", True, ("ing",))
INGRESS_CLASS = Kind(*_NETWORKING, "IngressClass", "ingressclasses", False)
NETWORK_POLICY = Kind(*_NETWORKING, "NetworkPolicy", "networkpolicies", True, ("netpol",))
SERVICE_CIDR = Kind(*_NETWORKING, "ServiceCIDR", "servicecidrs", False)
IP_ADDRESS = Kind(*_NETWORKING, "IPAddress", "ipaddresses", False, ("ip",))

NODE_METRICS = Kind("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", False)
POD_METRICS = Kind("metrics.k8s.io", "v1beta1", "PodMetrics", "pods", True)

ROLE = Kind("rbac.authorization.k8s.io", "v1", "Role", "roles", True)
ROLE_BINDING = Kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", True)
CLUSTER_ROLE = Kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", False)
CLUSTER_ROLE_BINDING = Kind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", False)

CUSTOM_RESOURCE_DEFINITION = Kind(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    False,
    ("crd", "crds"),
    ("api-extensions",),
)
_ADMISSION = ("admissionregistration.k8s.io", "v1")
VALIDATING_POLICY = Kind(*_ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", False)
VALIDATING_POLICY_BINDING = Kind(
    *_ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", False
)
MUTATING_POLICY = Kind(*_ADMISSION, "MutatingAdmissionPolicy", "mutatingadmissionpolicies", False)
MUTATING_POLICY_BINDING = Kind(*_ADMISSION, "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", False)
VALIDATING_WEBHOOKS = Kind(
    *_ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", False, (), ("api-extensions",)
)
MUTATING_WEBHOOKS = Kind(
    *_ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", False, (), ("api-extensions",)
)
FLOW_SCHEMA = Kind("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas", False)
PRIORITY_LEVEL = Kind(
    "flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration", "prioritylevelconfigurations", False
)
CERTIFICATE_SIGNING_REQUEST = Kind(
    "certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", False, ("csr",)
)

TOKEN_REVIEW = Kind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", False)
SELF_SUBJECT_REVIEW = Kind("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", False)
SUBJECT_ACCESS_REVIEW = Kind("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", False)
SELF_SUBJECT_ACCESS_REVIEW = Kind(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False
)
LOCAL_SUBJECT_ACCESS_REVIEW = Kind(
    "authorization.k8s.io", "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews", True
)
SELF_SUBJECT_RULES_REVIEW = Kind(
    "authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", False
)
