"""A simulator that performs a file of jobs."""

from pathlib import Path

from isa.support.errors import VipError

from .process import Runner

__all__ = ["JOBS_VARIABLE", "failure_reason", "perform_jobs"]

#: Environment variable that names the folder of the files ``jobs`` and ``results``.
JOBS_VARIABLE = "VIP_JOBS"


def perform_jobs(
    folder: Path, top: str, *, serving: str, work: Path, error: type[VipError]
) -> None:
    """Let a simulator read ``jobs`` in the folder ``work`` and write ``results`` there.

    Parameters:
        folder: of the simulator (:func:`sim_tb.runner.build.build`). top: its top module.
        serving: the module with the cocotb test that performs the jobs.
        error: what to raise when the simulator failed.
    """
    log = work / "log"
    try:
        Runner().test(
            test_module=serving,
            hdl_toplevel=top,
            hdl_toplevel_lang="verilog",
            build_dir=folder,
            test_dir=work,
            results_xml=str(work / "results.xml"),
            extra_env={JOBS_VARIABLE: str(work)},
            log_file=log,
        )
    except OSError as cause:
        raise error(f"simulator failed: {cause}") from None
    except (SystemExit, RuntimeError) as cause:
        raise error(f"simulator failed: {failure_reason(log) or cause}") from None
    if "<failure" in (work / "results.xml").read_text():
        raise error(f"simulator failed: {failure_reason(log)}")


def failure_reason(log: Path) -> str:
    """The line of a simulator's output that says what went wrong; "" without output."""
    lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
    for line in reversed(lines):
        if "Error" in line or "ERROR" in line:
            return line.strip()
    return lines[-1].strip() if lines else ""
