"""`kubectl get podgroup`: pods that are placed at once or not at all."""
