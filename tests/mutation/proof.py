"""Proofs that a mutant can't be told from the design."""

import re
from collections.abc import Sequence

from hdl.yosys import run_yosys
from support.scratch import scratch_folder

from .netlist import Mutant, Netlist, read_design

_SECONDS = 20
_MARK = "VIP mutant "
#: Modules with the memories, which are proved alone.
_MEMORIES = "sram_"


def equal_everywhere(made: Netlist, mutants: Sequence[Mutant]) -> frozenset[str]:
    """The names of those ``mutants`` with which the design computes, in every state and for all
    inputs, the same outputs, inputs of its memories and next state, as without the change.

    A mutant that is not among them may still be one that nothing can tell from the design: of
    states that can't occur, or of values that nothing reads.
    """
    if not mutants:
        return frozenset()
    with scratch_folder("proofs") as folder:
        commands = [
            *read_design(made.top, made.original, folder),
            f"setattr -mod -set keep_hierarchy 1 {_MEMORIES}*",
            "design -save all",
        ]
        for mutant in mutants:
            # Constants at ports, such as those that turn a part's feature off, are known when flat.
            memory = mutant.module.startswith(_MEMORIES)
            name = mutant.module if memory else made.top
            one = ["memory", "opt_clean"] if memory else [f"hierarchy -top {name}", "flatten"]
            for side, change in (("gold", []), ("gate", [f"mutate {mutant.command}"])):
                commands += ["design -load all", *change]
                commands += [f"select {name}"] * memory + one + ["select -clear"] * memory
                commands += [f"rename {name} {side}", f"design -stash {side}"]
            commands += [
                "design -reset",
                "design -copy-from gold -as gold gold",
                "design -copy-from gate -as gate gate",
                "expose -evert -dff -evert-dff -shared gold gate",
                "cutpoint gold/t:$dff gate/t:$dff",
                "miter -equiv -flatten gold gate miter",
                *["opt_expr miter", "opt_merge miter"] * 2,
                "opt_clean miter",
                f"log {_MARK}{mutant.index}",
                f"sat -prove trigger 0 -timeout {_SECONDS} -ignore_unknown_cells miter",
            ]
        log = run_yosys(commands, purpose=f"proofs of {made.top}", folder=folder)
    proved = set()
    for part in re.split(rf"^{_MARK}", log, flags=re.MULTILINE)[1:]:
        if "no model found: SUCCESS!" in part:
            proved.add(int(part.split(maxsplit=1)[0]))
    return frozenset(mutant.name for mutant in mutants if mutant.index in proved)
