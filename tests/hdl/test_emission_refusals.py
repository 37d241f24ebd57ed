"""Components that break the rules of emission."""

import pytest
from amaranth.hdl import Elaboratable, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from hdl.emission import EmissionError, emit, shared_instance


class _Plain(wiring.Component):
    def __init__(self) -> None:
        super().__init__({"o": Out(8)})

    def elaborate(self, platform: object) -> Elaboratable:
        return Module()


class _Forgetful(wiring.Component):
    def __init__(self, depth: int) -> None:
        super().__init__({"o": Out(8)})

    def elaborate(self, platform: object) -> Elaboratable:
        return Module()


class _Changeable(wiring.Component):
    def __init__(self, options: list[int]) -> None:
        self.options = options
        super().__init__({"o": Out(8)})

    def elaborate(self, platform: object) -> Elaboratable:
        return Module()


class _Greedy(wiring.Component):
    def __init__(self, **options: int) -> None:
        super().__init__({"o": Out(8)})

    def elaborate(self, platform: object) -> Elaboratable:
        return Module()


class _OtherClock(wiring.Component):
    def __init__(self) -> None:
        super().__init__({"o": Out(8)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.d.fast += self.o.eq(self.o + 1)
        return m


@pytest.mark.parametrize(
    ("component", "message"),
    [
        (_Forgetful(1), "'depth' is not an attribute"),
        (_Changeable([1]), "list is not plain data"),
        (_Greedy(a=1), "must name its parameters"),
        (_OtherClock(), "only the domains 'sync' and 'mem'"),
    ],
)
def test_rule_breakers_are_refused(component: wiring.Component, message: str) -> None:
    with pytest.raises(EmissionError, match=message):
        emit(component, "top")


@pytest.mark.parametrize("name", ["", "a b", "a$", "1a", "ä"])
def test_bad_name_is_refused(name: str) -> None:
    with pytest.raises(EmissionError, match="not an identifier"):
        emit(_Plain(), name)


class _Shifty(wiring.Component):
    """Its width is no parameter."""

    width = 0

    def __init__(self) -> None:
        _Shifty.width += 1
        super().__init__({"o": Out(_Shifty.width)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.d.sync += self.o.eq(self.o + 1)
        return m


def test_equal_components_with_different_ports_are_refused() -> None:
    class Both(wiring.Component):
        def __init__(self) -> None:
            super().__init__({"o": Out(8)})

        def elaborate(self, platform: object) -> Elaboratable:
            m = Module()
            first, second = _Shifty(), _Shifty()
            m.submodules.first = shared_instance(first, platform)
            m.submodules.second = shared_instance(second, platform)
            m.d.comb += self.o.eq(first.o + second.o)
            return m

    with pytest.raises(EmissionError, match="different ports"):
        emit(Both(), "both")
