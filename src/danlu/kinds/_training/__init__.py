"""What job kinds share: pure, synchronous, without I/O, except for `controller/`, which gathers what is to be seen.

A job is brought into one shape (`job`), its replicas are read off the API objects (`replicas`), and one state machine
(`lifecycle`) decides everything that happens, for every kind:

    job            Job, Role, Replica, RunPolicy: the normal form of any kind's spec; names of replicas
    jobkind        what a kind says for itself, and what a dialect has to answer
    reconciliation all that is known in one reconcile of a job, and the outcome that is being put together
    lifecycle      restarts, backoff, deadlines, success, clean-up, gangs
    report         what a dialect tells of that
    replicas       what is observed of each replica: pod, service, exit code, how often it was restarted
    children       the pod and the headless service of one replica, from its template
    rendezvous     how replicas find each other: torch's variables, TF_CONFIG
    ports          which port each replica listens on, where pods share the host's network
    restarts       what becomes of a replica that failed; how failures are counted
    endings        deadline, clean-up, time to live
    trouble        why a replica does not start; the last words of one that died
    gang           the PodGroup that engines for gang scheduling read
    observation    what a job's reconcile sees
    platformkind   the kind as the platform sees it: what its kind.py says, and what follows from the rest
    controller/    the I/O around it
    kubeflow/      the dialect of kubeflow.org/v1
    tensorstack/   the dialect of batch.tensorstack.dev
"""
