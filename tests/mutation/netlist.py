"""Mutants of Verilog, all in one netlist: an index selects one, and 0 none.

Yosys's ``mutate`` changes one bit of one port of a cell: inverted, constant, or inverted when
another bit has a value. With ``-ctrl`` a change is active only while a signal has the mutant's
index; that signal becomes a register that the process of the simulator sets.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from hdl.verilog import split_modules
from hdl.yosys import YosysError, run_yosys
from support.scratch import scratch_folder

#: Environment variable with the index of the active mutant when a simulator starts.
INDEX_VARIABLE = "VIP_MUTANT"
#: What a simulator says that runs for more cycles than it may.
HUNG = "more cycles than the limit"
#: C++ that has the index, and counts cycles.
INDEX_SOURCE = f"""#include <cstdio>
#include <cstdlib>
#include <unistd.h>
static const char* first = std::getenv("{INDEX_VARIABLE}");
static int mutant = first ? std::atoi(first) : 0;
static long long cycles = 0, limit = 0;
extern "C" long long vip_mutant_set(int index, long long most) {{
    const long long before = cycles;
    mutant = index;
    limit = most;
    cycles = 0;
    return before;
}}
extern "C" int vip_mutant_index() {{
    if (++cycles > limit && limit) {{
        std::fputs("Error: {HUNG}\\n", stderr);
        _exit(1);
    }}
    return mutant;
}}
"""
_BITS = 16
_PORT = "vip_mutant"
_READER = f"""
module vip_mutant_reader(input clk, output reg [{_BITS - 1}:0] index);
  import "DPI-C" function int vip_mutant_index();
  initial index = vip_mutant_index();
  always @(posedge clk) index <= vip_mutant_index();
endmodule
"""
#: Contents at power-up, and comparisons with labels of cases: a table of 64 has 64, and the input
#: of the multiplexer that they select is mutated, too.
_LEFT_OUT = re.compile(r"^\$(meminit|auto\$mem\.cc)|_CMP\d+$")
#: How many more are drawn than are asked for, as clocks and contents at power-up are left out.
_SPARE = 2
_FIELD = re.compile(r"-(mode|module|cell|port|portbit|ctrlbit|src) (\S+)")
_CLOCKS = frozenset({"CLK", "RD_CLK", "WR_CLK", "clk", "clk_mem", "mem_clk"})


class MutantError(YosysError):
    """A mutant or a unit that does not exist, or a Yosys that makes none."""


@dataclass(frozen=True)
class Mutant:
    """One changed bit.

    Attributes:
        index: that makes it active, from 1 on.
        name: place in a module's text, cell, port and change; the same in every run of one source.
        module: that is changed. command: Yosys's options for the change.
    """

    index: int
    name: str
    module: str
    command: str


@dataclass(frozen=True)
class Netlist:
    """The design with the module ``top`` and all its mutants: ``verilog`` in place of
    ``original``."""

    top: str
    original: str
    verilog: str
    mutants: tuple[Mutant, ...]


def netlist(top: str, text: str, modules: tuple[str, ...], *, count: int, seed: int) -> Netlist:
    """Up to ``count`` mutants of the Verilog ``text``, drawn evenly over its cells and wires.

    Parameters:
        top: its top module. modules: those that are mutated, by the beginnings of their names; all
            if empty.

    Raises:
        MutantError: Yosys has no ``mutate``, or there are no such modules.
    """
    parts = split_modules(text)
    chosen = [name for name in parts if not modules or name.startswith(modules)]
    if not chosen:
        raise MutantError(f"{top} has no module {' or '.join(modules)}")
    with scratch_folder("mutants") as folder:
        try:
            run_yosys(
                [
                    *read_design(top, text, folder),
                    "write_rtlil all.il",
                    f"mutate -list {int(_SPARE * count)} -seed {seed} -o list " + " ".join(chosen),
                ],
                purpose=f"mutants of {top}",
                folder=folder,
            )
        except YosysError as error:
            if "No such command: mutate" in str(error):
                raise MutantError("this Yosys has no command mutate; pyosys has one") from None
            raise
        mutants = _mutants((folder / "list").read_text().splitlines(), count)
        script = "".join(
            f"mutate -ctrl {_PORT} {_BITS} {mutant.index} {mutant.command}\n" for mutant in mutants
        )
        (folder / "script").write_text(script)
        run_yosys(
            ["read_rtlil all.il", "script script", "opt_clean", "write_verilog -noattr out.v"],
            purpose=f"mutants of {top}",
            folder=folder,
        )
        return Netlist(top, text, _with_reader(folder / "out.v", top), mutants)


def read_design(top: str, text: str, folder: Path) -> list[str]:
    """Yosys's commands that read the Verilog ``text``, one module a file, after writing the files
    into ``folder``, in which Yosys has to run."""
    parts = split_modules(text)
    for name, part in parts.items():
        (folder / f"{name}.v").write_text(part)
    files = " ".join(f"{name}.v" for name in parts)
    return [f"read_verilog -sv {files}", f"hierarchy -top {top}", "proc", "opt_clean"]


def _mutants(lines: list[str], count: int) -> tuple[Mutant, ...]:
    mutants: list[Mutant] = []
    names: set[str] = set()
    for line in lines:
        fields = dict(reversed(_FIELD.findall(line)))
        own = re.search(r"\w+\.v:\d+", fields["cell"])
        cell = fields["cell"]
        # Yosys can't write the enable of a read without a clock.
        enable = cell.startswith("$memrd") and fields["port"] == "EN"
        if fields["port"] in _CLOCKS or enable or _LEFT_OUT.search(cell):
            continue
        kind = re.sub(r"\W?[\w./]+\.v:\d+|\d+", "", cell).strip("$\\_")
        place = own[0] if own else re.split(r"[.-](?=\d)", fields.get("src", ""))[0]
        where = f"{fields['port']}[{fields['portbit']}]"
        change = fields["mode"] + ("" if "ctrlbit" not in fields else f" by {fields['ctrlbit']}")
        name = base = f"{place} {kind} {where} {change}"
        number = 1
        while name in names:
            number += 1
            name = f"{base} #{number}"
        names.add(name)
        mutants.append(
            Mutant(len(mutants) + 1, name, fields["module"], line.removeprefix("mutate "))
        )
        if len(mutants) == count:
            break
    return tuple(mutants)


def _with_reader(path: Path, top: str) -> str:
    """The Verilog with the index as a value that is read instead of an input of ``top``."""
    text = path.read_text()
    heading = re.search(rf"^module {top}\((.*?)\);\n", text, re.MULTILINE | re.DOTALL)
    assert heading is not None
    before, rest = text[: heading.start()], text[heading.end() :]
    rest, end, after = rest.partition("\nendmodule\n")
    ports = [port for port in heading[1].split(", ") if port.strip() != _PORT]
    width = f"[{_BITS - 1}:0] {_PORT};\n"
    assert rest.count(f"  input {width}") == 1
    reader = f"  vip_mutant_reader vip_mutant_reader(.clk(clk), .index({_PORT}));\n"
    rest = rest.replace(f"  input {width}", "")
    rest = rest.replace(f"  wire {width}", f"  wire {width}{reader}", 1)
    return f"{before}module {top}({', '.join(ports)});\n{rest}{end}{after}{_READER}"
