"""Fixtures of the synthesis tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def no_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in which results are cached during the test."""
    monkeypatch.setenv("VIP_BUILD_DIR", str(tmp_path / "kept results"))
    return tmp_path / "kept results"


@pytest.fixture(scope="module")
def shared_results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder in which results are cached for all tests of a file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIP_BUILD_DIR", str(tmp_path_factory.mktemp("results")))
        yield
