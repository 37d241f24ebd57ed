"""Screenshots of pages in Chromium without a screen."""
