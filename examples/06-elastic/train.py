"""MNIST on workers that come and go: after every change the training goes on from its last checkpoint.

torchrun starts this program again whenever a worker is lost or joins; RANK and WORLD_SIZE are then others than before.
Progress is therefore counted in pictures, not in steps, and the first process saves it together with the model.
"""

from __future__ import annotations

import argparse
import gzip
import os
import struct
import sys
import time
import urllib.request
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SITE = "https://ossci-datasets.s3.amazonaws.com/mnist"
FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")

Data = tuple[torch.Tensor, torch.Tensor]  # pictures, answers


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.classes = nn.Sequential(nn.Flatten(), nn.Linear(64 * 5 * 5, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.classes(self.features(pictures))
        return found


def find_data(folder: Path) -> Path:
    """The four files: where they are already (Danlu binds the machine's data sets at $DANLU_DATA), else downloaded."""
    offered = Path(os.environ.get("DANLU_DATA", "/nowhere"))
    for place in (folder, offered / "mnist", offered / "MNIST" / "raw"):
        if all((place / name).exists() for name in FILES):
            return place
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        try:
            with urllib.request.urlopen(f"{SITE}/{name}.gz", timeout=30) as answer:
                (folder / name).write_bytes(gzip.decompress(answer.read()))
        except OSError as error:
            sys.exit(f"{SITE} cannot be reached ({error}); `danlu data get mnist` takes the data from a mirror")
    return folder


def load(folder: Path, images: str, labels: str, most: int = 60000) -> Data:
    raw = (folder / images).read_bytes()
    _, count, rows, columns = struct.unpack(">IIII", raw[:16])
    count = min(count, most)
    body = bytearray(raw[16 : 16 + count * rows * columns])
    pictures = torch.frombuffer(body, dtype=torch.uint8).view(count, 1, rows, columns).float() / 255
    answers = torch.frombuffer(bytearray((folder / labels).read_bytes()[8 : 8 + count]), dtype=torch.uint8).long()
    return (pictures - 0.1307) / 0.3081, answers


class Progress:
    """How far the training is, and where that is written down."""

    def __init__(self, file: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.file, self.model, self.optimizer = file, model, optimizer
        self.seen = 0  # pictures, by all processes together

    def restore(self) -> None:
        if self.file.exists():
            found = torch.load(self.file, weights_only=True)
            self.model.load_state_dict(found["model"])
            self.optimizer.load_state_dict(found["optimizer"])
            self.seen = found["seen"]

    def save(self) -> None:
        """Whole or not at all: a process that dies while it writes leaves the last checkpoint as it was."""
        fresh = self.file.with_name(f"{self.file.name}.new")
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "seen": self.seen}
        torch.save(state, fresh)
        fresh.replace(self.file)


def train(options: argparse.Namespace, data: Data, rank: int, world: int) -> nn.Module:
    torch.manual_seed(1)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    progress = Progress(options.checkpoint, model, optimizer)
    progress.restore()
    print(f"Process {rank} of {world} begins after {progress.seen} pictures", flush=True)
    # From here on all are in step: nobody can save a new checkpoint before everybody has read the old one.
    parallel = DistributedDataParallel(model)
    pictures, answers = data
    count, total, step = len(answers), options.epochs * len(answers), 0
    while progress.seen < total:
        epoch, start = divmod(progress.seen, count)
        order = torch.randperm(count, generator=torch.Generator().manual_seed(epoch))
        share = order[(start + torch.arange(rank, options.batch_size * world, world)) % count]
        optimizer.zero_grad()
        loss = F.cross_entropy(parallel(pictures[share]), answers[share])
        loss.backward()
        optimizer.step()
        progress.seen += options.batch_size * world
        step += 1
        if rank == 0 and step % options.save_every == 0:
            progress.save()
            done = 100 * progress.seen // total
            print(f"{progress.seen} of {total} pictures [{done:3d}%] loss={loss.item():.4f}", flush=True)
    return model


@torch.no_grad()
def test(model: nn.Module, data: Data) -> float:
    model.eval()
    batches = zip(data[0].split(250), data[1].split(250), strict=True)
    return sum(int((model(pictures).argmax(1) == answers).sum()) for pictures, answers in batches) / len(data[1])


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="MNIST, data-parallel and elastic.")
    parser.add_argument("--epochs", type=int, default=int(os.environ.get("EPOCHS", "2")))
    parser.add_argument("--pictures", type=int, default=int(os.environ.get("PICTURES", "60000")))
    parser.add_argument("--batch-size", type=int, default=32, help="of each process")
    parser.add_argument("--lr", type=float, default=0.001)
    parser.add_argument("--save-every", type=int, default=20, metavar="STEPS")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--checkpoint", type=Path, default=Path("checkpoint.pt"))
    parser.add_argument("--save_path", type=Path, default=Path("model.pt"))
    return parser.parse_args()


def main() -> None:
    options = parse()
    begun = time.monotonic()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        find_data(options.data)
    dist.barrier()  # one downloads, the others wait
    folder = find_data(options.data)
    model = train(options, load(folder, FILES[0], FILES[1], options.pictures), rank, world)
    if rank == 0:
        accuracy = test(model, load(folder, FILES[2], FILES[3]))
        torch.save(model.state_dict(), options.save_path)
        print(f"{world} processes at the end, {time.monotonic() - begun:.1f} s, accuracy {accuracy:.4f}", flush=True)
        print(f"The model is in {options.save_path.resolve()}", flush=True)
    dist.barrier()  # a process that is lost before here brings all others back to the checkpoint
    if rank == 0:
        options.checkpoint.unlink(missing_ok=True)  # the next run begins anew
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
