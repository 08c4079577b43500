"""Jobs of batch.tensorstack.dev: `flavour` reads their spec, `pods` makes pods, `machine` decides, `report` tells."""
