"""Why something waits or failed, worked out in one place: pure, no I/O. Objects in, causes out.

    explanation  `explain`: an object and what is known around it (`Evidence`) → [Cause]
    pods         one pod: image, room, quota, memory, command, volumes
    owners       what makes pods: jobs, notebooks, TensorBoards
    claims       PersistentVolumeClaims
    room         whether a pod can ever fit, in numbers
    quotaroom    what quotas leave, in numbers
    podtemplates the pods that an object wants
    reading      what Kubernetes' own components say: sentence → cause, and sentence → Chinese
    cause        Cause, and `say`: a sentence of our own that carries its code and parameters
    phrases      a sentence with holes for parameters
    tables       the two tables as Python sees them
    contract     what Python and the pages agree on besides

    causes.yaml       codes, severities, sentences and remedies in both languages
    kubernetes.yaml   the regular expressions, all of them: by what we know a cause in others' words, and their Chinese
    reasons.yaml      reasons and types of conditions, in Chinese
    tables/*.json     the same, made by scripts/generate-diagnosis; Python and the console's pages read these

Controllers put what is said here into conditions and events together with code and parameters (`danlu.meta.said`), so
whoever shows them renders the language that is wanted and reads no sentence of ours.
"""

from danlu.diagnose.cause import Cause, causes_in, render, say, stated
from danlu.diagnose.evidence import Evidence
from danlu.diagnose.explanation import explain

__all__ = ["Cause", "Evidence", "causes_in", "explain", "render", "say", "stated"]
