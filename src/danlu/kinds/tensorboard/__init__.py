"""`kubectl get tensorboard`: a TensorBoard server over log files on claims."""
