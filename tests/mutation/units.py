"""Units whose Verilog is mutated, and the tests of ``make test`` that simulate them."""

from collections.abc import Callable
from dataclasses import dataclass

from hdl.emission import emit
from noc.config import NetworkConfig
from sim_tb.dut.engine import configuration_verilog
from sim_tb.dut.memory import vault_design
from sim_tb.dut.network import network_design
from sim_tb.workloads.stress import random_case
from tests.sim_tb.cosim.test_cosim import SMALL
from tests.sim_tb.cosim.test_history_cosim import KERNEL
from tests.sim_tb.nodes import nodes_design
from tests.sim_tb.test_clock_stress import CLOCKS, KEPT, LINES, WITH_LINES
from tests.sim_tb.test_vault import SEED
from tests.soc.host_dut import HostDut, small

_COSIM = "tests/sim_tb/cosim/test_cosim.py::"
_TIMED = "tests/sim_tb/timed/"
_WIDE = "tests/sim_tb/test_wide_counters.py::"
_KEPT = tuple(
    f"tests/sim_tb/test_clock_stress.py::test_lines_and_crossings_keep_data_counts_and_cycles[{one}]"
    for one in KEPT
)


@dataclass(frozen=True)
class Unit:
    """A design to mutate.

    Attributes:
        room: whose hardware it is.
        top: its top module. verilog: makes its text, as the tests do.
        modules: that are mutated, by the beginnings of their names; all if empty.
        tests: that simulate it, the quickest first.
        drawn: mutants in the netlist. tried: those of them that are tried, from the first on.
    """

    room: str
    top: str
    verilog: Callable[[], str]
    modules: tuple[str, ...]
    tests: tuple[str, ...]
    drawn: int
    tried: int


def _vault() -> str:
    case = random_case(SEED, 1)
    return vault_design(case.config, case.requesters).verilog["vault_memory.v"]


def _network() -> str:
    return network_design(NetworkConfig(columns=2, rows=2)).verilog["network.v"]


def _node() -> str:
    config = NetworkConfig(columns=3, rows=1, address_bits=11, tag_bits=4)
    return nodes_design(config, 2).verilog["node.v"]


def _with_lines() -> str:
    return vault_design(WITH_LINES, 3, CLOCKS, LINES).verilog["vault_memory.v"]


def _host() -> str:
    return "".join(emit(HostDut(small()), "host_dut").modules.values())


#: Name -> unit.
UNITS = {
    "engine": Unit(
        "pe",
        "pe",
        lambda: configuration_verilog(SMALL),
        (),
        (
            f"{_COSIM}test_random_programs[config1-350]",
            f"{_COSIM}test_programs_that_compute_all_the_time",
            f"{_COSIM}test_products_of_one_bit_saturate_exactly",
            f"{_COSIM}test_shifts_by_each_amount",
            f"{_COSIM}test_what_no_program_may_do_is_a_fault",
            f"{_TIMED}test_timed_model.py::test_programs_that_wait_take_the_cycles_of_the_verilog",
            f"{_TIMED}test_timed_model.py::"
            "test_random_programs_take_the_cycles_of_the_verilog[config1-200]",
            "tests/sim_tb/test_random_interrupted.py::"
            "test_interrupted_programs_leave_what_a_place_in_them_allows[config1-100]",
            "tests/sim_tb/test_workspace_ends.py",
            f"{_WIDE}test_counters_of_an_engine",
        ),
        400,
        400,
    ),
    "vault": Unit(
        "memory",
        "vault_memory",
        _vault,
        (),
        (
            "tests/sim_tb/test_traces.py::test_a_replay_is_the_same_on_verilog_and_model",
            f"{_TIMED}test_timed_traffic.py::test_equals_the_verilog_of_a_random_vault",
            f"{_TIMED}test_timed_traffic.py::test_equals_the_verilog_whose_queues_are_full",
            "tests/sim_tb/test_vault.py::test_random_accesses_to_a_random_vault",
            f"{_WIDE}test_counters_of_a_vault",
        ),
        250,
        250,
    ),
    "router": Unit(
        "noc",
        "network",
        _network,
        (),
        (
            "tests/sim_tb/test_network.py::"
            "test_all_traffic_arrives_in_order_under_back_pressure[2-2]",
            "tests/sim_tb/test_network.py::test_traffic_takes_the_cycles_that_it_took",
        ),
        120,
        120,
    ),
    "node": Unit(
        "noc",
        "node",
        _node,
        (),
        (
            "tests/sim_tb/test_network.py::"
            "test_accesses_between_nodes_keep_their_order_and_are_counted",
            "tests/sim_tb/test_network.py::"
            "test_accesses_between_nodes_take_the_cycles_that_they_took",
            f"{_WIDE}test_counters_of_nodes",
        ),
        120,
        120,
    ),
    "host": Unit(
        "soc",
        "host_dut",
        _host,
        (
            "host",
            "tile_control",
            "burst_walker",
            "reorder_buffer",
            "stream_buffer",
            "fifo",
        ),
        ("tests/soc/test_host_cosim.py",),
        120,
        30,
    ),
    "crossings": Unit(
        "memory",
        "vault_memory",
        _with_lines,
        ("stream_crossing", "memory_crossing", "counter_mirror"),
        _KEPT,
        80,
        32,
    ),
    "lines": Unit(
        "memory",
        "vault_memory",
        _with_lines,
        ("line_",),
        _KEPT,
        80,
        32,
    ),
    "history": Unit(
        "pe",
        "pe",
        lambda: configuration_verilog(KERNEL),
        ("history",),
        (
            f"{_TIMED}test_timed_history.py::test_random_programs_take_the_cycles_of_the_verilog",
            f"{_TIMED}test_timed_history.py::test_columns_are_overwritten_and_loaded_again",
            "tests/sim_tb/cosim/test_history_cosim.py::test_random_programs",
        ),
        60,
        20,
    ),
}
