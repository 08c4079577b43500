"""MNIST with Keras on several workers: MultiWorkerMirroredStrategy reads who they are from TF_CONFIG.

Worker 0 writes the TensorBoard log and the model that is kept; the others must save too (the strategy wants all of them
to take part) and throw theirs away.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import sys
import urllib.request
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.keras import callbacks, layers, models, optimizers

SITE = "https://ossci-datasets.s3.amazonaws.com/mnist"
FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="MNIST with MultiWorkerMirroredStrategy.")
    parser.add_argument("--log_dir", type=Path, help="where the TensorBoard log goes")
    parser.add_argument("--save_path", type=Path, help="where the model goes")
    parser.add_argument("--no_cuda", action="store_true", help="do not use GPUs")
    parser.add_argument("--epochs", type=int, default=int(os.environ.get("EPOCHS", "2")))
    parser.add_argument("--pictures", type=int, default=int(os.environ.get("PICTURES", "60000")))
    return parser.parse_args()


def load(index: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """`mnist.npz` of the working directory, else the four IDX files: there, in $DANLU_DATA, or downloaded."""
    if Path("mnist.npz").exists():
        with np.load("mnist.npz") as found:
            return found["x_train"], found["y_train"], found["x_test"], found["y_test"]
    own = Path(f"/tmp/mnist-{index}")  # each worker for itself: a shared folder would be read while it is written
    offered = Path(os.environ.get("DANLU_DATA", "/nowhere"))
    places = (
        Path("data"),
        Path("data/MNIST/raw"),
        Path("MNIST/raw"),
        offered / "mnist",
        offered / "MNIST" / "raw",
        own,
    )
    place = next((one for one in places if all((one / name).exists() for name in FILES)), None)
    if place is None:
        place = download(own)
    images = [np.frombuffer((place / FILES[n]).read_bytes()[16:], np.uint8).reshape(-1, 28, 28) for n in (0, 2)]
    labels = [np.frombuffer((place / FILES[n]).read_bytes()[8:], np.uint8) for n in (1, 3)]
    return images[0], labels[0], images[1], labels[1]


def download(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        try:
            with urllib.request.urlopen(f"{SITE}/{name}.gz", timeout=30) as answer:
                (folder / name).write_bytes(gzip.decompress(answer.read()))
        except OSError as error:
            sys.exit(f"{SITE} cannot be reached ({error}); `danlu data get mnist` takes the data from a mirror")
    return folder


def build(workers: int) -> tf.keras.Model:
    model = models.Sequential(
        [
            layers.Conv2D(32, 3, activation="relu", input_shape=(28, 28, 1)),
            layers.MaxPool2D(2),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPool2D(2),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(
        optimizer=optimizers.Adam(learning_rate=0.001 * workers),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    return model


def main() -> None:
    options = parse()
    if options.no_cuda:
        tf.config.set_visible_devices([], "GPU")
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    config = json.loads(os.environ["TF_CONFIG"])
    workers, index = len(config["cluster"]["worker"]), config["task"]["index"]
    print(f"Worker {index} of {workers}", flush=True)
    with strategy.scope():
        model = build(workers)
    pictures, answers, test_pictures, test_answers = load(index)
    pictures, answers = pictures[: options.pictures, ..., None] / 255.0, answers[: options.pictures]
    watchers = []
    if index == 0 and options.log_dir:
        shutil.rmtree(options.log_dir, ignore_errors=True)
        watchers.append(callbacks.TensorBoard(log_dir=str(options.log_dir)))
    model.fit(
        pictures, answers, batch_size=32 * workers, epochs=options.epochs, validation_split=0.2, callbacks=watchers,
        verbose=2,
    )  # fmt: skip
    if options.save_path:
        own = options.save_path if index == 0 else options.save_path.with_name(f"{options.save_path.name}_temp_{index}")
        shutil.rmtree(own, ignore_errors=True)
        model.save(str(own))
        if index != 0:
            shutil.rmtree(own, ignore_errors=True)
    # Workers meet after every batch: few large ones.
    model.evaluate(test_pictures[..., None] / 255.0, test_answers, batch_size=1000, verbose=2)


if __name__ == "__main__":
    main()
