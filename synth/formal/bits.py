"""From circuits to graphs."""

from pathlib import Path

from hdl.yosys import YosysError, run_yosys
from support.files import write_file
from support.scratch import scratch_folder

from .aig import Graph, read_aiger
from .errors import ProofError

__all__ = ["graph_of"]


def graph_of(text: str, top: str) -> Graph:
    """The graph of a combinational module; a port of several bits has ``[n]`` after its name.

    A bit that the design leaves undefined, which tools may choose, is 0.

    Parameters:
        text: RTLIL. top: name of the module.

    Raises:
        ProofError: Yosys refused it.
    """
    with scratch_folder("proof") as folder:
        write_file(folder / "design.il", text)
        commands = [
            "read_rtlil design.il",
            f"hierarchy -check -top {top}",
            "proc -noopt -norom",
            "flatten -noscopeinfo",
            "opt_clean",
            "opt_expr",
            "techmap",
            "opt_clean",
            "setundef -zero",
            "aigmap",
            "opt_clean",
            "write_aiger -symbols design.aig",
        ]
        try:
            run_yosys(commands, purpose=f"graph of {top}", folder=Path(folder))
        except YosysError as error:
            raise ProofError(str(error)) from error
        return read_aiger((folder / "design.aig").read_bytes())
