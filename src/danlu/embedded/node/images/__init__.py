"""OCI images on this node: names, the store, archives, registries, and the tree that a container gets of them.

reference      names of images, as every engine reads them
imagestore     blobs and unpacked layers by digest, names beside them
unpacking      one layer into a folder, in a process of its own: nothing of it may land elsewhere
archive        docker-archive and OCI layout, in and out
registry       the registry protocol; puller and pusher use it
driverfiles    the GPU driver of this machine, which no image has
building       images from Dockerfiles
onmachine      images that were built on an environment of this machine
imagemanager   what the node asks: an image for this container, pulled if its policy says so
"""
