"""Rules of streams, memory ports and AXI: assumed around a unit, shown of the unit."""

from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Array, Cat, Mux, Signal, Value, signed
from amaranth.lib import wiring

from hdl.ports import BYTE_BITS, COLUMN_BITS, COLUMN_WORDS, MemoryPort
from tests.steady_streams import streams

from .proof import Watch


def keeps_contracts(dut: Any, watch: Watch) -> None:
    """What ``dut`` offers stays until it is taken, and its memory ports obey their rules, if what
    is around it does the same."""
    _steady(dut, watch)
    for port, signature, flow in _memory_ports(dut):
        request, response = _memory_rules(watch, port, signature.tag_bits)
        given, shown = (request, response) if flow is wiring.In else (response, request)
        watch.assume(given)
        watch.never(~shown)


def _steady(dut: Any, watch: Watch) -> None:
    """What ``dut`` offers stays until it is taken, if what it is offered does."""
    for flow in (wiring.In, wiring.Out):
        for valid, ready, payload in streams(dut, flow).values():
            waits, before = watch.before(valid & ~ready), watch.before(payload)
            stays = ~waits | (valid & (payload == before))
            if flow is wiring.In:
                watch.assume(stays)
            else:
                watch.never(~stays)


def _memory_ports(dut: Any) -> Iterator[tuple[Any, MemoryPort, wiring.Flow]]:
    for name, member in dut.signature.members.items():
        if not member.is_signature:
            continue
        signature = member.signature
        if member.flow is wiring.In:
            signature = signature.flip()
        if isinstance(signature, MemoryPort):
            port = getattr(dut, name)
            for each in port if member.dimensions else [port]:
                yield each, signature, member.flow


def _memory_rules(watch: Watch, port: Any, tag_bits: int) -> tuple[Value, Value]:
    """Whether the beats of this cycle at a :class:`hdl.ports.MemoryPort` obey its rules: the
    request's, and the response's."""
    m, tags = watch.m, range(1 << tag_bits)
    request, response = port.request.payload, port.response.payload
    busy, writes = Signal(len(tags)), Signal(len(tags))
    words = Array(Signal(2, name=f"words_{tag}") for tag in tags)
    asked = port.request.valid & port.request.ready
    answered = port.response.valid & port.response.ready
    # A write whose beats have not all come, and a response.
    inside, left, next_word = Signal(), Signal(2), Signal(len(request.address) - BYTE_BITS)
    tag, column_word = Signal(tag_bits), request.address[BYTE_BITS:COLUMN_BITS]
    answering, answering_tag, beat = Signal(), Signal(tag_bits), Signal(2)
    with m.If(asked):
        m.d.sync += [
            inside.eq(~request.last),
            left.eq(request.words - 1),
            next_word.eq(request.address[BYTE_BITS:] + 1),
            tag.eq(request.tag),
        ]
        with m.If(~inside):
            m.d.sync += [
                words[request.tag].eq(request.words),
                writes.bit_select(request.tag, 1).eq(request.write),
            ]
    with m.If(answered):
        m.d.sync += [
            answering.eq(~response.last),
            answering_tag.eq(response.tag),
            beat.eq(Mux(response.last, 0, beat + 1)),
        ]
    begins = Mux(asked & request.last, 1 << request.tag, 0)
    ends = Mux(answered & response.last, 1 << response.tag, 0)
    m.d.sync += busy.eq((busy & ~ends) | begins)
    begun = Cat(
        ~busy.bit_select(request.tag, 1),
        (column_word + request.words) <= 3,
        request.write | (request.strobe == 0xFF),
    ).all()
    continued = Cat(
        request.write,
        request.tag == tag,
        request.words == left,
        request.address[BYTE_BITS:] == next_word,
    ).all()
    good_request = Cat(
        Mux(inside, continued, begun),
        request.address[:BYTE_BITS] == 0,
        request.last == (~request.write | (request.words == 0)),
    ).all()
    whole = writes.bit_select(response.tag, 1) | (beat == words[response.tag])
    good_response = Cat(
        busy.bit_select(response.tag, 1),
        ~answering | (response.tag == answering_tag),
        Mux(response.last, whole | response.error, ~whole),
    ).all()
    return ~port.request.valid | good_request, ~port.response.valid | good_response


def axi_rules(watch: Watch, axi: Any, id_bits: int) -> tuple[Value, Value]:
    """Whether a manager's beats at a :class:`hdl.axi.Axi4` and a subordinate's obey the rules of
    bursts, for a manager that uses each identifier for one access at a time.

    A subordinate answers a write when the data of all addresses before it have come, too.
    """
    m, ids = watch.m, range(1 << id_bits)
    asked = {name: _moves(axi, name) for name in ("aw", "w", "b", "ar", "r")}
    writing, reading = Signal(len(ids)), Signal(len(ids))
    lengths = Array(Signal(8, name=f"length_{number}") for number in ids)
    # Beats of the bursts whose data have not all come, in the order of their addresses.
    behind, beats, read_beats = Signal(signed(id_bits + 4)), Signal(9), Signal(9)
    inside, reading_id = Signal(), Signal(id_bits)
    m.d.sync += [
        writing.eq(
            (writing | Mux(asked["aw"], 1 << axi.awid, 0)) & ~Mux(asked["b"], 1 << axi.bid, 0)
        ),
        reading.eq(
            (reading | Mux(asked["ar"], 1 << axi.arid, 0))
            & ~Mux(asked["r"] & axi.rlast, 1 << axi.rid, 0)
        ),
        behind.eq(behind + asked["aw"] - (asked["w"] & axi.wlast)),
    ]
    with m.If(asked["ar"]):
        m.d.sync += lengths[axi.arid].eq(axi.arlen)
    with m.If(asked["w"]):
        m.d.sync += beats.eq(Mux(axi.wlast, 0, beats + 1))
    with m.If(asked["r"]):
        m.d.sync += [
            read_beats.eq(Mux(axi.rlast, 0, read_beats + 1)),
            inside.eq(~axi.rlast),
            reading_id.eq(axi.rid),
        ]
    manager = Cat(
        ~axi.awvalid | ~writing.bit_select(axi.awid, 1),
        ~axi.arvalid | ~reading.bit_select(axi.arid, 1),
        ~axi.wvalid | (beats < COLUMN_WORDS),
    )
    subordinate = Cat(
        ~axi.bvalid | (writing.bit_select(axi.bid, 1) & (behind == 0)),
        ~axi.rvalid | reading.bit_select(axi.rid, 1),
        ~axi.rvalid | ~inside | (axi.rid == reading_id),
        ~axi.rvalid | (axi.rlast == (read_beats == lengths[axi.rid])),
    )
    return manager.all(), subordinate.all()


def _moves(axi: Any, channel: str) -> Value:
    """Whether a beat moves on a channel in this cycle."""
    return getattr(axi, f"{channel}valid") & getattr(axi, f"{channel}ready")
