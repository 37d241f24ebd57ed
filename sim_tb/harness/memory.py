"""A memory with configurable latency, bandwidth and errors at a requester's port."""

from ctypes import c_uint64
from dataclasses import dataclass
from typing import Annotated

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.ports import MemoryPort
from support.checks import Checks
from support.errors import VipError
from support.schema import C, Text

from .models import IMAGE, Model


class BehaviourError(VipError):
    """A memory that can't be simulated; the message names the value and the allowed range."""


_CHECK = Checks(BehaviourError)
#: A chance per cycle, of 65536.
_Rare = Annotated[float, C(c_uint64, lambda chance: int(chance * 65536))]


@dataclass(frozen=True, kw_only=True)
class MemoryBehaviour:
    """Behaviour of the simulated memory. The default never limits an engine.

    Attributes:
        latency: cycles from the last beat of a request to the first of its response; 1..1000000.
        extra_latency: up to this many further cycles, at random; 0..1000000.
        bandwidth: 64-bit words per 256 cycles, separately for reads and writes; 1..256.
        stall: chance per cycle that no request is accepted; 0 <= stall < 1.
        gap: chance per cycle that no response beat is offered; 0 <= gap < 1.
        out_of_order: respond in random order where the port's rules allow it.
        errors: byte addresses from the first to below the second respond with an error; a failed
            read has at least one beat and at most the words requested.
        seed: of the random choices.

    Raises:
        BehaviourError: a value outside its range.
    """

    latency: int = 40
    extra_latency: int = 0
    bandwidth: int = 256
    stall: _Rare = 0.0
    gap: _Rare = 0.0
    out_of_order: bool = False
    errors: Annotated[tuple[int, int], C(c_uint64 * 2)] = (0, 0)
    seed: int = 1

    def __post_init__(self) -> None:
        _CHECK.within("memory latency", self.latency, 1, 1_000_000)
        _CHECK.within("memory extra_latency", self.extra_latency, 0, 1_000_000)
        _CHECK.within("memory bandwidth", self.bandwidth, 1, 256)
        _CHECK.within("memory seed", self.seed, 0, 2**64 - 1)
        _CHECK.within("memory errors' start", self.errors[0], 0, 2**63)
        _CHECK.within("memory errors' end", self.errors[1], self.errors[0], 2**63)
        for name in ("stall", "gap"):
            if not 0 <= getattr(self, name) < 1:
                raise BehaviourError(f"memory {name} must be from 0 to below 1")


@dataclass(frozen=True)
class MemoryResult:
    """The first port rule that the requester broke, "" if none."""

    violation: Text


MEMORY = Model(
    name="memory",
    signature=wiring.Signature(
        {
            **MemoryPort(address_bits=64, tag_bits=32).flip().members,
            "reset": In(1),
            "failed": Out(1),
            #: Requests accepted and not yet answered.
            "in_flight": Out(32),
        }
    ),
    job=MemoryBehaviour,
    result=MemoryResult,
    sources=(*IMAGE, "memory_model.cpp"),
)
