"""Parameters of the timing model of a chip: its network and its register map."""

import ctypes
from collections.abc import Iterator
from ctypes import POINTER, c_bool, c_uint8, c_uint32, c_uint64
from typing import Any

from hdl.axi import AxiResponse
from noc.config import NetworkConfig
from noc.node.counters import NetworkCounter
from noc.routing import LOCAL, route
from noc.topology import Direction, directions, neighbour
from pe.interface import PeState
from sim_tb.timed.words import declared
from soc.chip.config import ChipConfig
from soc.chip.control_bus import ControlBitmap, ControlCommand, ControlSpace
from soc.host.config import HostConfig
from soc.host.control import READS, WRITES
from soc.host.decode import fixed_values, register_count
from soc.host.register_map import BLOCKS, CHIP, GROUP_PES, MAP_ADDRESS_BITS, PE
from soc.host.register_types import WORD_BYTES, Block, Register
from soc.tile.control import READ_CYCLES

__all__ = [
    "ChipSizes",
    "HostSizes",
    "NetworkSizes",
    "RegisterMap",
    "control_constants",
    "network_constants",
]

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
#: Virtual channels of a class, at most; as in ``router.h``.
_MOST_VCS = 2


class ChipSizes(ctypes.Structure):
    """Parameters of a chip; see ``tile.h``."""

    _fields_ = tuple(
        (name, c_uint64)
        for name in (
            *("engines", "instruction_words", "threads"),
            *("requesters", "joined", "window_bits"),
        )
    )


class HostSizes(ctypes.Structure):
    """Parameters of the host's data port; see ``host_data.h``."""

    _fields_ = tuple((name, c_uint64) for name in ("memory_bytes", "tag_bits", "chained"))

    @classmethod
    def of(cls, config: ChipConfig) -> "HostSizes":
        """Those of a chip."""
        chained = not config.remote and config.vaults > 1
        return cls(config.host.memory_bytes, config.host.tag_bits, chained)


class NetworkSizes(ctypes.Structure):
    """Parameters of a network; see ``router.h``.

    Parameters:
        config: of the network. requesters: of a node.
    """

    _fields_ = (
        *((name, c_uint64) for name in ("vaults", "columns")),
        *((name, c_uint64) for name in ("virtual_channels", "buffer_flits")),
        *((name, c_uint64) for name in ("address_bits", "tag_bits", "requesters")),
        *((name, c_uint64) for name in ("ports", "local")),
        *((name, POINTER(c_uint8)) for name in ("neighbours", "opposites", "flit_counters")),
        ("routes", POINTER(c_uint8)),
    )

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


class _RegisterRow(ctypes.Structure):
    """A register, or an array of them; see ``control.h``."""

    _fields_ = (
        *((name, c_uint32) for name in ("block", "offset", "index_mask", "index_low", "count")),
        *((name, c_uint32) for name in ("room", "least", "most", "last_most", "action", "value")),
        *((name, c_bool) for name in ("readable", "writable")),
    )


class _BlockRow(ctypes.Structure):
    _fields_ = tuple((name, c_uint32) for name in ("base", "page_bytes", "block_bytes", "pages"))


class RegisterMap(ctypes.Structure):
    """The registers of a chip's host port; see ``control.h``.

    Parameters:
        config: of the chip.
    """

    _fields_ = (
        ("registers", POINTER(_RegisterRow)),
        ("count", c_uint64),
        ("vault_counters", c_uint64),
        ("blocks", _BlockRow * len(BLOCKS)),
    )

    def __init__(self, config: ChipConfig) -> None:
        rows = list(_rows(config.host))
        pages = {"CHIP": 1, "PE": config.pes, "VAULT": config.vaults}
        super().__init__(
            (_RegisterRow * len(rows))(*rows),
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


def _rows(config: HostConfig) -> Iterator[_RegisterRow]:
    for number, block in enumerate(BLOCKS):
        for register in block.registers:
            count = register_count(config, block, register)
            least, most, last_most = _written(config, block, register)
            action, value = _action(config, block, register)
            program = block is CHIP and register.name == "PROGRAM"
            yield _RegisterRow(
                block=number,
                offset=register.offset,
                index_mask=register.index_mask,
                index_low=register.index_low,
                count=count,
                room=config.pe.instruction_words if program else count,
                least=least,
                most=most,
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
    """The least and the greatest value that can be written, and the greatest for the last register
    of the array."""
    bits = config.pe.address_bits
    last = config.pe_count % GROUP_PES
    most = {
        "PARAMETERS_LOW": (1 << min(bits, _WORD_BITS)) - 1,
        "PARAMETERS_HIGH": (1 << max(bits - _WORD_BITS, 0)) - 1,
        "START": config.pe.instruction_words,
    }.get(register.name, _ANY)
    partial = block is CHIP and register.name == "SELECT" and last
    return int(register.name == "START"), most, (1 << last) - 1 if partial else most


def network_constants() -> str:
    """``network.inc``: numbers of a node's counters."""
    values = {f"Network{item.name.title().replace('_', '')}": item.value for item in NetworkCounter}
    return declared({**values, "NetworkCounters": len(NetworkCounter)})


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
    return declared(values)
