"""C++ models around a simulated design, and their functions as Python calls them.

A :class:`Model` declares a model's ports and the types of its job and result
(:mod:`support.schema`). The C++ header, the SystemVerilog that calls it once a cycle
and the structures of :mod:`ctypes` are derived from it. A model NAME defines, in C++::

    int32_t vip_NAME_start(int32_t index, const JOB* job);     // at the next clock edge; 0, or -1
    void vip_NAME_result(int32_t index, RESULT* result);       // of the run that ended last
    void vip_NAME_cycle(int32_t index, const VipNameIn* in, VipNameOut* out);

where the index distinguishes instances of a model. ``in`` has the values of the ports in the cycle
that ends, ``out`` those in the next cycle, zero unless set.
"""

import ctypes
from collections.abc import Iterable, Sequence
from ctypes import (
    byref,
    c_bool,
    c_char_p,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from amaranth.hdl import Value
from amaranth.lib import data, wiring

from support.schema import declarations, pack, structure, unpack

#: Clock period.
PERIOD_PS = 800
#: Cycles after which an acknowledged write is in the DRAM and every counter includes it.
SETTLE_CYCLES = 256
#: With two clocks: engine cycles after which even the slowest memory clock has seen a reset, and
#: those after which every copy of a counter is up to date (:class:`memory.crossing.CounterMirror`).
SLOW_RESET_CYCLES = 64
SLOW_SETTLE_CYCLES = 4096
#: Sources of the memory image, in ``sim_tb/models``.
IMAGE = ("../../memory/model/mapped_file.h", "image.h", "image.cpp")

#: Source with :func:`arrays`, in ``sim_tb/models``.
ARRAYS = "arrays.cpp"
#: Lines of a Verilator control file that make only the memories readable.
MEMORIES = """public_flat_rd -module "sram_*" -var "words"
"""

_R = TypeVar("_R")
#: Greatest width -> type of a port in SystemVerilog and in C++.
_TYPES = {1: ("bit", c_bool), 32: ("int unsigned", c_uint32), 64: ("longint unsigned", c_uint64)}
_WIDE = 256


@dataclass(frozen=True)
class Port:
    """A port of a model. Its width is rounded up to 1, 32, 64 or 256."""

    name: str
    is_input: bool
    width: int
    signed: bool

    @property
    def bits(self) -> int:
        return next(bits for bits in (*_TYPES, _WIDE) if self.width <= bits)

    @property
    def direction(self) -> str:
        return "input" if self.is_input else "output"

    @property
    def sv(self) -> str:
        """Type in SystemVerilog's DPI."""
        if self.bits == _WIDE:
            return f"bit [{_WIDE - 1}:0]"
        kind = _TYPES[self.bits][0]
        return kind.removesuffix(" unsigned") if self.signed else kind

    @property
    def c(self) -> Any:
        """Type of :mod:`ctypes`."""
        if self.bits == _WIDE:
            return c_uint32 * (_WIDE // 32)
        if self.signed:
            return {32: c_int32, 64: c_int64}[self.bits]
        return _TYPES[self.bits][1]


def port_values(signature: Any, interface: Any) -> Iterable[tuple[str, wiring.Flow, Value]]:
    """Name, flow and value of each signal of an interface, layouts field by field. A name joins the
    names on the path to the signal, without ``payload``."""
    for path, member, value in signature.flatten(interface):
        names = [str(name) for name in path if name != "payload"]
        if isinstance(value, data.View):
            for field in value.shape().members:
                yield "_".join([*names, field]), member.flow, Value.cast(value[field])
        else:
            yield "_".join(names), member.flow, Value.cast(value)


@dataclass(frozen=True, eq=False)
class Model:
    """A C++ model.

    Attributes:
        name: stem of its function names.
        signature: its ports, seen from the model, at their greatest widths.
        sources: its files in ``sim_tb/models``.
        job, result: dataclasses of its job and its result; None: it has no such function.
    """

    name: str
    signature: wiring.Signature
    sources: tuple[str, ...]
    job: type | None = None
    result: type | None = None

    @cached_property
    def ports(self) -> tuple[Port, ...]:
        interface = self.signature.create()
        return tuple(
            Port(name, flow is wiring.In, len(value), value.shape().signed)
            for name, flow, value in port_values(self.signature, interface)
        )

    def _structure(self, end: str, inputs: bool) -> type[ctypes.Structure]:
        members = [(port.name, port.c) for port in self.ports if port.is_input is inputs]
        return type(f"Vip{self.title}{end}", (ctypes.Structure,), {"_fields_": members})

    @property
    def title(self) -> str:
        return self.name.title().replace("_", "")

    @cached_property
    def inputs(self) -> type[ctypes.Structure]:
        """Structure of the inputs of a cycle."""
        return self._structure("In", True)

    @cached_property
    def outputs(self) -> type[ctypes.Structure]:
        """Structure of the outputs of a cycle."""
        return self._structure("Out", False)

    @property
    def header(self) -> str:
        """The C++ header ``vip_NAME.h``, which declares the model."""
        kinds = [kind for kind in (self.job, self.result) if kind is not None]
        functions = [
            f"void vip_{self.name}_cycle(int32_t index, const {self.inputs.__name__}* in,"
            f" {self.outputs.__name__}* out);\n"
        ]
        if self.job:
            name = structure(self.job).__name__
            functions.append(f"int32_t vip_{self.name}_start(int32_t index, const {name}* job);\n")
        if self.result:
            name = structure(self.result).__name__
            functions.append(f"void vip_{self.name}_result(int32_t index, {name}* result);\n")
        return (
            "#pragma once\n#include <cstdint>\n"
            f"{declarations(*kinds, self.inputs, self.outputs)}"
            f'extern "C" {{\n{"".join(functions)}}}\n'
        )

    @property
    def _direct(self) -> str:
        """Name of the function with an argument for each port."""
        return f"vip_{self.name}_ports"

    @property
    def wrapper(self) -> str:
        """C++ of the function that SystemVerilog calls, with one argument per port."""
        arguments = ["int32_t index"]
        before: list[str] = []
        after: list[str] = []
        for port in self.ports:
            kind = "uint32_t" if port.bits == _WIDE else _c_name(port)
            pointer = "const " if port.is_input else ""
            star = "" if port.is_input and port.bits != _WIDE else "*"
            arguments.append(f"{pointer if star else ''}{kind}{star} {port.name}")
            if port.bits == _WIDE:
                copied = (
                    ("in." + port.name, port.name)
                    if port.is_input
                    else (port.name, "out." + port.name)
                )
                line = f"    std::memcpy({copied[0]}, {copied[1]}, {_WIDE // 8});\n"
            elif port.is_input:
                line = f"    in.{port.name} = {port.name};\n"
            else:
                line = f"    *{port.name} = out.{port.name};\n"
            (before if port.is_input else after).append(line)
        return (
            f'#include <cstring>\n#include "vip_{self.name}.h"\n'
            f'extern "C" void {self._direct}({", ".join(arguments)}) {{\n'
            f"    {self.inputs.__name__} in;\n    {self.outputs.__name__} out = {{}};\n"
            f"{''.join(before)}    vip_{self.name}_cycle(index, &in, &out);\n{''.join(after)}}}\n"
        )

    @property
    def imported(self) -> str:
        """SystemVerilog that imports the function of :meth:`wrapper`."""
        arguments = ", ".join(f"{port.direction} {port.sv} {port.name}" for port in self.ports)
        return f'  import "DPI-C" function void {self._direct}(input int index, {arguments});\n'

    def called(self, index: int) -> tuple[str, str, str]:
        """SystemVerilog of one instance: ports, variables, and statements at the clock edge."""
        prefix = f"{self.name}_{index}_"
        outputs = [port for port in self.ports if not port.is_input]
        ports = "".join(
            f",\n  {port.direction} logic [{port.bits - 1}:0] {prefix}{port.name}"
            for port in self.ports
        )
        variables = "".join(f"  {port.sv} next_{prefix}{port.name};\n" for port in outputs)
        arguments = ", ".join(
            ("" if port.is_input else "next_") + prefix + port.name for port in self.ports
        )
        registered = "".join(
            f"    {prefix}{port.name} <= next_{prefix}{port.name};\n" for port in outputs
        )
        return ports, variables, f"    {self._direct}({index}, {arguments});\n{registered}"


def _c_name(port: Port) -> str:
    if port.bits == 1:
        return "uint8_t"
    return f"{'' if port.signed else 'u'}int{port.bits}_t"


def clock_arguments(engine_ps: int, memory_ps: int, jitter_ps: int) -> tuple[str, ...]:
    """Arguments of a simulator with two clocks (:func:`module`): even periods in ps, and
    the most by which an edge of the memory's clock is early or late."""
    return (
        f"+engine_half_ps={engine_ps // 2}",
        f"+memory_half_ps={memory_ps // 2}",
        f"+memory_jitter_ps={jitter_ps}",
    )


#: SystemVerilog that drives the clocks of a :func:`module`.
_ONE_CLOCK = f"""  initial clk = 1'b0;
  always #{PERIOD_PS // 2} clk = ~clk;
"""
_TWO_CLOCKS = f"""  int engine_half, memory_half, jitter;
  initial begin
    clk = 1'b0;
    if ($value$plusargs("engine_half_ps=%d", engine_half) == 0) engine_half = {PERIOD_PS // 2};
    // Models are called once before the first job, after PERIOD_PS, whatever the period.
    #{PERIOD_PS // 2} clk = 1'b1;
    forever begin
      #(engine_half);
      clk = ~clk;
    end
  end
  initial begin
    clk_mem = 1'b0;
    if ($value$plusargs("memory_half_ps=%d", memory_half) == 0) memory_half = {PERIOD_PS // 2};
    if ($value$plusargs("memory_jitter_ps=%d", jitter) == 0) jitter = 0;
    forever begin
      #(memory_half - jitter + int'($urandom_range(2 * jitter)));
      clk_mem = ~clk_mem;
    end
  end
"""


def module(
    name: str,
    instances: Sequence[tuple[Model, int]],
    memory: Sequence[tuple[Model, int]] | None = None,
) -> str:
    """SystemVerilog module with a clock and ``instances`` of models, called in this order at each
    rising edge. Its ports are ``clk``, and ``MODEL_INDEX_PORT`` for each port of each instance.

    Parameters:
        memory: instances that are called at a second clock, ``clk_mem``; None: there is none. The
            simulator's arguments set the periods (:func:`clock_arguments`).
    """
    groups = {"clk": instances} if memory is None else {"clk": instances, "clk_mem": memory}
    every = dict.fromkeys(model for group in groups.values() for model, _ in group)
    ports, variables, blocks = ",\n".join(f"  output logic {clock}" for clock in groups), "", ""
    for clock, group in groups.items():
        calls = ""
        for model, index in group:
            more_ports, more_variables, call = model.called(index)
            ports, variables, calls = ports + more_ports, variables + more_variables, calls + call
        blocks += f"  always_ff @(posedge {clock}) begin\n{calls}  end\n" if group else ""
    return f"""module {name} (
{ports}
);
  timeunit 1ps; timeprecision 1ps;
{"".join(model.imported for model in every)}{variables}
{_ONE_CLOCK if memory is None else _TWO_CLOCKS}
  // verilator lint_off BLKSEQ
{blocks}  // verilator lint_on BLKSEQ
endmodule
"""


class Library:
    """The models of a loaded library.

    Parameters:
        library: the simulator itself, or a library of models only.

    Attributes:
        devices: open DRAM devices.
    """

    devices = 0

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        #: Jobs handed to the models, which use them until the end of the run.
        self.given: dict[tuple[str, int], ctypes.Structure] = {}

    def open(self, path: str) -> None:
        """Make the file at ``path`` the memory of all models.

        Raises:
            OSError: it can't be opened and mapped.
        """
        if self.library.vip_image_open(path.encode()):
            raise OSError(f"cannot map the memory image {path}")

    def start(self, name: str, job: Any, index: int = 0) -> None:
        """Hand ``job`` to the model ``name``, which begins at the next clock edge.

        Raises:
            OSError: the memory image is too small for the job.
        """
        raw = self.given[name, index] = pack(job)
        if getattr(self.library, f"vip_{name}_start")(index, byref(raw)):
            raise OSError(f"the memory image is too small for the job of {name} {index}")

    def result(self, name: str, kind: type[_R], index: int = 0, **fields: Any) -> _R:
        """Result of the model's last run; during a run, its result so far.

        Parameters:
            fields: fields of ``kind`` that the model does not set.
        """
        shape: Any = kind
        raw = structure(shape)()
        getattr(self.library, f"vip_{name}_result")(index, byref(raw))
        return unpack(kind, raw, **fields)

    def cycle(self, model: Model, index: int, **inputs: int) -> ctypes.Structure:
        """Simulate one clock cycle of a model outside a simulator; returns its outputs."""
        raw, outputs = model.inputs(**inputs), model.outputs()
        getattr(self.library, f"vip_{model.name}_cycle")(index, byref(raw), byref(outputs))
        return outputs


def array(
    simulator: ctypes.CDLL, scope: str, name: str, bits: int, words: int
) -> "ctypes.Array[Any]":
    """The ``words`` of a memory (up to 64 bits each), to read and write in place."""
    simulator.vip_array.restype = c_void_p
    address = simulator.vip_array(scope.encode(), name.encode())
    kinds = {8: c_uint8, 16: c_uint16, 32: c_uint32, 64: c_uint64}
    kind: Any = next(kind for size, kind in kinds.items() if bits <= size)
    memory: ctypes.Array[Any] = (kind * words).from_address(address)
    return memory


def arrays(simulator: ctypes.CDLL) -> dict[tuple[str, str], "ctypes.Array[Any]"]:
    """The memories of a simulator with :data:`ARRAYS` that its control file makes readable, up to
    64 bits wide, by scope and name."""
    simulator.vip_arrays.restype = c_char_p
    memory_arrays = {}
    for line in simulator.vip_arrays().decode().splitlines():
        scope, name, bits, words = line.rsplit(" ", 3)
        if int(bits) <= 64:
            memory_arrays[scope, name] = array(simulator, scope, name, int(bits), int(words))
    return memory_arrays
