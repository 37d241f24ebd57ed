"""Fixtures of the synthesis tests."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def no_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in which results are cached during the test. It and the folder for temporary
    files have names that tools take for something else without quotes, as a home may have."""
    odd = tmp_path / 'o\'b "q" $x (1), #:;&'
    odd.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(odd))
    monkeypatch.setenv("VIP_BUILD_DIR", str(odd / "kept results"))
    return odd / "kept results"


@pytest.fixture(scope="module")
def shared_results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder in which results are cached for all tests of a file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIP_BUILD_DIR", str(tmp_path_factory.mktemp("results")))
        yield
