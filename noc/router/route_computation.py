"""The output of a packet at a router."""

from amaranth.hdl import Cat, Elaboratable, Module, Signal, Value
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from noc.config import NetworkConfig
from noc.routing import LOCAL, PortChannel, ring_step, turns
from noc.topology import Direction


def targets(config: NetworkConfig) -> tuple[PortChannel, ...]:
    """Outputs of a router, in the order of their codes."""
    return tuple(sorted({turn.target for turn in turns(config)}))


class RouteComputation(Component):
    """Route computation: the next step of a packet, by the tables of :func:`noc.routing.ring_step`.

    Parameters:
        config: of the network.

    Members:
        x (in, x_bits): column of the router.
        y (in, y_bits): row of the router.
        to_x (in, x_bits): column of the packet's destination.
        to_y (in, y_bits): row of the packet's destination.
        target (out, index in :func:`targets`): in the same cycle, the packet's output.
    """

    def __init__(self, config: NetworkConfig) -> None:
        self.config = config
        super().__init__(
            {
                "x": In(config.x_bits),
                "y": In(config.y_bits),
                "to_x": In(config.x_bits),
                "to_y": In(config.y_bits),
                "target": Out(range(len(targets(config)))),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        along_row = self._ring(
            m, "row", config.columns, self.x, self.to_x, (Direction.EAST, Direction.WEST)
        )
        along_column = self._ring(
            m, "column", config.rows, self.y, self.to_y, (Direction.SOUTH, Direction.NORTH)
        )
        m.d.comb += self.target.eq(targets(config).index(PortChannel(LOCAL, 0)))
        with m.If(self.x != self.to_x):
            m.d.comb += self.target.eq(along_row)
        with m.Elif(self.y != self.to_y):
            m.d.comb += self.target.eq(along_column)
        return m

    def _ring(
        self,
        m: Module,
        name: str,
        size: int,
        position: Value,
        destination: Value,
        directions: tuple[Direction, Direction],
    ) -> Signal:
        """Code of the step from ``position`` to ``destination``; ``directions``: forward, back."""
        codes = targets(self.config)
        code = Signal(range(len(codes)), name=f"along_{name}")
        bits = (size - 1).bit_length()
        with m.Switch(Cat(destination, position)):
            for start in range(size):
                for end in range(size):
                    if start != end:
                        forward, vc = ring_step(size, start, end, self.config.virtual_channels)
                        step = PortChannel(directions[0] if forward else directions[1], vc)
                        with m.Case(start << bits | end):
                            m.d.comb += code.eq(codes.index(step))
        return code
