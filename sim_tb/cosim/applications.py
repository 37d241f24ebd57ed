"""The applications that trimming is measured on: those of SCRATCH's evaluation on integers, and the
thesis's workloads at small sizes.

Each is one or more launches of one engine, with real data where they come to hand, and with what a
golden model demands of each launch. Sizes are such that all run in seconds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from isa.image import DramImage
from isa.program import Program
from isa.support.errors import VipError
from microkernels import suite
from microkernels.nn.job import NnJob

from .engine import MemoryBehaviour
from .trim_check import Workload

__all__ = ["Application", "ApplicationError", "applications", "choose"]

#: Cycles from a request to its answer, about those of a vault's DRAM.
_LATENCY = 40


class ApplicationError(VipError):
    """An application that there is not; the message names those that there are."""


@dataclass(frozen=True, kw_only=True)
class Application:
    """An application.

    Attributes:
        name: as commands know it. summary: what it computes, on what.
        preset: name of the full engine that it is written for.
        make: makes its launches.
    """

    name: str
    summary: str
    preset: str = "pe"
    make: Callable[[], tuple[NnJob, ...]]

    @cached_property
    def jobs(self) -> tuple[NnJob, ...]:
        """Its launches in order, each with the memory that it finds, as the golden models of those
        before it left it, and with the outputs that its own demands."""
        return self.make()

    @property
    def programs(self) -> tuple[Program, ...]:
        """The programs of its launches, each once."""
        return tuple(dict.fromkeys(job.program for job in self.jobs))

    @cached_property
    def workloads(self) -> tuple[Workload, ...]:
        """Its launches as :func:`sim_tb.cosim.trim_check.check_trimmed` takes them."""
        return tuple(_workload(job) for job in self.jobs)


def _workload(job: NnJob) -> Workload:
    with DramImage(job.end) as memory:
        job.prepare(memory)
        contents = memory.read(0, job.end)
    return Workload(
        program=job.program,
        contents=contents,
        parameters=job.parameters,
        memory=MemoryBehaviour(latency=_LATENCY),
    )


_APPLICATIONS = (
    Application(
        name="matrix-addition",
        summary="matrices of 60 x 300, saturated",
        make=suite.matrix_addition,
    ),
    Application(
        name="matrix-multiplication",
        summary="32 x 64 by 64 x 40, fixed point",
        make=suite.matrix_multiplication,
    ),
    Application(
        name="matrix-transposition",
        summary="a photograph of 100 x 60 pixels",
        make=suite.matrix_transposition,
    ),
    Application(
        name="image-convolution",
        summary="binomial filter of 3 x 3 on a photograph of 40 x 96 pixels",
        make=suite.image_convolution,
    ),
    Application(
        name="bitonic-sort",
        summary="two rows of 256 pixels",
        make=suite.bitonic_sort,
    ),
    Application(
        name="max-pooling",
        summary="2 x 2 pixels, 32 digits",
        make=suite.max_pooling,
    ),
    Application(
        name="average-pooling",
        summary="2 x 2 pixels, 32 digits",
        make=suite.average_pooling,
    ),
    Application(
        name="median-pooling",
        summary="3 x 3 pixels, two apart, of a noisy photograph of 8-bit pixels",
        make=suite.median_pooling,
    ),
    Application(
        name="k-means",
        summary="48 digits, ten centres that the host moves",
        make=suite.kmeans,
    ),
    Application(
        name="gaussian-elimination",
        summary="four systems of 16 equations, 32-bit fixed point",
        make=suite.gaussian_elimination,
    ),
    Application(
        name="cnn",
        summary="a digit through two convolutions and a fully connected layer",
        make=suite.convolutional_network,
    ),
    Application(
        name="network-in-network",
        summary="a digit through convolutions of 3 x 3 and 1 x 1",
        make=suite.network_in_network,
    ),
    Application(
        name="bp",
        summary="an iteration of belief propagation, 16 labels",
        make=suite.belief_propagation,
    ),
    Application(
        name="bp-construct",
        summary="hierarchical belief propagation: coarse data costs",
        make=suite.bp_construct,
    ),
    Application(
        name="bp-copy",
        summary="hierarchical belief propagation: messages for the fine level",
        make=suite.bp_copy,
    ),
    Application(
        name="conv-short",
        summary="a network's first convolution, 3 channels",
        make=suite.conv_short,
    ),
    Application(
        name="conv-mid",
        summary="a convolution of 64 channels",
        make=suite.conv_mid,
    ),
    Application(
        name="vgg-pooling",
        summary="sums of two segments, maximum of 2 x 2, bias, ReLU",
        make=suite.vgg_pooling,
    ),
    Application(
        name="fully-connected",
        summary="256 inputs, 48 outputs",
        make=suite.fully_connected,
    ),
    Application(
        name="lstm",
        summary="a time step of 24 cells with peepholes and projection, batch 4",
        preset="pe-logistic",
        make=suite.lstm,
    ),
)


def applications() -> tuple[Application, ...]:
    """All applications: SCRATCH's, then the thesis's."""
    return _APPLICATIONS


def choose(names: Sequence[str]) -> tuple[Application, ...]:
    """The applications called ``names``, all if there are none; in the order of the suite.

    Raises:
        ApplicationError: a name that no application has.
    """
    known = {application.name: application for application in _APPLICATIONS}
    for name in names:
        if name not in known:
            raise ApplicationError(f"unknown application {name!r}; there are: {', '.join(known)}")
    return tuple(item for item in _APPLICATIONS if not names or item.name in names)
