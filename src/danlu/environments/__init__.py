"""What runs behind the names of images on this machine: a catalogue, Python environments, data sets.

`embedded` knows none of it: the composition root hands it the catalogue as the node's `ImageSource`.
"""
