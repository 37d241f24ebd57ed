"""A process that runs the tasks in a file in turn, and writes each result as a line of JSON.

``python -m vip.executor.worker FILE`` is started by :func:`vip.executor.executor.local`.
"""

import json
import sys
from pathlib import Path

from .work import do


def main(file: Path) -> None:
    """Do the ``tasks`` of the ``work`` in ``file``, a JSON object."""
    content = json.loads(file.read_text())
    for task in content["tasks"]:
        print(json.dumps(do(content["work"], task)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
