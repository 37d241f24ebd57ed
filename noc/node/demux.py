"""The demux of a requester's accesses: to its own vault, to other vaults, and to none."""

from typing import Any

from amaranth.hdl import Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.emission import shared_instance
from hdl.ports import MemoryPort
from hdl.round_robin import RoundRobin
from noc.config import NetworkConfig


class Demux(Component):
    """Passes each request in the same cycle to the port of its address, and merges the responses.

    Responses of both sides pass in the same cycle, whole ones in turns. A request to a vault that
    does not exist is accepted and answered with as many beats as any other, with ``error``.

    Parameters:
        config: of the network, of at least two vaults.

    Members:
        vault (in, vault_bits): number of the own vault.
        port (in, :class:`hdl.ports.MemoryPort` with ``chip_address_bits``): from the requester.
        local (out, MemoryPort with ``address_bits``): to the own vault.
        remote (out, MemoryPort with ``chip_address_bits``): to the others.
    """

    def __init__(self, config: NetworkConfig) -> None:
        self.config = config
        chip = MemoryPort(address_bits=config.chip_address_bits, tag_bits=config.tag_bits)
        local = MemoryPort(address_bits=config.address_bits, tag_bits=config.tag_bits)
        super().__init__(
            {
                "vault": In(config.vault_bits),
                "port": In(chip),
                "local": Out(local),
                "remote": Out(chip),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        request = self.port.request
        vault = request.payload.address[config.address_bits :]
        to_local = Signal()
        exists = Signal()
        m.d.comb += [
            to_local.eq(vault == self.vault),
            exists.eq(vault < config.vaults if config.vaults & (config.vaults - 1) else 1),
            self.local.request.valid.eq(request.valid & to_local),
            self.remote.request.valid.eq(request.valid & ~to_local & exists),
            *_copy(self.local.request.payload, request.payload),
            *_copy(self.remote.request.payload, request.payload),
            request.ready.eq(Mux(to_local, self.local.request.ready, self.remote.request.ready)),
        ]
        responses = (self.local.response, self.remote.response)
        sources = [(stream.valid, stream.payload, stream.ready) for stream in responses]
        if config.vaults & (config.vaults - 1):
            sources.append(self._error_responder(m, exists))
        self._merge(m, sources, platform)
        return m

    def _error_responder(self, m: Module, exists: Value) -> tuple[Value, Any, Value]:
        """``valid``, ``payload`` and ``ready`` of the responses to requests without a vault."""
        request = self.port.request
        error_valid = Signal()
        error_response: Any = Signal(self.port.response.payload.shape())
        error_ready = Signal()
        tag = Signal(self.config.tag_bits)
        beats_left = Signal.like(request.payload.words)
        m.d.comb += [
            error_response.tag.eq(tag),
            error_response.last.eq(beats_left == 0),
            error_response.error.eq(1),
        ]
        with m.If(~exists):
            m.d.comb += request.ready.eq(~error_valid)
            with m.If(request.valid & request.payload.last & ~error_valid):
                # At the last beat of a write no words are left.
                m.d.sync += [
                    error_valid.eq(1),
                    tag.eq(request.payload.tag),
                    beats_left.eq(request.payload.words),
                ]
        with m.If(error_ready):
            m.d.sync += [beats_left.eq(beats_left - 1), error_valid.eq(~error_response.last)]
        return error_valid, error_response, error_ready

    def _merge(self, m: Module, sources: list[tuple[Value, Any, Value]], platform: object) -> None:
        """Pass on whole responses of ``sources``, in turns."""
        response = self.port.response
        arbiter = RoundRobin(count=len(sources))
        m.submodules["arbiter"] = shared_instance(arbiter, platform)
        locked = Signal()
        owner = Signal(len(sources))
        selected = Signal(len(sources))
        m.d.comb += selected.eq(Mux(locked, owner, arbiter.grant))
        for number, (valid, payload, ready) in enumerate(sources):
            m.d.comb += [
                arbiter.requests[number].eq(valid),
                ready.eq(selected[number] & response.ready),
            ]
            with m.If(selected[number]):
                m.d.comb += [response.valid.eq(valid), response.payload.eq(payload)]
        # An offered beat stays, whatever other beats arrive.
        with m.If(response.valid):
            m.d.sync += [
                locked.eq(~(response.ready & response.payload.last)),
                owner.eq(selected),
            ]
        m.d.comb += arbiter.advance.eq(response.valid & ~locked)


def _copy(target: Any, source: Any) -> list[Any]:
    """Assignments of all members; a narrower address loses its upper bits."""
    return [target[name].eq(source[name]) for name, _ in source.shape()]
