"""Fashion-MNIST with a small convolutional network, in one process or in several (DistributedDataParallel).

Started by a PyTorchJob it finds MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE in its environment. The last line of the
log has the metrics in the form that Katib reads.
"""

from __future__ import annotations

import argparse
import gzip
import logging
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

SITE = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 20, 5)
        self.second = nn.Conv2d(20, 50, 5)
        self.hidden = nn.Linear(4 * 4 * 50, 500)
        self.out = nn.Linear(500, 10)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        found = F.max_pool2d(F.relu(self.first(pictures)), 2)
        found = F.max_pool2d(F.relu(self.second(found)), 2)
        found = F.relu(self.hidden(found.flatten(1)))
        return F.log_softmax(self.out(found), dim=1)


def find_data(folder: Path) -> Path:
    """The four files: where they are already (Danlu binds the machine's data sets at $DANLU_DATA), else downloaded."""
    offered = Path(os.environ.get("DANLU_DATA", "/nowhere")) / "fashion-mnist"
    for place in (folder, folder / "FashionMNIST" / "raw", offered):
        if all((place / name).exists() for name in FILES):
            return place
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        print(f"Downloading {SITE}/{name}.gz", flush=True)
        try:
            with urllib.request.urlopen(f"{SITE}/{name}.gz", timeout=30) as answer:
                (folder / name).write_bytes(gzip.decompress(answer.read()))
        except OSError as error:
            sys.exit(f"{SITE} cannot be reached ({error}); `danlu data get fashion-mnist` takes the data from a mirror")
    print("Done!", flush=True)
    return folder


def load(folder: Path, images: str, labels: str) -> tuple[torch.Tensor, torch.Tensor]:
    raw = (folder / images).read_bytes()
    _, count, rows, columns = struct.unpack(">IIII", raw[:16])
    pictures = torch.frombuffer(bytearray(raw[16:]), dtype=torch.uint8).view(count, 1, rows, columns).float() / 255
    answers = torch.frombuffer(bytearray((folder / labels).read_bytes()[8:]), dtype=torch.uint8).long()
    return (pictures - 0.1307) / 0.3081, answers


Data = tuple[torch.Tensor, torch.Tensor]  # pictures, answers


def train(model: nn.Module, data: Data, device: torch.device, epoch: int, options: argparse.Namespace) -> None:
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=options.momentum)
    pictures, answers = data
    order = torch.randperm(len(answers))
    batches = order.split(options.batch_size)
    for number, batch in enumerate(batches):
        optimizer.zero_grad()
        loss = F.nll_loss(model(pictures[batch].to(device)), answers[batch].to(device))
        loss.backward()
        optimizer.step()
        if number % options.log_interval == 0:
            done = number * options.batch_size
            share = 100.0 * number / len(batches)
            logging.info(f"Train Epoch: {epoch} [{done}/{len(answers)} ({share:.0f}%)]\tloss={loss.item():.4f}")


@torch.no_grad()
def test(model: nn.Module, data: Data, device: torch.device) -> None:
    model.eval()
    loss, correct = 0.0, 0
    for pictures, answers in zip(data[0].split(1000), data[1].split(1000), strict=True):
        found = model(pictures.to(device))
        loss += F.nll_loss(found, answers.to(device), reduction="sum").item()
        correct += int((found.argmax(1) == answers.to(device)).sum())
    total = len(data[1])
    metrics = {"accuracy": correct / total, "loss": loss / total}
    logging.info(";".join(f"{{metricName: {name}, metricValue: {value:.4f}}}" for name, value in metrics.items()))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Fashion-MNIST, distributed.")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--momentum", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-interval", type=int, default=10)
    parser.add_argument("--backend", default="gloo", choices=("gloo", "nccl"))
    parser.add_argument("--no-cuda", action="store_true")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--save-model", type=Path, metavar="FILE")
    return parser.parse_args()


def main() -> None:
    options = parse()
    form, date = "%(asctime)s %(levelname)-8s %(message)s", "%Y-%m-%dT%H:%M:%SZ"
    logging.basicConfig(format=form, datefmt=date, level=logging.INFO, stream=sys.stdout)
    logging.Formatter.converter = time.gmtime
    use_cuda = torch.cuda.is_available() and not options.no_cuda
    device = torch.device("cuda" if use_cuda else "cpu")
    distributed = int(os.environ.get("WORLD_SIZE", "1")) > 1
    if distributed:
        print(f"Using distributed PyTorch with {options.backend} backend", flush=True)
        dist.init_process_group(options.backend)
    rank = dist.get_rank() if distributed else 0
    folder = find_data(options.data)
    torch.manual_seed(options.seed)
    model: nn.Module = Net().to(device)
    if distributed:
        model = nn.parallel.DistributedDataParallel(model)
    torch.manual_seed(options.seed + rank)  # the same start everywhere, another order of pictures on each
    training = load(folder, FILES[0], FILES[1])
    testing = load(folder, FILES[2], FILES[3])
    for epoch in range(1, options.epochs + 1):
        train(model, training, device, epoch, options)
        test(model, testing, device)
    if options.save_model and rank == 0:
        torch.save(model.state_dict(), options.save_model)
    if distributed:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
