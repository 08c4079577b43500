"""Starting a helper of the node in a bare interpreter: no site packages, and no package's `__init__`.

The helpers start in forty milliseconds and stay small because they see the standard library and their own modules only.
"""

from __future__ import annotations

import os
import sys

PACKAGE = "danlu.embedded.node.sandbox"
CODE = """
import importlib, sys, types
base, package, module, function = sys.argv[1:5]
names = package.split(".")
for depth in range(len(names)):
    made = types.ModuleType(".".join(names[: depth + 1]))
    made.__path__ = ["/".join([base, *names[1 : depth + 1]])]
    sys.modules[made.__name__] = made
getattr(importlib.import_module(package + "." + module), function)()
"""


def helper_command(module: str, function: str, package: str = PACKAGE) -> list[str]:
    base = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * PACKAGE.count(".")))
    return [sys.executable, "-I", "-S", "-X", "utf8", "-c", CODE, base, package, module, function]
