"""Parameters of the timing model of a vault's memory, and the constants in its C++."""

import ctypes
from ctypes import c_uint64
from typing import get_args

from memory.address_map import BYTE_BITS, DramAddress, join_address
from memory.config import PagePolicy, SchedulerPolicy, VaultConfig
from memory.controller.bus_rules import read_to_write, write_to_read
from memory.controller.counters import ARRIVAL_UNIT_BITS, LATENCY_LIMITS, VaultCounter
from memory.controller.dram_port import DramCommand
from memory.controller.read_path import buffered_columns
from memory.controller.responses import ACKNOWLEDGEMENTS
from memory.controller.starvation import FORCED_DEBT, GROUP_BURSTS, PATIENCE_CYCLES
from memory.controller.transaction import ARRIVAL_BITS, stamp_bits
from memory.controller.write_path import pending_writes
from memory.line_buffer.layout import LineCounter
from memory.timing import BURST_CLOCKS
from sim_tb.cosim.engine import CosimError
from sim_tb.timed.words import declared

from .agent_sizes import AgentSizes, agent_constants

__all__ = ["COUNTERS", "VaultSizes", "vault_constants"]

_POLICIES: tuple[str, ...] = get_args(PagePolicy)
_SCHEDULERS: tuple[str, ...] = get_args(SchedulerPolicy)
#: Of a vault.
COUNTERS = int(VaultCounter.LATENCY_0) + len(LATENCY_LIMITS) + 1
_TIMES = ("tccd", "tcl", "tcwl", "trcd", "trp", "tras", "trtp", "trfc", "trefi", "trrd", "tfaw")
#: Fields of a vault's sizes that are numbers.
_NUMBERS = (
    *("banks", "row_bits", "column_bits", "bank_bits", "address_bits"),
    *("row_low", "bank_low", "column_low"),
    *("page_policy", "scheduler", "transaction_queue", "command_queue", "write_slots"),
    *("stamp_bits", "read_columns", "write_depth"),
    *_TIMES,
    *("write_to_read", "write_to_precharge"),
    *("turnaround_to_read", "turnaround_to_write"),
    *("port_tag_bits", "tag_bits", "requester_bits"),
)


class VaultSizes(ctypes.Structure):
    """Parameters of a vault; see ``controller.h``."""

    _fields_ = (
        *((name, c_uint64) for name in _NUMBERS),
        ("agent", AgentSizes),
    )

    @classmethod
    def of(cls, config: VaultConfig, requesters: int) -> "VaultSizes":
        """Those of ``config``.

        Parameters:
            requesters: at the crossbar; 1 also without one.

        Raises:
            CosimError: the model has no window to an agent's weights, or no preload memory.
        """
        if config.preload_bytes:
            raise CosimError("the timing model has no preload memory (preload_bytes must be 0)")
        if config.agent.window_base is not None:
            raise CosimError(
                "the timing model has no window to an agent's weights (agent.window_base must be "
                "None)"
            )
        timing = config.timing

        def low(**one: int) -> int:
            fields = DramAddress(**({"row": 0, "bank": 0, "column": 0} | one))
            return int(join_address(config, fields)).bit_length() - 1

        assert low(column=1) >= BYTE_BITS
        return cls(
            banks=config.banks,
            row_bits=config.row_bits,
            column_bits=config.column_bits,
            bank_bits=config.bank_bits,
            address_bits=config.address_bits,
            row_low=low(row=1),
            bank_low=low(bank=1),
            column_low=low(column=1),
            page_policy=_POLICIES.index(config.page_policy),
            scheduler=_SCHEDULERS.index(config.scheduler),
            transaction_queue=config.transaction_queue,
            command_queue=config.command_queue,
            write_slots=config.write_slots,
            stamp_bits=stamp_bits(config),
            read_columns=buffered_columns(config),
            write_depth=pending_writes(config),
            **{name: getattr(timing, name) for name in _TIMES},
            write_to_read=timing.write_to_read,
            write_to_precharge=timing.write_to_precharge,
            turnaround_to_read=max(1, write_to_read(timing)),
            turnaround_to_write=max(1, read_to_write(timing)),
            port_tag_bits=config.tag_bits - (requesters - 1).bit_length(),
            tag_bits=config.tag_bits,
            requester_bits=config.requester_bits,
            agent=AgentSizes.of(config.agent),
        )


def vault_constants() -> str:
    """``vault.inc``: numbers of counters, and limits of the controller."""
    names = {item: item.name.title().replace("_", "") for item in VaultCounter}
    values = {f"Vault{name}": item.value for item, name in names.items()}
    values |= {item.name.title().replace("_", ""): item.value for item in LineCounter}
    values |= {
        "VaultCounters": COUNTERS,
        "ForcedDebt": FORCED_DEBT,
        "PatienceCycles": PATIENCE_CYCLES,
        "GroupBursts": GROUP_BURSTS,
        "Acknowledgements": ACKNOWLEDGEMENTS,
        "BurstClocks": BURST_CLOCKS,
        "UnitBits": ARRIVAL_UNIT_BITS,
        "ArrivalBits": ARRIVAL_BITS,
        "LatencyLimits": len(LATENCY_LIMITS),
        **agent_constants(),
    }
    for policies in (_POLICIES, _SCHEDULERS):
        values |= {each.title().replace("-", ""): place for place, each in enumerate(policies)}
    kinds = ", ".join(f"k{kind.name.title()} = {kind.value}" for kind in DramCommand)
    limits = ", ".join(map(str, LATENCY_LIMITS))
    return declared(
        values,
        f"enum DramKind : uint32_t {{{kinds}}};",
        f"constexpr uint32_t kLimits[] = {{{limits}}};",
    )
