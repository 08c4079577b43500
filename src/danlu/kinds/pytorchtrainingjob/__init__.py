"""PyTorchTrainingJob of batch.tensorstack.dev: torch, with or without torchrun. Read `README.md` first."""
