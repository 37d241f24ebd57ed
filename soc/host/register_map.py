"""The host's control registers, described once.

:mod:`soc.host.control` and :mod:`soc.tile.control` decode from it, :mod:`soc.host.register_manual`
writes ``docs/registers.md`` from it, and :mod:`soc.host.driver` takes its addresses from here.

Registers are 32-bit words, in blocks. A block is a page of registers, or one page per processing
engine (PE) or vault.
"""

from hdl.counter_bank import COUNTER_BITS
from isa.faults import FaultCause
from pe.interface import PeCounter, PeState

from .register_types import WORD_BYTES, Block, Field, HostAccess, Register

#: Bits of a byte address: the map is 1 MiB, a usual size of a window on a host's bus.
MAP_ADDRESS_BITS = 20
#: Contents of the register ``IDENTITY``: "VIP1".
IDENTITY = int.from_bytes(b"VIP1", "big")
#: Incremented with every change that affects drivers.
MAP_VERSION = 1
#: Most PEs and vaults that the map has room for.
MAX_PES = 1024
MAX_VAULTS = 1024
#: Words of the window of programs.
MAX_PROGRAM_WORDS = 8192
#: PEs of a bitmap register.
GROUP_PES = 32
#: Most counters in a page: of a vault, and of its network node.
MAX_COUNTERS = 32


def _bitmap(
    name: str, offset: int, access: HostAccess, doc: str, reset: int | None = None
) -> Register:
    return Register(
        name=name,
        offset=offset,
        access=access,
        doc=f"{doc} Bit `b` of register `n` is PE `{GROUP_PES} n + b`; bits of PEs that do not "
        "exist read 0.",
        reset=reset,
        count=MAX_PES // GROUP_PES,
    )


def _counter(name: str, offset: int, doc: str, count: int) -> tuple[Register, Register]:
    return (
        Register(
            name=f"{name}_LOW",
            offset=offset,
            access=HostAccess.READ,
            doc=f"{doc} Bits 31:0. Reading them latches the other bits for the next read of a "
            f"`_HIGH` register of the same vault, so that both are of one time.",
            count=count,
            stride=2 * WORD_BYTES,
        ),
        Register(
            name=f"{name}_HIGH",
            offset=offset + WORD_BYTES,
            access=HostAccess.READ,
            doc=f"The upper bits of the counter whose `_LOW` register was read last. Counters have "
            f"{COUNTER_BITS} bits, and wrap.",
            count=count,
            stride=2 * WORD_BYTES,
        ),
    )


_INTERRUPTS = (
    Field(name="done", low=0, bits=1, doc="The last PE that ran has ended."),
    Field(name="fault", low=1, bits=1, doc="A PE has faulted."),
)

CHIP = Block(
    name="CHIP",
    base=0,
    page_bytes=1 << 16,
    pages=1,
    doc="The chip as a whole, and commands to the selected PEs.",
    registers=(
        Register(
            name="IDENTITY",
            offset=0x000,
            access=HostAccess.READ,
            doc='"VIP1".',
            reset=IDENTITY,
        ),
        Register(
            name="VERSION",
            offset=0x004,
            access=HostAccess.READ,
            doc="Versions.",
            fields=(
                Field(name="map", low=0, bits=16, doc="Of this register map."),
                Field(name="isa", low=16, bits=16, doc="Of the instruction set."),
            ),
        ),
        Register(
            name="GRID",
            offset=0x008,
            access=HostAccess.READ,
            doc="The vaults, which lie row by row.",
            fields=(
                Field(name="columns", low=0, bits=16, doc="Vaults of a row."),
                Field(name="rows", low=16, bits=16, doc="Rows of vaults."),
            ),
        ),
        Register(
            name="PES",
            offset=0x00C,
            access=HostAccess.READ,
            doc="The processing engines, numbered vault by vault.",
            fields=(
                Field(name="total", low=0, bits=16, doc="PEs of the chip."),
                Field(name="per_vault", low=16, bits=16, doc="PEs of a vault."),
            ),
        ),
        Register(
            name="INSTRUCTION_WORDS",
            offset=0x010,
            access=HostAccess.READ,
            doc="Longest program, in words.",
        ),
        Register(
            name="SCRATCHPAD_BYTES",
            offset=0x014,
            access=HostAccess.READ,
            doc="Bytes of a PE's scratchpad.",
        ),
        Register(
            name="MEMORY",
            offset=0x018,
            access=HostAccess.READ,
            doc="The DRAM: as many bytes as vaults times 2 to the power of `vault_bits`, from "
            "address 0 on.",
            fields=(
                Field(name="vault_bits", low=0, bits=8, doc="Address bits of a vault."),
                Field(name="address_bits", low=8, bits=8, doc="Address bits of the chip."),
            ),
        ),
        Register(
            name="COUNTERS",
            offset=0x01C,
            access=HostAccess.READ,
            doc="Counters of this chip; those of PEs and vaults that do not exist read 0.",
            fields=(
                Field(name="pe", low=0, bits=1, doc="The PEs have counters."),
                Field(name="vault", low=1, bits=1, doc="The vaults have counters."),
                Field(name="network", low=8, bits=8, doc="Network counters of a vault."),
            ),
        ),
        Register(
            name="STATE",
            offset=0x020,
            access=HostAccess.READ,
            doc="All PEs together.",
            fields=(
                Field(name="running", low=0, bits=1, doc="A PE runs."),
                Field(name="faulted", low=1, bits=1, doc="A PE has stopped at a fault."),
            ),
        ),
        Register(
            name="INTERRUPT_STATUS",
            offset=0x024,
            access=HostAccess.CLEAR,
            doc="Events since it was cleared. The interrupt line is 1 while a bit here "
            "and the same bit of `INTERRUPT_ENABLE` are 1.",
            fields=_INTERRUPTS,
            reset=0,
        ),
        Register(
            name="INTERRUPT_ENABLE",
            offset=0x028,
            access=HostAccess.READ_WRITE,
            doc="Events that raise the interrupt line.",
            fields=_INTERRUPTS,
            reset=0,
        ),
        Register(
            name="PARAMETERS_LOW",
            offset=0x030,
            access=HostAccess.WRITE,
            doc="DRAM address of the parameter block of all selected PEs, bits 31:0. SLVERR if no "
            "PE is selected, or for bits beyond the chip's addresses.",
        ),
        Register(
            name="PARAMETERS_HIGH",
            offset=0x034,
            access=HostAccess.WRITE,
            doc="Bits 63:32 of it; SLVERR as before.",
        ),
        Register(
            name="START",
            offset=0x038,
            access=HostAccess.WRITE,
            doc="Launch all selected PEs; the value is the program's length in words. SLVERR if "
            "no PE is selected, for a length of 0 or beyond `INSTRUCTION_WORDS`, and if a selected "
            "PE runs already: it continues, the others start.",
        ),
        Register(
            name="STOP",
            offset=0x03C,
            access=HostAccess.WRITE,
            doc="Stop all selected PEs that run: they end issue, complete the instructions "
            "in flight, and halt. The value is ignored. SLVERR if no PE is selected.",
        ),
        Register(
            name="SELECT_ALL",
            offset=0x040,
            access=HostAccess.WRITE,
            doc="Bit 0: select all PEs (1) or none (0).",
        ),
        _bitmap(
            "SELECT",
            0x100,
            HostAccess.READ_WRITE,
            "The selected PEs, to which programs and commands go; after reset all. SLVERR for a 1 "
            "for a PE that does not exist.",
        ),
        _bitmap("RUNNING", 0x180, HostAccess.READ, "PEs that run."),
        _bitmap("HALTED", 0x200, HostAccess.READ, "PEs whose program ended or was stopped."),
        _bitmap("FAULTED", 0x280, HostAccess.READ, "PEs that stopped at a fault."),
        *(
            Register(
                name=f"BASE_{half}",
                offset=0x4000 + place,
                access=HostAccess.READ_WRITE,
                doc=doc,
                reset=0,
                count=MAX_VAULTS,
                stride=2 * WORD_BYTES,
            )
            for half, place, doc in (
                (
                    "LOW",
                    0,
                    "Where the memory of vault `n` begins on its bus, bits 31:0, to be written "
                    "while no PE runs; only of chips with `host_data` `none`, else DECERR. SLVERR "
                    "unless a multiple of 4096.",
                ),
                ("HIGH", WORD_BYTES, "Bits 63:32 of it."),
            )
        ),
        Register(
            name="PROGRAM",
            offset=0x8000,
            access=HostAccess.WRITE,
            doc="Word `n` of the program of all selected PEs. SLVERR if no PE is selected, for a "
            "word beyond `INSTRUCTION_WORDS`, and if a selected PE runs: it keeps its program, the "
            "others are loaded.",
            count=MAX_PROGRAM_WORDS,
        ),
    ),
)

PE = Block(
    name="PE",
    base=0x40000,
    page_bytes=256,
    pages=MAX_PES,
    doc="One processing engine.",
    registers=(
        Register(
            name="STATUS",
            offset=0x00,
            access=HostAccess.READ,
            doc="State of the PE, and cause and place of a fault.",
            fields=(
                Field(name="state", low=0, bits=2, doc="State.", values=PeState),
                Field(
                    name="memory_error",
                    low=2,
                    bits=1,
                    doc="Memory answered an access of this launch with an error, whatever the "
                    "cause.",
                ),
                Field(name="cause", low=8, bits=8, doc="Cause of the fault.", values=FaultCause),
                Field(
                    name="pc",
                    low=16,
                    bits=16,
                    doc="Address, in words, of the instruction at fault.",
                    signed=True,
                ),
            ),
        ),
        Register(
            name="PARAMETERS_LOW",
            offset=0x08,
            access=HostAccess.READ_WRITE,
            doc="DRAM address of the parameter block that the next launch gives to this PE, bits "
            "31:0. SLVERR for bits beyond the chip's addresses.",
            reset=0,
        ),
        Register(
            name="PARAMETERS_HIGH",
            offset=0x0C,
            access=HostAccess.READ_WRITE,
            doc="Bits 63:32 of it.",
            reset=0,
        ),
        *_counter(
            "COUNTER",
            0x80,
            "Performance counters of the last launch, exact at its end: see `pe/interface.py`.",
            len(PeCounter),
        ),
    ),
)

VAULT = Block(
    name="VAULT",
    base=0x80000,
    page_bytes=512,
    pages=MAX_VAULTS,
    doc="One vault.",
    registers=(
        *_counter(
            "COUNTER",
            0x000,
            "Counters of the memory, since reset: see `memory/controller/counters.py`. With two "
            "clocks they are copies, undefined until each was made for the first time.",
            MAX_COUNTERS,
        ),
        *_counter(
            "NETWORK",
            0x100,
            "Counters of the vault's node in the network, since reset: see `noc/`. DECERR beyond "
            "the number in `COUNTERS`.",
            MAX_COUNTERS,
        ),
    ),
)

#: All blocks, by address.
BLOCKS: tuple[Block, ...] = (CHIP, PE, VAULT)
