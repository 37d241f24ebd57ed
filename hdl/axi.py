"""AXI4 and AXI4-Lite: the external interfaces of VIP (AMBA AXI specification, ARM IHI 0022).

The members have the specification's names in lower case. In emitted Verilog a port ``axi`` has
``axi__awid``, ``axi__awaddr`` and so on, the names that bus models and block-design tools look for.

Every channel follows the specification's handshake: a beat moves in a cycle with valid and ready;
valid does not wait for ready, and an offered beat does not change until it has moved.
"""

from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from support.checks import Checks

from .config import ConfigurationError


class AxiBurst(enum.Enum, shape=2):
    """Sequence of the addresses of a burst's beats."""

    FIXED = 0
    INCR = 1
    WRAP = 2


class AxiResponse(enum.Enum, shape=2):
    """Result of an access; bit 1 marks an error."""

    OKAY = 0
    EXOKAY = 1
    SLVERR = 2
    DECERR = 3


_CHECK = Checks(ConfigurationError)


class Axi4(wiring.Signature):
    """AXI4, seen from the manager (the master). No user, region, lock and QoS signals: they then
    have the specification's default values.

    Parameters:
        address_bits: byte address width, 1..64.
        data_bits: width of the data buses, a power of two from 32 to 1024.
        id_bits: width of all identifiers, 1..16.

    Members:
        awid, arid (out, id_bits): identifier of the access.
        awaddr, araddr (out, address_bits): byte address.
        awlen, arlen (out, 8): beats less one.
        awsize, arsize (out, 3): log2 of the bytes of a beat.
        awburst, arburst (out, :class:`AxiBurst`): kind of the burst.
        awcache, arcache (out, 4): memory type.
        awprot, arprot (out, 3): protection.
        awvalid, arvalid (out, 1): address offered.
        awready, arready (in, 1): address taken.
        wdata (out, data_bits): write data.
        wstrb (out, data_bits / 8): bytes to write.
        wlast (out, 1): last beat of the burst.
        wvalid (out, 1): data offered.
        wready (in, 1): data taken.
        bid (in, id_bits): identifier of the write.
        bresp (in, :class:`AxiResponse`): result of the write.
        bvalid (in, 1): response offered.
        bready (out, 1): response taken.
        rid (in, id_bits): identifier of the read.
        rdata (in, data_bits): read data.
        rresp (in, :class:`AxiResponse`): result of the read.
        rlast (in, 1): last beat of the burst.
        rvalid (in, 1): data offered.
        rready (out, 1): data taken.

    Raises:
        ConfigurationError: a parameter outside its range.
    """

    def __init__(self, *, address_bits: int, data_bits: int, id_bits: int) -> None:
        _CHECK.within("address_bits", address_bits, 1, 64)
        _CHECK.one_of("data_bits", data_bits, (32, 64, 128, 256, 512, 1024))
        _CHECK.within("id_bits", id_bits, 1, 16)
        self.address_bits = address_bits
        self.data_bits = data_bits
        self.id_bits = id_bits
        members: dict[str, wiring.Member] = {}
        for channel in ("aw", "ar"):
            members |= {
                f"{channel}id": Out(id_bits),
                f"{channel}addr": Out(address_bits),
                f"{channel}len": Out(8),
                f"{channel}size": Out(3),
                f"{channel}burst": Out(AxiBurst),
                f"{channel}cache": Out(4),
                f"{channel}prot": Out(3),
                f"{channel}valid": Out(1),
                f"{channel}ready": In(1),
            }
        members |= {
            "wdata": Out(data_bits),
            "wstrb": Out(data_bits // 8),
            "wlast": Out(1),
            "wvalid": Out(1),
            "wready": In(1),
            "bid": In(id_bits),
            "bresp": In(AxiResponse),
            "bvalid": In(1),
            "bready": Out(1),
            "rid": In(id_bits),
            "rdata": In(data_bits),
            "rresp": In(AxiResponse),
            "rlast": In(1),
            "rvalid": In(1),
            "rready": Out(1),
        }
        super().__init__(members)


class Axi4Lite(wiring.Signature):
    """AXI4-Lite, seen from the manager (the master): one beat per access, no identifiers.

    Parameters:
        address_bits: byte address width, 1..64.
        data_bits: width of the data buses, 32 or 64.

    Members:
        awaddr, araddr (out, address_bits): byte address.
        awprot, arprot (out, 3): protection.
        awvalid, arvalid (out, 1): address offered.
        awready, arready (in, 1): address taken.
        wdata (out, data_bits): write data.
        wstrb (out, data_bits / 8): bytes to write.
        wvalid (out, 1): data offered.
        wready (in, 1): data taken.
        bresp (in, :class:`AxiResponse`): result of the write.
        bvalid (in, 1): response offered.
        bready (out, 1): response taken.
        rdata (in, data_bits): read data.
        rresp (in, :class:`AxiResponse`): result of the read.
        rvalid (in, 1): data offered.
        rready (out, 1): data taken.

    Raises:
        ConfigurationError: a parameter outside its range.
    """

    def __init__(self, *, address_bits: int, data_bits: int = 32) -> None:
        _CHECK.within("address_bits", address_bits, 1, 64)
        _CHECK.one_of("data_bits", data_bits, (32, 64))
        self.address_bits = address_bits
        self.data_bits = data_bits
        members: dict[str, wiring.Member] = {}
        for channel in ("aw", "ar"):
            members |= {
                f"{channel}addr": Out(address_bits),
                f"{channel}prot": Out(3),
                f"{channel}valid": Out(1),
                f"{channel}ready": In(1),
            }
        members |= {
            "wdata": Out(data_bits),
            "wstrb": Out(data_bits // 8),
            "wvalid": Out(1),
            "wready": In(1),
            "bresp": In(AxiResponse),
            "bvalid": In(1),
            "bready": Out(1),
            "rdata": In(data_bits),
            "rresp": In(AxiResponse),
            "rvalid": In(1),
            "rready": Out(1),
        }
        super().__init__(members)
