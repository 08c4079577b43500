"""`danlu up`, put together: the embedded Kubernetes, the kinds that run on it, what stands behind image names, and the
console. It is the only place that knows them all; it is told what happens through `StandaloneObserver`, and says
nothing to anybody itself: `cli` does."""
