"""console.json may be damaged: what is read from it can be used, or it is not there."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from danlu.standalone.consolelink import ConsoleFile, link

WHOLE = {
    "token": "ab" * 24,
    "key": base64.b64encode(bytes(range(32))).decode(),
    "port": 8080,
    "appsPort": 8081,
    "pid": 7,
}


def test_any_flipped_bit_leaves_something_that_can_be_used(tmp_path: Path) -> None:
    file = ConsoleFile(tmp_path)
    file.write(WHOLE)
    data = (tmp_path / "console.json").read_bytes()
    assert file.read() == WHOLE
    for at in range(len(data)):
        for bit in range(8):
            broken = bytearray(data)
            broken[at] ^= 1 << bit
            (tmp_path / "console.json").write_bytes(broken)
            found = file.read()
            assert all(0 < found.get(key, 1) < 65536 for key in ("port", "appsPort"))
            assert len(base64.b64decode(found.get("key", WHOLE["key"]))) == 32
            link(tmp_path, 7)


def test_other_types_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "console.json").write_text(
        json.dumps({"token": 3, "key": [1], "port": "x", "appsPort": 1e99, "pid": 7})
    )
    assert ConsoleFile(tmp_path).read() == {"pid": 7}
    assert link(tmp_path, 7) == ""
