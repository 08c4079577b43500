"""The system's Chromium, driven by Playwright: which one, and how it is started."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def launched() -> Iterator[Any]:
    """Playwright's Browser. While it lives, its event loop is in the way of every asynchronous test."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: scripts/setup --dev")
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"no Chromium on PATH ({', '.join(NAMES)})")
    with sync_api.sync_playwright() as playwright:
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses to run as root without
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        try:
            yield browser
        finally:
            browser.close()
