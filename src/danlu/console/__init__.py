"""The console's server side: serves the pages, signs people in, and stands between a browser and the Kubernetes API.

It has no rights of its own. A request goes on with the identity of the person who is signed in, or not at all. It
knows neither `embedded` nor the kinds' controllers: the API is an ASGI application that it is given (`kubeapi.py`),
in this process or over HTTPS.

Two origins, because what a notebook or a TensorBoard serves is somebody's program:

    console   `app.py`    the pages, /k8s/…, /console/…; its cookie is sealed (`sessions.py`) and counts only together
                          with a secret that the pages show (`proof.py`)
    apps      `apps.py`   notebooks, TensorBoards, services; a cookie per app, got with a ticket from the console
"""
