"""elasticPolicy.metrics: a HorizontalPodAutoscaler that changes the number of workers through the job's scale."""

from __future__ import annotations

from danlu.kinds._training.job import Job, Role
from danlu.meta import owners
from danlu.meta.kind import Kind, Object

AUTOSCALER = Kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", True, ("hpa",), ("all",))


def autoscaler(job: Job, worker: Role | None) -> Object | None:
    """None for a job that has no metrics to go by."""
    elastic = job.spec.get("elasticPolicy") or {}
    if worker is None or not elastic.get("metrics"):
        return None
    least, most = elastic_range(elastic, worker)
    return {
        "apiVersion": AUTOSCALER.api_version,
        "kind": AUTOSCALER.kind,
        "metadata": {
            "name": job.name,
            "namespace": job.namespace,
            "ownerReferences": [owners.reference(job.obj, job.kind)],
        },
        "spec": {
            "scaleTargetRef": {"apiVersion": job.kind.api_version, "kind": job.kind.kind, "name": job.name},
            "minReplicas": least,
            "maxReplicas": most,
            "metrics": elastic["metrics"],
        },
    }


def elastic_range(elastic: Object, worker: Role) -> tuple[int, int]:
    """Of minReplicas and maxReplicas one stands for the other; without both it is as many as there are."""
    least, most = elastic.get("minReplicas"), elastic.get("maxReplicas")
    return least or most or worker.replicas, most or least or worker.replicas
