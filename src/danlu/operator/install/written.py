"""Objects as YAML text, the way all generated files have them."""

from __future__ import annotations

from collections.abc import Iterable

import yaml

from danlu.meta.kind import Object

HEAD = "# Written by scripts/generate-deploy from src/danlu/operator/install; not to be edited.\n"


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


_Dumper.add_representer(tuple, yaml.CSafeDumper.represent_list)


def text(obj: object) -> str:
    return yaml.dump(obj, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)


def file(objects: Iterable[Object]) -> str:
    return HEAD + "---\n".join(map(text, objects))
