"""MNIST with parameter servers: they keep the model, workers compute on their share of the pictures, the chief directs.

Every replica runs this program and learns from TF_CONFIG which one it is. Workers and parameter servers serve until
they are ended from outside; the chief trains, tests, saves the model, and ends.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import sys
import time
import urllib.request
from pathlib import Path

os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")  # a worker that is away for a moment is waited for

import tensorflow as tf
from tensorflow.keras import callbacks, layers, models, optimizers

SITE = "https://ossci-datasets.s3.amazonaws.com/mnist"
FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
TRAINING, TESTING = 60000, 10000
PICTURE_BYTES, PICTURES_HEADER, LABELS_HEADER = 28 * 28, 16, 8


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="MNIST with ParameterServerStrategy.")
    parser.add_argument("--log_dir", type=Path, help="where the TensorBoard log goes")
    parser.add_argument("--save_path", type=Path, help="where the model goes")
    parser.add_argument("--epochs", type=int, default=int(os.environ.get("EPOCHS", "3")))
    parser.add_argument("--pictures", type=int, default=int(os.environ.get("PICTURES", str(TRAINING))))
    parser.add_argument("--batch-size", type=int, default=64)
    return parser.parse_args()


def serve(resolver: tf.distribute.cluster_resolver.ClusterResolver) -> None:
    """A worker or a parameter server does what the chief tells it, until its pod goes."""
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
    )
    print(f"{resolver.task_type} {resolver.task_id} serves at {server.target}", flush=True)
    server.join()


def find_data() -> Path:
    """The four files in a folder that workers see too: $DANLU_DATA, or this one, which is the claim."""
    here, offered = Path("data").resolve(), Path(os.environ.get("DANLU_DATA", "/nowhere"))
    for place in (here, offered / "mnist", offered / "MNIST" / "raw"):
        if all((place / name).exists() for name in FILES):
            return place
    here.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        try:
            with urllib.request.urlopen(f"{SITE}/{name}.gz", timeout=30) as answer:
                (here / name).write_bytes(gzip.decompress(answer.read()))
        except OSError as error:
            sys.exit(f"{SITE} cannot be reached ({error}); `danlu data get mnist` takes the data from a mirror")
    return here


def read(folder: Path, images: str, labels: str) -> tf.data.Dataset:
    """Straight from the files, on the machine that computes: the chief sends no pictures."""
    pictures = tf.data.FixedLengthRecordDataset(str(folder / images), PICTURE_BYTES, header_bytes=PICTURES_HEADER)
    answers = tf.data.FixedLengthRecordDataset(str(folder / labels), 1, header_bytes=LABELS_HEADER)

    def decode(picture: tf.Tensor, answer: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        values = tf.cast(tf.reshape(tf.io.decode_raw(picture, tf.uint8), (28, 28, 1)), tf.float32)
        return values / 255.0, tf.cast(tf.io.decode_raw(answer, tf.uint8)[0], tf.int64)

    return tf.data.Dataset.zip((pictures, answers)).map(decode)


def build() -> tf.keras.Model:
    model = models.Sequential(
        [
            layers.Conv2D(16, 3, activation="relu", input_shape=(28, 28, 1)),
            layers.MaxPool2D(2),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPool2D(2),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(optimizer=optimizers.Adam(0.001), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def direct(resolver: tf.distribute.cluster_resolver.ClusterResolver, options: argparse.Namespace) -> None:
    cluster = resolver.cluster_spec()
    workers, servers = cluster.num_tasks("worker"), cluster.num_tasks("ps")
    print(f"The chief of {workers} workers and {servers} parameter server(s)", flush=True)
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    with strategy.scope():
        model = build()
    folder = find_data()
    watchers = []
    if options.log_dir:
        shutil.rmtree(options.log_dir, ignore_errors=True)
        watchers.append(callbacks.TensorBoard(log_dir=str(options.log_dir)))

    def shuffled(context: tf.distribute.InputContext) -> tf.data.Dataset:
        """Each worker makes its own; workers are not in step, so each draws from all pictures in its own order."""
        pictures = read(folder, FILES[0], FILES[1]).take(options.pictures)
        return pictures.shuffle(options.pictures).repeat().batch(options.batch_size).prefetch(4)

    begun = time.monotonic()
    model.fit(
        tf.keras.utils.experimental.DatasetCreator(shuffled),
        epochs=options.epochs,
        steps_per_epoch=max(options.pictures // options.batch_size, 1),
        callbacks=watchers,
        verbose=2,
    )
    passed = time.monotonic() - begun
    if options.save_path:
        shutil.rmtree(options.save_path, ignore_errors=True)
        model.save(str(options.save_path))
        print(f"The model is in {options.save_path.resolve()}", flush=True)
    alone = build()  # what was trained, on the chief itself: testing needs no cluster
    alone.set_weights(model.get_weights())
    tested = read(folder, FILES[2], FILES[3]).batch(1000)
    _, accuracy = alone.evaluate(tested, verbose=0)
    print(f"{workers} workers, {servers} parameter server(s), {passed:.1f} s, accuracy {accuracy:.4f}", flush=True)


def main() -> None:
    options = parse()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        serve(resolver)
    else:
        direct(resolver, options)


if __name__ == "__main__":
    main()
