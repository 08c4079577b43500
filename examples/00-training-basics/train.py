"""Trains a small image classifier and saves it: the program behind the first job.

CIFAR-10 is used where it is there or can be downloaded; offline, pictures of the same shape are drawn instead, whose
class can be seen from where the bright spot is and which colour it has, so there is something to learn.

    EPOCHS   how many times to go through the data (3)
    SAMPLES  how many pictures to train on (2048)
    OUTPUT   folder for model.pth (./output)
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

EPOCHS = int(os.environ.get("EPOCHS", "3"))
SAMPLES = int(os.environ.get("SAMPLES", "2048"))
OUTPUT = Path(os.environ.get("OUTPUT", "output"))


def create_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 8 * 8, 10),
    )  # fmt: skip


def drawn_pictures(count: int) -> Dataset[tuple[torch.Tensor, ...]]:
    generator = torch.Generator().manual_seed(1)
    labels = torch.randint(0, 10, (count,), generator=generator)
    pictures = torch.randn(count, 3, 32, 32, generator=generator) * 0.3
    for index, label in enumerate(labels.tolist()):
        row, column, colour = 6 * (label % 5), 16 * (label // 5), label % 3
        pictures[index, colour, row : row + 8, column : column + 8] += 1.0
    return TensorDataset(pictures, labels)


def load_data() -> Dataset[tuple[torch.Tensor, ...]]:
    try:
        from torchvision import datasets, transforms

        data = datasets.CIFAR10(root="./data", train=True, download=False, transform=transforms.ToTensor())
        print(f"Using CIFAR-10: {len(data)} pictures")
        return torch.utils.data.Subset(data, range(min(SAMPLES, len(data))))
    except (ImportError, RuntimeError):
        print(f"CIFAR-10 is not here; using {SAMPLES} drawn pictures")
        return drawn_pictures(SAMPLES)


def log_run() -> object | None:
    """Weights & Biases, where it is installed and a key is given; the run is kept on disk when there is no network."""
    if not os.environ.get("WANDB_API_KEY"):
        return None
    try:
        import wandb
    except ImportError:
        print("wandb is not installed here; metrics go to the log only")
        return None
    return wandb.init(project="basic-model-training", mode=os.environ.get("WANDB_MODE", "offline"), dir=str(OUTPUT))


def train_epoch(
    model: nn.Module,
    loader: DataLoader[tuple[torch.Tensor, ...]],
    optimizer: torch.optim.Optimizer,
    device: torch.device,
) -> tuple[float, float]:
    criterion = nn.CrossEntropyLoss()
    total_loss, correct, total = 0.0, 0, 0
    for batch, (pictures, labels) in enumerate(loader):
        pictures, labels = pictures.to(device), labels.to(device)
        optimizer.zero_grad()
        output = model(pictures)
        loss = criterion(output, labels)
        loss.backward()
        optimizer.step()
        total_loss += loss.item()
        correct += int((output.argmax(dim=1) == labels).sum())
        total += len(labels)
        if batch % 10 == 0:
            print(f"Batch {batch}, Loss: {loss.item():.6f}", flush=True)
    return total_loss / len(loader), 100.0 * correct / total


def main() -> None:
    OUTPUT.mkdir(parents=True, exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print(f"Using device: {device}, {torch.get_num_threads()} threads", flush=True)
    torch.manual_seed(1)
    run = log_run()
    loader = DataLoader(load_data(), batch_size=64, shuffle=True)
    model = create_model().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    for epoch in range(1, EPOCHS + 1):
        begun = time.monotonic()
        loss, accuracy = train_epoch(model, loader, optimizer, device)
        print(
            f"Epoch {epoch}/{EPOCHS}: Loss={loss:.4f}, Accuracy={accuracy:.2f}% ({time.monotonic() - begun:.1f} s)",
            flush=True,
        )
        # Written beside and moved, so that a model.pth that is there is always whole.
        torch.save(model.state_dict(), OUTPUT / "model.pth.new")
        (OUTPUT / "model.pth.new").replace(OUTPUT / "model.pth")
        if run is not None:
            run.log({"epoch": epoch, "train_loss": loss, "train_accuracy": accuracy})
    if run is not None:
        run.finish()
    print(f"Saved {(OUTPUT / 'model.pth').absolute()}", flush=True)


if __name__ == "__main__":
    main()
