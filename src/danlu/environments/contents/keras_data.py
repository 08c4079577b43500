"""Keras' MNIST and Fashion-MNIST from the data sets of this machine, where `danlu data get` has put them.

Python runs this file at its start, as `sitecustomize` of the environment `tensorflow`. Keras itself would fetch the
data from its own site, by the hash of one particular file, so nothing that lies elsewhere could stand in for it.
"""

import importlib.abc
import os
import struct
import sys
from pathlib import Path

FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
FOLDERS = {
    f"{package}.src.datasets.{module}": folder
    for package in ("tf_keras", "keras")
    for module, folder in (("mnist", "mnist"), ("fashion_mnist", "fashion-mnist"))
}


def read(folder):
    """((pictures, answers), (test pictures, test answers)), or None where they are not."""
    import numpy

    try:
        raw = [(folder / name).read_bytes() for name in FILES]
    except OSError:
        return None
    pictures = [numpy.frombuffer(one[16:], numpy.uint8).reshape(struct.unpack(">III", one[4:16])) for one in raw[::2]]
    answers = [numpy.frombuffer(one[8:], numpy.uint8) for one in raw[1::2]]
    return (pictures[0].copy(), answers[0].copy()), (pictures[1].copy(), answers[1].copy())


def keep(path, found):
    """At the path that was asked for, as Keras leaves it there; whole or not at all, since several may write."""
    import numpy

    (x_train, y_train), (x_test, y_test) = found
    fresh = path.with_name(f".{path.name}-{os.getpid()}.npz")
    try:
        numpy.savez_compressed(fresh, x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)


def with_data_of_this_machine(load_data, name):
    def load(path="", *more, **options):
        found = read(Path(os.environ.get("DANLU_DATA", "/nowhere")) / name)
        if found is None:
            given = (path, *more) if path else more
            try:
                return load_data(*given, **options)
            except Exception as error:
                error.add_note(f"danlu: without a network, `danlu data get {name}` takes the data from a mirror")
                raise
        if os.path.isabs(path) and not os.path.exists(path):
            keep(Path(path), found)
        return found

    load.__doc__ = load_data.__doc__
    return load


class Finder(importlib.abc.MetaPathFinder):
    """Lets the others find the two modules, and changes them when they have been run."""

    def find_spec(self, name, path, target=None):
        if name not in FOLDERS:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def run_and_change(module):
            run(module)
            module.load_data = with_data_of_this_machine(module.load_data, FOLDERS[name])

        spec.loader.exec_module = run_and_change
        return spec


sys.meta_path.insert(0, Finder())
