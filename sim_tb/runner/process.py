"""Runs simulators so that none outlives the process that started it."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from cocotb_tools import config
from cocotb_tools.runner import PathLike, Verilator

from support.files import full_folder
from support.processes import end_tool, tool


class Runner(Verilator):
    """cocotb's runner of Verilator's simulators, which end with this process.

    Simulators find cocotb's libraries in the environment that runs them, so that another
    environment with the same versions may have built them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = False

    def end(self) -> None:
        """Kill commands running in another thread, and start no more."""
        self._ended = True
        if self._process is not None:
            end_tool(self._process)

    def _set_env_test(self) -> None:
        super()._set_env_test()
        folders = [str(config.libs_dir), self.env.get("LD_LIBRARY_PATH", "")]
        self.env["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, folders))

    def _execute_cmds(
        self, cmds: Sequence[list[str]], cwd: PathLike, stdout: TextIO | None = None
    ) -> None:
        stderr = None if stdout is None else subprocess.STDOUT
        for command in cmds:
            with tool(command, cwd=str(cwd), env=self.env, stdout=stdout, stderr=stderr) as process:
                self._process = process
                if self._ended:
                    end_tool(process)
                code = process.wait()
            if code == -signal.SIGBUS and (full := full_folder(tempfile.gettempdir())):
                raise OSError(
                    f"no space is left for the simulated memory in {full}; "
                    "TMPDIR can name another folder"
                )
            if code:
                raise RuntimeError(f"{Path(command[0]).name} ended with exit code {code}")
