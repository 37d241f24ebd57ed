"""Parameters of the timing model of a chip: its network and its register map."""

from collections.abc import Iterator
from ctypes import POINTER, c_uint8
from typing import Annotated, Any

from hdl.axi import AxiResponse
from noc.config import NetworkConfig
from noc.node.counters import NetworkCounter
from noc.routing import LOCAL, route
from noc.topology import Direction, directions, neighbour
from pe.interface import PeState
from sim_tb.timed.library import declared
from soc.chip.config import ChipConfig
from soc.chip.control_bus import ControlBitmap, ControlCommand, ControlSpace
from soc.host.config import HostConfig
from soc.host.control import READS, WRITES
from soc.host.decode import fixed_values, register_count
from soc.host.register_map import BLOCKS, CHIP, GROUP_PES, MAP_ADDRESS_BITS, PE
from soc.host.register_types import WORD_BYTES, Block, Register
from soc.tile.control import READ_CYCLES
from support.schema import U32, C, Record, declarations

_COMMANDS = {item.name: item.value for item in ControlCommand} | {
    "PROGRAM": ControlCommand.LOAD.value
}
_BITMAPS = {item.name: item.value for item in ControlBitmap}
_ACTIONS = ("Value", "Command", "Bitmap", "State", "Status", "Enable", "Pe", "Vault")
_OWN = {"STATE": "State", "INTERRUPT_STATUS": "Status", "INTERRUPT_ENABLE": "Enable"}
#: Registers in the pages of engines and vaults.
_PAGES = (
    *("STATUS", "PARAMETERS_LOW", "PARAMETERS_HIGH"),
    *("COUNTER_LOW", "COUNTER_HIGH", "NETWORK_LOW", "NETWORK_HIGH"),
)
_WORD_BITS = 8 * WORD_BYTES
_ANY = (1 << _WORD_BITS) - 1
#: Maximum virtual channels of a class, as in ``router.h``.
_MOST_VCS = 2
_Table = Annotated[Any, C(POINTER(c_uint8))]


class ChipSizes(Record):
    """The model's parameters of a chip.

    Attributes:
        engines: engines per vault.
        requesters: of a vault's memory: the engines, the host, and perhaps other vaults.
        joined: whether engines reach other vaults.
        window_bits: address bits of an engine in its window; 64: it has no window.
    """

    engines: int
    instruction_words: int
    threads: int
    requesters: int
    joined: int
    window_bits: int


class HostSizes(Record):
    """The model's parameters of the host's data port; ``chained``: without a network, accesses pass
    from vault to vault."""

    memory_bytes: int
    tag_bits: int
    chained: int

    @classmethod
    def of(cls, config: ChipConfig) -> "HostSizes":
        """The parameters of a chip's data port."""
        chained = not config.remote and config.vaults > 1
        return cls(config.host.memory_bytes, config.host.tag_bits, chained)


class NetworkSizes(Record):
    """The model's parameters of a network.

    Parameters:
        config: of the network. requesters: of a node.

    Attributes:
        local: the port of the vault.
        neighbours: by vault and port, the vault at the other end. opposites: by port, the port
            there. flit_counters: by port, the counter of the flits that leave it.
        routes: by vault and destination, port * kMostVcs + channel.
    """

    vaults: int
    columns: int
    virtual_channels: int
    buffer_flits: int
    address_bits: int
    tag_bits: int
    requesters: int
    ports: int
    local: int
    neighbours: _Table
    opposites: _Table
    flit_counters: _Table
    routes: _Table

    def __init__(self, config: NetworkConfig, *, requesters: int) -> None:
        links = directions(config)
        ports = sorted([*links, LOCAL])
        vaults = range(config.vaults)
        channels = config.virtual_channels

        def first_step(vault: int, target: int) -> int:
            if vault == target:
                return ports.index(LOCAL) * _MOST_VCS
            step = route(config, vault, target, 0, channels)[0]
            return ports.index(step.direction) * _MOST_VCS + step.vc

        tables = (
            [
                vault if port == LOCAL else neighbour(config, vault, Direction(port))
                for vault in vaults
                for port in ports
            ],
            [ports.index(port if port == LOCAL else Direction(port).opposite) for port in ports],
            [
                NetworkCounter[
                    "RECEIVED_FLITS" if port == LOCAL else f"{Direction(port).name}_FLITS"
                ]
                for port in ports
            ],
            [first_step(vault, target) for vault in vaults for target in vaults],
        )
        super().__init__(
            config.vaults,
            config.columns,
            channels,
            config.buffer_flits,
            config.address_bits,
            config.tag_bits,
            requesters,
            len(ports),
            ports.index(LOCAL),
            *((c_uint8 * len(table))(*table) for table in tables),
        )


class RegisterRow(Record):
    """A register of the map, or an array of them.

    Attributes:
        room: number of writable registers of the array.
        least, most: range of writable values. last_most: greatest value for the array's last
            register.
    """

    block: U32
    offset: U32
    index_mask: U32
    index_low: U32
    count: U32
    room: U32
    least: U32
    most: U32
    last_most: U32
    action: U32
    value: U32
    readable: bool
    writable: bool


class BlockRow(Record):
    """A block of the map."""

    base: U32
    page_bytes: U32
    block_bytes: U32
    pages: U32


class RegisterMap(Record):
    """The registers of a chip's host port.

    Parameters:
        config: of the chip.
    """

    registers: Annotated[Any, C(POINTER(RegisterRow))]
    count: int
    vault_counters: int
    blocks: Annotated[Any, C(BlockRow * len(BLOCKS))]

    def __init__(self, config: ChipConfig) -> None:
        rows = list(_rows(config.host))
        pages = {"CHIP": 1, "PE": config.pes, "VAULT": config.vaults}
        super().__init__(
            (RegisterRow * len(rows))(*rows),
            len(rows),
            config.host.vault_counters,
            tuple(
                (
                    block.base,
                    block.page_bytes,
                    block.page_bytes << (block.pages - 1).bit_length(),
                    pages[block.name],
                )
                for block in BLOCKS
            ),
        )


def _rows(config: HostConfig) -> Iterator[RegisterRow]:
    for number, block in enumerate(BLOCKS):
        for register in block.registers:
            count = register_count(config, block, register)
            if not count:
                continue
            least, greatest, last_most = _written(config, block, register)
            action, value = _action(config, block, register)
            program = block is CHIP and register.name == "PROGRAM"
            yield RegisterRow(
                block=number,
                offset=register.offset,
                index_mask=register.index_mask,
                index_low=register.index_low,
                count=count,
                room=config.pe.instruction_words if program else count,
                least=least,
                most=greatest,
                last_most=last_most,
                action=_ACTIONS.index(action),
                value=value,
                readable=register.access.readable,
                writable=register.access.writable,
            )


def _action(config: HostConfig, block: Block, register: Register) -> tuple[str, int]:
    name = register.name
    if block is not CHIP:
        return "Pe" if block is PE else "Vault", _PAGES.index(name)
    if name in _COMMANDS:
        return "Command", _COMMANDS[name]
    if name in _BITMAPS:
        return "Bitmap", _BITMAPS[name]
    if name in _OWN:
        return _OWN[name], 0
    return "Value", fixed_values(config)[name]


def _written(config: HostConfig, block: Block, register: Register) -> tuple[int, int, int]:
    """The smallest and largest writable values, and the largest for the array's last register."""
    bits = config.pe.address_bits
    last = config.pe_count % GROUP_PES
    greatest = {
        "PARAMETERS_LOW": (1 << min(bits, _WORD_BITS)) - 1,
        "PARAMETERS_HIGH": (1 << max(bits - _WORD_BITS, 0)) - 1,
        "START": config.pe.instruction_words,
    }.get(register.name, _ANY)
    partial = block is CHIP and register.name == "SELECT" and last
    return int(register.name == "START"), greatest, (1 << last) - 1 if partial else greatest


def network_constants() -> str:
    """``network.inc``: numbers of a node's counters."""
    values = {f"Network{item.name.title().replace('_', '')}": item.value for item in NetworkCounter}
    values["NetworkCounters"] = len(NetworkCounter)
    return declared(values, declarations(NetworkSizes, ChipSizes))


def control_constants() -> str:
    """``control.inc``: the control bus and the register map."""

    def named(prefix: str, items: Any) -> dict[str, int]:
        return {f"{prefix}{name.title().replace('_', '')}": number for name, number in items}

    def lows(prefix: str, block: Block, register: str) -> dict[str, int]:
        return named(prefix, ((field.name, field.low) for field in block.register(register).fields))

    values = {
        "RegisterBytes": WORD_BYTES,
        "MapMask": (1 << MAP_ADDRESS_BITS) - 1,
        "ReadsInFlight": READS,
        "WritesInFlight": WRITES,
        "ReadCycles": READ_CYCLES,
        "GroupPes": GROUP_PES,
        "Blocks": len(BLOCKS),
        "Interrupts": len(CHIP.register("INTERRUPT_STATUS").fields),
        **named("Block", ((block.name, number) for number, block in enumerate(BLOCKS))),
        **named("Action", ((name, number) for number, name in enumerate(_ACTIONS))),
        **named("Space", ((item.name, item.value) for item in ControlSpace)),
        **named("Command", ((item.name, item.value) for item in ControlCommand)),
        **named("Bitmap", ((item.name, item.value) for item in ControlBitmap)),
        **named("Engine", ((item.name, item.value) for item in PeState)),
        **named("Response", ((item.name, item.value) for item in AxiResponse)),
        **named("Page", ((name, number) for number, name in enumerate(_PAGES))),
        **lows("Interrupt", CHIP, "INTERRUPT_STATUS"),
        **lows("State", CHIP, "STATE"),
        **lows("Status", PE, "STATUS"),
    }
    return declared(values, declarations(HostSizes, RegisterRow, BlockRow, RegisterMap))
