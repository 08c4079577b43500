"""`kubectl get notebook`: an interactive environment (JupyterLab or RStudio) in a pod of its own."""
