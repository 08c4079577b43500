"""The command line: one file per command, in the folders `local` (this machine), `work`, `cluster` and `maintenance`.
These files read options, call, ask and print, in English and Chinese; what a command decides or puts together belongs
below: `standalone` for `danlu up`, `operator.install`, `console`, `environments`."""
