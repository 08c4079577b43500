"""Jobs of batch.tensorstack.dev: `dialect` reads their spec, `trainingpods` finishes pods, `report` writes `status`."""
