"""Parameters of the timing model of a vault's memory, and constants for its C++."""

from collections.abc import Mapping
from ctypes import c_uint64
from typing import Annotated, Any, get_args

from memory.address_map import BYTE_BITS, DramAddress, join_address
from memory.agent.config import ACTIONS, SLOTS, AgentConfig
from memory.agent.features import BUCKETS, FEATURES
from memory.axi.layout import AxiConfig
from memory.config import PagePolicy, SchedulerPolicy, VaultConfig
from memory.controller.bus_rules import read_to_write, write_to_read
from memory.controller.counters import ARRIVAL_UNIT_BITS, LATENCY_LIMITS, VaultCounter
from memory.controller.dram_port import DramCommand
from memory.controller.read_path import buffered_columns
from memory.controller.responses import ACKNOWLEDGEMENTS
from memory.controller.starvation import (
    FORCED_DEBT,
    GROUP_BURSTS,
    PATIENCE_CYCLES,
    SNAPSHOT_CYCLES,
)
from memory.controller.transaction import ARRIVAL_BITS, stamp_bits
from memory.controller.write_path import pending_writes
from memory.line_buffer.layout import LineCounter
from memory.timing import BURST_CLOCKS
from sim_tb.cosim.engine import CosimError
from sim_tb.timed.library import declared
from soc.tile.config import VaultTileConfig
from support.schema import C, Record, declarations

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
    *("port_tag_bits", "tag_bits"),
)


_THRESHOLDS = max(BUCKETS) - 1
#: A threshold that no value reaches.
_NEVER = 1 << 40
#: Field -> attribute of the configuration.
_AGENT_NUMBERS = (
    *("epoch", "steps", "update_lag", "alpha_shift", "gamma_shift", "epsilon_shift"),
    *("theta_bits", "reward_shift", "initial", "seed"),
)


class AgentSizes(Record, numbers=("features", *_AGENT_NUMBERS)):
    """What the model needs to know about an agent: ``values`` of its state are indices into
    :data:`memory.agent.features.FEATURES`; missing thresholds are never reached."""

    values: Annotated[Any, C(c_uint64 * SLOTS)]
    thresholds: Annotated[Any, C(c_uint64 * _THRESHOLDS * SLOTS)]

    @classmethod
    def of(cls, config: AgentConfig) -> "AgentSizes":
        """The sizes of ``config``."""
        numbers = {name: getattr(config, name) for name in _AGENT_NUMBERS}
        sizes = cls(features=len(config.features), **numbers)
        order = list(FEATURES)
        for number, feature in enumerate(config.state):
            sizes.values[number] = order.index(feature.name)
            padding = (_THRESHOLDS - len(feature.thresholds)) * (_NEVER,)
            for place, threshold in enumerate((*feature.thresholds, *padding)):
                sizes.thresholds[number][place] = threshold
        return sizes


class VaultSizes(Record, numbers=_NUMBERS):
    """What the model needs to know about a vault's memory: first bits of an address's fields
    (``row_low``), bank timing, turnarounds of the data bus, tag bits below the number of the
    crossbar's requester (``port_tag_bits``), and the ``agent`` of schedulers that learn."""

    agent: AgentSizes

    @classmethod
    def of(cls, config: VaultConfig, requesters: int) -> "VaultSizes":
        """The sizes of ``config``.

        Parameters:
            requesters: at the crossbar; 1 without a crossbar.

        Raises:
            CosimError: ``config`` has a preload memory.
        """
        if config.preload_bytes:
            raise CosimError("the timing model has no preload memory (preload_bytes must be 0)")
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
            agent=AgentSizes.of(config.agent),
        )


class AxiSizes(Record):
    """What the model needs to know about an AXI back end: ``lanes``, words per beat of the data
    buses, and ``beats`` per column."""

    lanes: int
    lane_bits: int
    beats: int
    outstanding: int

    @classmethod
    def of(cls, config: AxiConfig) -> "AxiSizes":
        """The sizes of ``config``.

        Raises:
            CosimError: it has a preload memory.
        """
        if config.preload_bytes:
            raise CosimError("the timing model has no preload memory (preload_bytes must be 0)")
        return cls(
            lanes=config.lanes,
            lane_bits=config.lane_bits,
            beats=config.beats,
            outstanding=config.outstanding,
        )


class LineSizes(Record):
    """What the model needs to know about a line buffer."""

    lines: int
    merges: int
    memory_bits: int
    sources: int
    tags: int

    @classmethod
    def of(cls, config: VaultTileConfig) -> "LineSizes":
        """The sizes of ``config``; ``lines`` is 0 if it has no line buffer."""
        sources = 1 << (config.requesters - 1).bit_length()
        return cls(
            lines=config.line_buffer,
            merges=config.line_merges,
            memory_bits=config.vault.address_bits,
            sources=sources,
            tags=(1 << config.vault.tag_bits) // sources,
        )


def _agent_constants() -> Mapping[str, int]:
    """Sizes of an agent, limits of its scheduler, and numbers of the values that it may see."""
    values = {
        f"Feature{name.title().replace('_', '')}": place for place, name in enumerate(FEATURES)
    }
    return values | {
        "AgentActions": ACTIONS,
        "AgentSlots": SLOTS,
        "AgentThresholds": _THRESHOLDS,
        "FeatureValues": len(FEATURES),
        "SweepCycles": SNAPSHOT_CYCLES,
    }


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
        **_agent_constants(),
    }
    for policies in (_POLICIES, _SCHEDULERS):
        values |= {policy.title().replace("-", ""): place for place, policy in enumerate(policies)}
    kinds = ", ".join(f"k{kind.name.title()} = {kind.value}" for kind in DramCommand)
    limits = ", ".join(map(str, LATENCY_LIMITS))
    return declared(
        values,
        f"enum DramKind : uint32_t {{{kinds}}};",
        f"constexpr uint32_t kLimits[] = {{{limits}}};",
        declarations(AgentSizes, VaultSizes, LineSizes, AxiSizes),
    )
