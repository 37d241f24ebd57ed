"""Trimming of programs that declare a workspace, and of those that do not."""

from dataclasses import replace

import pytest

from hdl.config import ConfigurationError
from isa.assembly.assembler import assemble
from isa.image import DramImage
from isa.workspace import Workspace
from pe.config import ALL_INSTRUCTIONS, PeConfig
from synth.analysis.profile import profile_run
from synth.formal.prove import prove
from tests.synth.trimming import trim

FULL = PeConfig(instructions=ALL_INSTRUCTIONS)
WORKSPACE = Workspace(
    image=0x400,
    window=0x10000,
    width=4,
    height=4,
    pixel_bytes=4,
    output_width=2,
    output_height=2,
    kernel=3,
)
LOAD = """
    mov r6, #0x100
    {declaration}
    mov r7, #0
    mov r8, #0x10000
    mov r9, #18
    ld.sram [16-bit] r7, r8, r9
    memfence
    halt
"""


def test_an_engine_has_a_workspace_only_for_a_program_that_declares_one() -> None:
    declaring = assemble(LOAD.format(declaration="set.ws r6"))
    without = assemble(LOAD.format(declaration="set.vl r9"))
    assert trim([declaring], FULL).workspace
    assert not trim([without], FULL).workspace


def test_a_load_history_stays_where_a_program_loads_from_a_workspace() -> None:
    full = replace(FULL, load_history=16, load_history_ways=2)
    declaring = assemble(LOAD.format(declaration="set.ws r6"))
    without = assemble(LOAD.format(declaration="set.vl r9"))
    found = trim([declaring], full)
    assert (found.load_history, found.load_history_ways) == (16, 2)
    assert trim([without], full).load_history == 0
    assert trim([assemble("mov r6, #0x100\nset.ws r6\nhalt\n")], full).load_history == 0


def test_the_descriptor_decides_how_much_memory_is_reached() -> None:
    program = assemble(LOAD.format(declaration="set.ws r6"))
    found = trim([program], FULL)
    assert (found.address_bits, found.scratchpad_alignment) == (FULL.address_bits, 1)
    with DramImage(1 << 17) as image:
        image.write(0x100, WORKSPACE.pack())
        profile = profile_run(program, image, FULL)
    found = trim([program], FULL, profiles=[profile])
    # The window's 144 bytes end behind 0x10000; pixels begin at multiples of 4 bytes.
    assert (found.address_bits, found.scratchpad_alignment) == (17, 4)
    WORKSPACE.check(1 << found.address_bits, found.scratchpad_alignment)


def test_no_proof_covers_a_workspace_or_shared_ports() -> None:
    shared = replace(FULL, scratchpad_banks=16, instructions=FULL.instructions - {"set.ws"})
    with pytest.raises(ConfigurationError, match="that wait for ports: scratchpad_banks must be 8"):
        prove(shared, shared)
    with pytest.raises(ConfigurationError, match=r"no proof covers set\.ws"):
        prove(FULL, replace(FULL, scratchpad_bytes=1024))
