"""Results of tasks, kept on disk, so that an interrupted sweep goes on."""

import json
from typing import Any

from support.cache import build_folder
from support.files import write_atomically

__all__ = ["Store"]


class Store:
    """Results by key (:func:`vip.sweeps.tasks.task_key`), a file each in the build folder."""

    def __init__(self) -> None:
        self._folder = build_folder() / "sweeps"

    def get(self, key: str) -> dict[str, Any] | None:
        """The result of ``key``; None: there is none, or its file is damaged."""
        try:
            found = json.loads((self._folder / f"{key}.json").read_text())
        except (FileNotFoundError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def put(self, key: str, result: dict[str, Any]) -> None:
        """Keep a result.

        Raises:
            OSError: the file can't be written.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self._folder / f"{key}.json", json.dumps(result).encode())
