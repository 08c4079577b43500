"""Pure facts about Kubernetes objects: names, labels, quantities, patches, schemas. Nothing here does I/O or waits."""
