"""What job kinds share: pure, synchronous, without I/O, except for `controller`, which wires it to an API.

A job is brought into one shape (`job`), its replicas are read off the API objects (`replicas`), and everything that
happens is decided from that:

    job          Job, Role, Replica, RunPolicy: the normal form of any kind's spec; names of replicas
    replicas     what is observed of each replica: pod, service, exit code, how often it was restarted
    children     the pod and the headless service of one replica, from its template
    rendezvous   how replicas find each other: torch's variables, TF_CONFIG
    ports        which port each replica listens on, where pods share the host's network
    restarts     what becomes of a replica that failed; how failures are counted
    endings      deadline, clean-up, time to live
    trouble      why a replica does not start; the last words of one that died
    gang         the PodGroup that engines for gang scheduling read
    observing    what a job's reconcile sees
    controller   the I/O around it
    kubeflow/    the status machine, schema and labels of kubeflow.org/v1
"""
