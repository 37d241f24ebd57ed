"""Tests that need a browser."""

import pytest

from bench.screens.browser import CHROMIUM, Browser
from support.extras import MissingExtraError
from vip.browser.runtime import runtime_files

__all__ = ["Browser", "needs_chromium", "needs_pyodide"]


def _have_pyodide() -> bool:
    try:
        runtime_files(None)
    except MissingExtraError:
        return False
    return True


needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
needs_pyodide = pytest.mark.skipif(
    not _have_pyodide(), reason="the extra browser is not installed: make browser"
)
