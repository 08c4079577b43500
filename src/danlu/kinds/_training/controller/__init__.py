"""The I/O around job kinds: what their `reconcile` sees is gathered here, and only here.

reconciler    observes a job, and has `lifecycle` decide
mount_events  asked for where a pod's status does not say why it waits
portbookings  ports that other jobs have, where pods share the host's network
"""

from danlu.kinds._training.controller.trainingreconciler import TrainingReconciler

__all__ = ["TrainingReconciler"]
