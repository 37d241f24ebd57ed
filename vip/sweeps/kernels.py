"""Kernels that a sweep runs: applications of the suite, and kernels of chosen sizes."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from microkernels.bp.jobs import bp_job
from microkernels.common.fixed_point import Elements
from microkernels.data.stereo import motorcycle
from microkernels.nn.jobs import conv_job, dense_job
from microkernels.nn.window_shape import ConvShape
from microkernels.runtime.job import KernelJob
from microkernels.runtime.ring import ChipEngines
from microkernels.suite import suite
from soc.generate.designs import Configuration
from support.errors import VipError, unknown

_SEED = 1
_FRACTION = 10


class SweepError(VipError):
    """A specification can't be used, or a cluster can't work; the message is one line."""


def _values(*shape: int, limit: int = 1000) -> Elements:
    rng = np.random.default_rng([_SEED, *shape])
    return rng.integers(-limit, limit, shape, np.int16, endpoint=True)


def _bp(
    pes: int,
    scratchpad_bytes: int,
    *,
    width: int = 16,
    height: int = 12,
    labels: int = 16,
    iterations: int = 1,
) -> KernelJob:
    problem = motorcycle(width, height, labels).problem
    engines = ChipEngines(pes=pes, scratchpad_bytes=scratchpad_bytes)
    return bp_job(problem, iterations, engines=engines, sums=False)


def _conv(
    pes: int,
    scratchpad_bytes: int,
    *,
    width: int = 14,
    height: int = 7,
    channels: int = 16,
    filters: int = 32,
    window: int = 3,
    stride: int = 1,
) -> KernelJob:
    shape = ConvShape(
        width=width,
        height=height,
        channels=channels,
        filters=filters,
        kernel=window,
        stride=stride,
    )
    return conv_job(
        shape,
        _values(height, width, channels),
        _values(filters, window, window, channels, limit=100),
        _values(filters),
        fraction=_FRACTION,
        sharers=pes,
        scratchpad_bytes=scratchpad_bytes,
    )


def _dense(
    pes: int, scratchpad_bytes: int, *, inputs: int = 256, outputs: int = 64, batch: int = 1
) -> KernelJob:
    return dense_job(
        _values(batch, inputs),
        _values(outputs, inputs, limit=100),
        _values(outputs),
        fraction=_FRACTION,
        sharers=pes,
        scratchpad_bytes=scratchpad_bytes,
    )


#: Name -> function that makes a job for a number of engines with a number of bytes of scratchpad;
#: its other parameters are sizes.
SIZED: Mapping[str, Callable[..., KernelJob]] = {"bp": _bp, "conv": _conv, "dense": _dense}


def _sizes(name: str) -> dict[str, int]:
    """The sizes of a kernel of :data:`SIZED`, with their defaults."""
    parameters = inspect.signature(SIZED[name]).parameters.values()
    return {one.name: one.default for one in parameters if one.kind is one.KEYWORD_ONLY}


def check_kernel(kernel: Mapping[str, Any], where: str) -> None:
    """Check the description of a kernel: ``application`` with a name of the suite, or ``kernel``
    with a name of :data:`SIZED` and its sizes.

    Raises:
        SweepError: it is not such a description; the message begins with ``where``.
    """
    if "application" in kernel:
        names = list(suite())
        if kernel["application"] not in names:
            raise SweepError(f"{where}: {unknown('application', kernel['application'], names)}")
        allowed = {"application"}
    else:
        name = str(kernel.get("kernel"))
        if name not in SIZED:
            raise SweepError(
                f"{where} needs an application, or one of the kernels {', '.join(SIZED)}, "
                f"not {name!r}"
            )
        allowed = {"kernel", *_sizes(name)}
    for key, value in kernel.items():
        if key not in allowed:
            raise SweepError(f"{where} has no {key!r}; there are: {', '.join(sorted(allowed))}")
        if key not in ("application", "kernel") and (type(value) is not int or value < 1):
            raise SweepError(f"{where}.{key} must be a whole number of 1 or more, not {value!r}")


def kernel_name(kernel: Mapping[str, Any]) -> str:
    """A kernel's name in results: ``cnn``, or ``bp width=16 labels=32`` with the sizes that it
    sets."""
    if "application" in kernel:
        return str(kernel["application"])
    sizes = [f"{name}={value}" for name, value in sorted(kernel.items()) if name != "kernel"]
    return " ".join([str(kernel["kernel"]), *sizes])


def kernel_jobs(kernel: Mapping[str, Any], config: Configuration) -> tuple[KernelJob, ...]:
    """The jobs of a kernel on an engine, or on all engines of a vault.

    Raises:
        SweepError: the kernel is an application, which runs on one engine, and this is a vault.
        KernelError: the sizes don't suit the kernel or the scratchpad.
    """
    if "application" in kernel:
        if config.kind != "engine":
            raise SweepError(f"{kernel['application']} runs on one engine, not on a vault")
        return suite()[kernel["application"]].jobs
    sizes = {name: value for name, value in kernel.items() if name != "kernel"}
    return (SIZED[kernel["kernel"]](config.slots, config.pe.scratchpad_bytes, **sizes),)
