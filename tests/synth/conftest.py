"""Fixtures of the synthesis tests."""

from pathlib import Path

import pytest


@pytest.fixture
def no_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in which results are kept during the test."""
    monkeypatch.setenv("VIP_BUILD_DIR", str(tmp_path / "kept results"))
    return tmp_path / "kept results"
