"""MNIST with a small convolutional network, data-parallel: each process trains on its share of the pictures.

Started by a PyTorchTrainingJob it finds MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE in its environment, or, under
torchrun, what torchrun sets. Process 0 writes the TensorBoard log, tests, and saves the model.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
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
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from torch.utils.tensorboard import SummaryWriter

SITE = "https://ossci-datasets.s3.amazonaws.com/mnist"
FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


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
    for place in (folder, folder / "MNIST" / "raw", offered / "mnist", offered / "MNIST" / "raw"):
        if all((place / name).exists() for name in FILES):
            return place
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        print(f"Downloading {SITE}/{name}.gz", flush=True)
        try:
            with urllib.request.urlopen(f"{SITE}/{name}.gz", timeout=30) as answer:
                (folder / name).write_bytes(gzip.decompress(answer.read()))
        except OSError as error:
            sys.exit(f"{SITE} cannot be reached ({error}); `danlu data get mnist` takes the data from a mirror")
    return folder


def load(folder: Path, images: str, labels: str, most: int = 60000) -> TensorDataset:
    raw = (folder / images).read_bytes()
    _, count, rows, columns = struct.unpack(">IIII", raw[:16])
    count = min(count, most)
    body = bytearray(raw[16 : 16 + count * rows * columns])
    pictures = torch.frombuffer(body, dtype=torch.uint8).view(count, 1, rows, columns).float() / 255
    answers = torch.frombuffer(bytearray((folder / labels).read_bytes()[8 : 8 + count]), dtype=torch.uint8).long()
    return TensorDataset((pictures - 0.1307) / 0.3081, answers)


@torch.no_grad()
def test(model: nn.Module, data: TensorDataset, device: torch.device) -> tuple[float, float]:
    model.eval()
    loss, correct = 0.0, 0
    for pictures, answers in DataLoader(data, batch_size=250):
        found = model(pictures.to(device))
        loss += F.cross_entropy(found, answers.to(device), reduction="sum").item()
        correct += int((found.argmax(1) == answers.to(device)).sum())
    return loss / len(data), correct / len(data)


def train(options: argparse.Namespace, device: torch.device, rank: int, world: int) -> None:
    if rank == 0:
        folder = find_data(options.data)
    dist.barrier()  # one downloads, the others wait
    folder = find_data(options.data)
    torch.manual_seed(1)
    model = DistributedDataParallel(Net().to(device))
    training, testing = load(folder, FILES[0], FILES[1], options.pictures), load(folder, FILES[2], FILES[3])
    sampler: DistributedSampler[TensorDataset] = DistributedSampler(training, seed=1)
    loader = DataLoader(training, batch_size=options.batch_size, sampler=sampler)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    writer = SummaryWriter(str(options.log_dir)) if rank == 0 and options.log_dir else None
    begun, step, accuracy = time.monotonic(), 0, 0.0
    for epoch in range(1, options.epochs + 1):
        model.train()
        sampler.set_epoch(epoch)
        for number, (pictures, answers) in enumerate(loader):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(pictures.to(device)), answers.to(device))
            loss.backward()
            optimizer.step()
            step += 1
            if number % options.log_interval == 0 and rank == 0:
                share = 100 * number // len(loader)
                print(f"Epoch {epoch}/{options.epochs} [{share:3d}%] loss={loss.item():.4f}", flush=True)
                if writer:
                    writer.add_scalar("train/loss", loss.item(), step * world)
        if rank == 0:
            loss_now, accuracy = test(model.module, testing, device)
            print(f"Epoch {epoch}/{options.epochs} test loss={loss_now:.4f} accuracy={accuracy:.4f}", flush=True)
            if writer:
                writer.add_scalar("test/loss", loss_now, epoch)
                writer.add_scalar("test/accuracy", accuracy, epoch)
    if writer:
        writer.close()
    if rank == 0:
        print(f"{world} processes, {time.monotonic() - begun:.1f} s, accuracy {accuracy:.4f}", flush=True)
        if options.save_path:
            torch.save(model.module.state_dict(), options.save_path)
            print(f"The model is in {options.save_path.resolve()}", flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="MNIST, data-parallel.")
    parser.add_argument("--epochs", type=int, default=int(os.environ.get("EPOCHS", "2")))
    parser.add_argument("--batch-size", type=int, default=32, help="of each process")
    parser.add_argument("--lr", type=float, default=0.001)
    few = int(os.environ.get("PICTURES", "60000"))
    parser.add_argument("--pictures", type=int, default=few, help="train on that many only")
    parser.add_argument("--log-interval", type=int, default=50)
    parser.add_argument("--backend", choices=("gloo", "nccl"), help="nccl where there are GPUs, else gloo")
    parser.add_argument("--no_cuda", action="store_true")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--log_dir", type=Path)
    parser.add_argument("--save_path", type=Path)
    return parser.parse_args()


def main() -> None:
    options = parse()
    use_cuda = torch.cuda.is_available() and not options.no_cuda
    if use_cuda:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group(options.backend or ("nccl" if use_cuda else "gloo"))
    rank, world = dist.get_rank(), dist.get_world_size()
    print(f"Process {rank} of {world}", flush=True)
    if rank == 0 and options.log_dir:
        shutil.rmtree(options.log_dir, ignore_errors=True)
    train(options, torch.device("cuda" if use_cuda else "cpu"), rank, world)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
