#!/usr/bin/env python3
"""The program `tensorboard` of the TensorFlow images, without TensorFlow: it reads event files by itself, in 80 MB.

TensorFlow's 590 MB would not fit what TensorBoards are usually given. `tensorboard.compat` asks for a module of this
name before it looks for TensorFlow; what needs TensorFlow itself is told by TensorBoard to have a reduced feature set.
"""

import sys
import types

sys.modules["tensorboard.compat.notf"] = types.ModuleType("tensorboard.compat.notf")

from tensorboard.main import run_main  # noqa: E402

sys.exit(run_main())
