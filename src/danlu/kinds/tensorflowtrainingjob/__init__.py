"""TensorFlowTrainingJob of batch.tensorstack.dev, and TensorFlowJob, as one tutorial has it. Read `README.md` first."""
