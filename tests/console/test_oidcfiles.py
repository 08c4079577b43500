"""With whom people sign in: what is chosen, and what the files say at this moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from danlu.console.oidcfiles import OidcOptionError, OidcOptions


def test_files_that_are_named_are_read_each_time(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("first\n")
    options = OidcOptions(issuer="https://id.example.com", client_id="danlu", client_secret_file=secret)
    found = options.settings()
    assert found is not None
    assert found.client_secret == "first"
    secret.write_text("second\n")  # a Secret that was renewed
    found = options.settings()
    assert found is not None
    assert found.client_secret == "second"


def test_a_file_that_is_not_there_is_named_with_its_option(tmp_path: Path) -> None:
    options = OidcOptions(issuer="https://id.example.com", client_id="danlu", ca_file=tmp_path / "none")
    with pytest.raises(OidcOptionError, match=r"--oidc-ca-file .*/none: No such file or directory"):
        options.settings()
