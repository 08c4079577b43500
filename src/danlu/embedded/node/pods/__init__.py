"""One pod: its worker, its containers' environment and launch, probes, status."""
