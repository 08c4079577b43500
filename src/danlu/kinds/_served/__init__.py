"""What kinds that serve a web page share (Notebook, TensorBoard): one pod behind one Service, reached by a path.

`shape` makes the children, `phase` reads their state into phase and conditions, `controller` does the I/O around the
kind's own pure `reconcile`.
"""
