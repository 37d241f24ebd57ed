"""Proofs that a mutant can't be told from the design."""

import re
from collections.abc import Sequence

from hdl.yosys import run_yosys
from support.scratch import scratch_folder

from .netlist import Mutant, Netlist, read_design

_SECONDS = 20
_MARK = "VIP mutant "


def equal_everywhere(made: Netlist, mutants: Sequence[Mutant]) -> frozenset[str]:
    """The names of those ``mutants`` whose module computes, in every state and for all inputs, the
    same outputs, inputs of its parts and next state as without the change.

    A mutant that is not among them may still be one that nothing can tell from the design: of
    states that can't occur, or of values that nothing reads.
    """
    if not mutants:
        return frozenset()
    with scratch_folder("proofs") as folder:
        commands = [*read_design(made.top, made.original, folder), "design -save all"]
        for mutant in mutants:
            commands += [
                "design -load all",
                f"copy {mutant.module} gold",
                f"mutate {mutant.command}",
                f"rename {mutant.module} gate",
                # Cases have become memories, of which the solver has no model.
                "memory_map -rom-only gold gate",
                "expose -evert -dff -evert-dff -shared gold gate",
                "cutpoint gold/t:$dff gate/t:$dff",
                "miter -equiv -flatten gold gate miter",
                "opt -full miter",
                f"log {_MARK}{mutant.index}",
                f"sat -prove trigger 0 -timeout {_SECONDS} -ignore_unknown_cells miter",
            ]
        log = run_yosys(commands, purpose=f"proofs of {made.top}", folder=folder)
    proved = set()
    for part in re.split(rf"^{_MARK}", log, flags=re.MULTILINE)[1:]:
        if "no model found: SUCCESS!" in part:
            proved.add(int(part.split(maxsplit=1)[0]))
    return frozenset(mutant.name for mutant in mutants if mutant.index in proved)
