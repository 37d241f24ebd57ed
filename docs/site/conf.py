"""Configuration of the documentation site; ``make docs`` builds it in build/site."""

from datetime import date
from importlib.metadata import version as installed
from typing import Any

from pygments.lexers.special import TextLexer

project = "VIP"
author = "the VIP authors"
version = release = installed("vip-inference")

# The pages are the Markdown of the repository, where it is; the root is its top folder.
root_doc = "docs/index"
include_patterns = ["docs/**", "examples/README.md", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
exclude_patterns = [".*", "build", "docs/site", "docs/decisions/**/.*"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# Docstrings name parameters as in Google's style; a component lists its members likewise.
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Members", "params_style")]
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_typehints = "signature"
python_maximum_signature_line_length = 80

html_theme = "furo"
html_title = f"VIP {release}"
html_extra_path = ["extra"]
html_copy_source = False
html_show_sphinx = False
copyright = str(date.today().year)


#: The page that lists the decisions; a toctree in it would show as code where the page is read.
_DECISIONS = "docs/decisions/README"
_TOCTREE = """

```{toctree}
:hidden:
:glob:

*
```
"""


def _add_decisions(app: Any, name: str, source: list[str]) -> None:
    """Put the decisions into the tree of pages."""
    if name == _DECISIONS:
        source[0] += _TOCTREE


def setup(app: Any) -> None:
    """Extend Sphinx: no lexer knows VIP's assembly, which is shown as it is."""
    app.add_lexer("asm", TextLexer)
    app.connect("source-read", _add_decisions)
