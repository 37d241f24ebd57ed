"""A chip in a four-state simulator, with every register and memory X at power-up."""

import json
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from cocotb_tools.runner import get_runner

import soc
from isa.assembly.assembler import assemble
from isa.image import DramImage
from isa.iss.simulator import Simulator
from soc.chip.config import ChipConfig
from soc.generate.presets import chip_preset

from .icarus import TOP, UNKNOWN, VARIABLE, four_state_sources, icarus

ROOT = Path(soc.__file__).parent.parent
#: Differences, products, reductions, and loads of what was just stored; operands from another
#: vault, results to a third.
PROGRAM = """
    ld.reg [64-bit] r10, r5
    add r6, r5, #8
    ld.reg [64-bit] r11, r6
    add r6, r5, #16
    ld.reg [64-bit] r12, r6
    add r6, r5, #24
    ld.reg [64-bit] r13, r6
    mov r20, #0
    mov r21, #72
    mov r22, #200
    mov r23, #18
    mov r24, #2
    mov r25, #9
    mov r26, #2
    mov r27, #4
    set.fx r27
again:
    set.vl r23
    ld.sram [16-bit] r20, r10, r23
    ld.sram [16-bit] r21, r11, r23
    v.v.sub [16-bit] r22, r20, r21
    v.v.mul [16-bit] r20, r20, r21
    v.drain
    st.sram [16-bit] r12, r22, r23
    add r12, r12, #40
    st.sram [16-bit] r13, r20, r23
    add r13, r13, #40
    set.vl r25
    set.mr r24
    m.v.mul.add [16-bit] r22, r20, r21
    v.s.max [16-bit] r21, r20, r22
    v.drain
    st.sram [16-bit] r12, r22, r24
    memfence
    ld.reg [16-bit] r14, r12
    srl r15, r14, #3
    st.reg [64-bit] r13, r15
    add r12, r12, #8
    add r13, r13, #8
    add r10, r10, #36
    add r11, r11, #36
    sub r26, r26, #1
    bne r26, r0, again
    memfence
    halt
"""
#: Bytes of a page of each engine in its vault, and places in it: parameters, an operand, one of the
#: engine a vault before, results, and results of the engine two vaults before.
PAGE = 0x200
OWN_OPERAND, OPERAND, OWN_RESULT, RESULT = 0x20, 0x80, 0xE0, 0x140
END = RESULT + 0x60


def _pages(config: ChipConfig) -> dict[int, bytes]:
    """What is in the pages at the start: address -> content."""
    rng = random.Random(7)
    pages = {}
    for pe in range(config.pes):
        vault, slot = divmod(pe, config.tile.pes)

        def page(ahead: int, vault: int = vault, slot: int = slot) -> int:
            number = (vault + ahead) % config.vaults
            return (number << config.network.address_bits) + PAGE * slot

        places = page(1) + OPERAND, page(0) + OWN_OPERAND, page(0) + OWN_RESULT, page(2) + RESULT
        given = b"".join(place.to_bytes(8, "little") for place in places)
        operands = rng.randbytes(OWN_RESULT - OWN_OPERAND)
        pages[page(0)] = given + operands + bytes(END - OWN_RESULT)
    return pages


def _expected(config: ChipConfig, words: Sequence[int], pages: Mapping[int, bytes]) -> list[str]:
    """Results in the pages, by the instruction set simulator."""
    with DramImage(config.memory_bytes) as image:
        for place, content in pages.items():
            image.write(place, content)
        for pe, page in enumerate(pages):
            vault, slot = divmod(pe, config.tile.pes)
            simulator = Simulator(
                words,
                image,
                pe_index=pe,
                vault=vault,
                slot=slot,
                pe_count=config.pes,
                parameters=page,
                **config.pe.limits,
            )
            assert simulator.run(100_000).state == "halted"
        return [image.read(page + OWN_RESULT, END - OWN_RESULT).hex() for page in pages]


def run(config: ChipConfig, generation: str, folder: Path) -> None:
    """Run :data:`PROGRAM` on every engine of a chip in Icarus Verilog and on the instruction set
    simulator; what they leave must be equal, and no control output X.

    Parameters:
        generation: of the language, as an option of Icarus.
        folder: for what is written.
    """
    icarus()
    words = assemble(PROGRAM).words
    pages = _pages(config)
    given = {
        "memory": [(place, content.hex()) for place, content in pages.items()],
        "program": list(words),
        "results": [(page + OWN_RESULT, END - OWN_RESULT) for page in pages],
        "found": str(folder / "found"),
    }
    runner = get_runner("icarus")
    log = folder / "log"
    runner.build(
        sources=four_state_sources(config, folder),
        hdl_toplevel=TOP,
        build_args=[generation],
        build_dir=folder / "build",
        timescale=("1ps", "1ps"),
        log_file=folder / "build_log",
    )
    # The runner exits when a test fails; the log says why.
    with suppress(SystemExit):
        runner.test(
            test_module="tests.soc.four_states.bench",
            hdl_toplevel=TOP,
            hdl_toplevel_lang="verilog",
            build_dir=folder / "build",
            test_dir=folder,
            results_xml=str(folder / "results.xml"),
            extra_env={"PYTHONPATH": str(ROOT), VARIABLE: json.dumps(given)},
            log_file=log,
        )
    text = log.read_text()
    unknown = {line for line in text.splitlines() if line.startswith(UNKNOWN)}
    assert not unknown
    assert (folder / "found").exists(), text
    assert json.loads((folder / "found").read_text()) == _expected(config, words, pages)


@pytest.mark.parametrize("generation", ["-g2005", pytest.param("-g2012", marks=pytest.mark.slow)])
def test_a_chip_runs_a_program_whatever_it_held_at_power_up(
    generation: str, tmp_path: Path
) -> None:
    run(chip_preset("tiny"), generation, tmp_path)
