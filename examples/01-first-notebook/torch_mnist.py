"""MNIST with a small convolutional network, in one process: paste it into a cell of the notebook and run it."""

from __future__ import annotations

import gzip
import os
import struct
import urllib.request
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = int(os.environ.get("EPOCHS", "2"))
PICTURES = int(os.environ.get("PICTURES", "60000"))
SITE = "https://ossci-datasets.s3.amazonaws.com/mnist"
FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def find_data(folder: Path = Path("data")) -> Path:
    """The four files: where they are already (Danlu binds the machine's data sets at $DANLU_DATA), else downloaded."""
    offered = Path(os.environ.get("DANLU_DATA", "/nowhere"))
    for place in (folder, folder / "MNIST" / "raw", offered / "mnist", offered / "MNIST" / "raw"):
        if all((place / name).exists() for name in FILES):
            return place
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        print(f"Downloading {SITE}/{name}.gz")
        with urllib.request.urlopen(f"{SITE}/{name}.gz", timeout=30) as answer:
            (folder / name).write_bytes(gzip.decompress(answer.read()))
    return folder


def load(folder: Path, images: str, labels: str, most: int = 60000) -> TensorDataset:
    raw = (folder / images).read_bytes()
    _, count, rows, columns = struct.unpack(">IIII", raw[:16])
    count = min(count, most)
    body = bytearray(raw[16 : 16 + count * rows * columns])
    pictures = torch.frombuffer(body, dtype=torch.uint8).view(count, 1, rows, columns).float() / 255
    answers = torch.frombuffer(bytearray((folder / labels).read_bytes()[8 : 8 + count]), dtype=torch.uint8).long()
    return TensorDataset((pictures - 0.1307) / 0.3081, answers)


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(1)
model = nn.Sequential(
    nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(64 * 5 * 5, 64), nn.ReLU(), nn.Linear(64, 10),
).to(device)  # fmt: skip
optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
folder = find_data()
training = load(folder, FILES[0], FILES[1], PICTURES)
testing = load(folder, FILES[2], FILES[3])
loader = DataLoader(training, batch_size=32, shuffle=True)

for epoch in range(1, EPOCHS + 1):
    model.train()
    for number, (pictures, answers) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(pictures.to(device)), answers.to(device))
        loss.backward()
        optimizer.step()
        if number % 500 == 0:
            print(f"Epoch {epoch}/{EPOCHS} [{100 * number // len(loader):3d}%] loss={loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        right = sum(
            int((model(pictures.to(device)).argmax(1) == answers.to(device)).sum())
            for pictures, answers in DataLoader(testing, batch_size=250)
        )
    print(f"Epoch {epoch}/{EPOCHS} accuracy={right / len(testing):.4f}")

torch.save(model.state_dict(), "model_state_dict.pt")
