"""Tests that need a browser."""

import pytest

from bench.screens.browser import CHROMIUM, Browser

__all__ = ["Browser", "needs_chromium"]

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
