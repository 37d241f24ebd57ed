"""The page on a result, one HTML file that needs no other."""

import json
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from .figures import FIGURES
from .style import SCRIPT, STYLE

__all__ = ["run_page"]


#: What a figure meets where a result has a part of its name, but of another form.
_OTHER_FORM = (AttributeError, ArithmeticError, IndexError, KeyError, TypeError, ValueError)


def _drawn(draw: Callable[[Mapping[str, Any]], str], content: Mapping[str, Any]) -> str:
    """The figure; "" if the result has nothing for it."""
    try:
        return draw(content)
    except _OTHER_FORM:
        return ""


def run_page(name: str, content: Mapping[str, Any]) -> str:
    """The page's HTML.

    Parameters:
        name: of the result, its title. content: what a command wrote with ``--json``.
    """
    origin = content.get("provenance")
    about = (
        ", ".join(f"{key}: {value}" for key, value in origin.items())
        if isinstance(origin, dict)
        else ""
    )
    entries = {key: value for key, value in content.items() if key != "provenance"}
    sections = [section for draw in FIGURES if (section := _drawn(draw, entries))]
    source = escape(json.dumps(content, indent=1))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{escape(name)}</title><style>{STYLE}</style></head>'
        f"<body><h1>{escape(name)}</h1>\n"
        + "\n".join(sections)
        + f"\n<details><summary>All data</summary><pre>{source}</pre></details>"
        + f'<footer>{escape(about)}</footer><div id="tip" role="status"></div>'
        + f"<script>{SCRIPT}</script></body></html>\n"
    )
