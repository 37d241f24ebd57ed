"""A process of a sweep: runs the tasks in a file, and prints the result of each as a line of JSON.

``python -m vip.sweeps.worker FILE`` is started by :func:`vip.sweeps.executor.local`.
"""

import json
import sys
from pathlib import Path

from .tasks import run_task

__all__ = ["main"]


def main(file: Path) -> None:
    """Run the tasks in ``file``, a JSON list."""
    for task in json.loads(file.read_text()):
        print(json.dumps(run_task(task)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
