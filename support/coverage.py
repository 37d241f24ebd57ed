"""The folder for counts of the lines that simulations execute; ``docs/verification.md`` has them.

If ``VIP_COVERAGE`` names a folder, emitted Verilog has a signal for each line of its Python sources
that a condition guards (:mod:`hdl.lines`), simulators are built with ``--coverage-line``, and each
run adds a file with its counts. Otherwise nothing changes.
"""

import os
from pathlib import Path

#: Environment variable that names the folder.
VARIABLE = "VIP_COVERAGE"


def coverage_folder() -> Path | None:
    """The folder, whatever the current one; None: no lines are counted."""
    chosen = os.environ.get(VARIABLE)
    return Path(chosen).absolute() if chosen else None
