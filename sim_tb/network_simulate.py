"""A simulator of a network, started on a folder of jobs."""

from pathlib import Path

from cocotb_tools.runner import get_runner

from isa.errors import VipError

__all__ = ["JOBS_VARIABLE", "NetworkError", "simulate"]

#: Environment variable that names the folder of the files ``jobs`` and ``results``.
JOBS_VARIABLE = "VIP_NETWORK_JOBS"


class NetworkError(VipError):
    """A run in which the network did not do as it must, or that can't be made; says why."""


def simulate(folder: Path, top: str, *, serving: str, work: Path) -> None:
    """Let a simulator read ``jobs`` in the folder ``work`` and write ``results`` there.

    Parameters:
        folder: of the simulator (:func:`sim_tb.build.build`). top: its top module.
        serving: the module with the cocotb test that performs the jobs.

    Raises:
        NetworkError: the simulator failed.
    """
    log = work / "log"
    try:
        get_runner("verilator").test(
            test_module=serving,
            hdl_toplevel=top,
            hdl_toplevel_lang="verilog",
            build_dir=folder,
            test_dir=work,
            results_xml=str(work / "results.xml"),
            extra_env={JOBS_VARIABLE: str(work)},
            log_file=log,
        )
    except (SystemExit, RuntimeError, OSError) as error:
        raise NetworkError(f"simulator failed: {_reason(log) or error}") from None
    if "<failure" in (work / "results.xml").read_text():
        raise NetworkError(f"simulator failed: {_reason(log)}")


def _reason(log: Path) -> str:
    """The line of the simulator's output that says what went wrong."""
    lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
    for line in reversed(lines):
        if "Error" in line or "ERROR" in line:
            return line.strip()
    return lines[-1].strip() if lines else ""
