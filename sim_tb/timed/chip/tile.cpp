#include "tile.h"

#include <algorithm>
#include <bit>

namespace vip::timed {
namespace {

// Longer than any run.
constexpr uint64_t kEver = uint64_t{1} << 62;
// A link that carries nothing.
constexpr LinkEnd kNoLink = {};

}  // namespace

ChipTile::ChipTile(const ChipSizes& chip, const NetworkSizes& sizes, const VaultSizes* vault,
                   const AxiSizes* axi, const LineSizes& lines, uint32_t number)
    : engines(chip.engines),
      node(sizes, number),
      m_sizes(sizes),
      m_number(number),
      m_joined(chip.joined),
      m_window_bits(chip.window_bits),
      m_router(sizes, number),
      m_crossbar(chip.requesters),
      m_demuxes(chip.engines),
      m_dram(g_devices[static_cast<int32_t>(number)]),
      m_turns(chip.engines) {
    if (vault) m_controller.emplace(*vault);
    if (axi) m_axi.emplace(*axi, static_cast<int32_t>(number));
    if (lines.lines) m_lines.emplace(lines);
}

Passage ChipTile::memory() {
    if (m_axi) {
        const bool answers = m_axi->response_valid();
        const ResponseBeat arrival = answers ? m_axi->response() : ResponseBeat{};
        const auto access = [&](const Crossbar::Beat* asked, bool taken) {
            if (asked || !m_axi->pass())
                m_axi->cycle(asked ? &asked->beat : nullptr, asked ? asked->source : 0, taken);
            return asked && m_axi->accepted;
        };
        return pass(m_lines, m_crossbar, answers ? &arrival : nullptr, m_axi->counters, access);
    }
    Controller& controller = *m_controller;
    const bool answers = controller.response_valid();
    const ResponseBeat arrival = answers ? controller.response() : ResponseBeat{};
    const auto access = [&](const Crossbar::Beat* asked, bool taken) {
        DramSignals dram = {};
        if (asked || !controller.pass())
            controller.cycle(asked ? &asked->beat : nullptr, asked ? asked->source : 0, taken,
                             m_read_data, dram);
        m_read_data = m_dram.cycle(dram.valid, dram.kind, dram.bank, dram.row, dram.column,
                                   dram.write_data, dram.write_strobe);
        failed = !m_dram.violation().empty();
        return asked && controller.accepted;
    };
    return pass(m_lines, m_crossbar, answers ? &arrival : nullptr, controller.counters, access);
}

void ChipTile::network(ChipTile* const* tiles, uint8_t* const busy[2], uint32_t now) {
    const uint8_t* const neighbours = m_sizes.neighbours + m_number * m_sizes.ports;
    const auto ports = static_cast<uint32_t>(m_sizes.ports);
    const LinkEnd& own = node.to_router();
    bool arrivals = own.valid || own.credit;
    for (uint32_t port = 0; port < ports; ++port)
        arrivals = arrivals || (port != m_sizes.local && busy[now][neighbours[port]]);
    const bool busy_now = busy[now][m_number];
    if (busy_now)
        for (uint32_t port = 0; port < ports; ++port)
            node.counters[m_sizes.flit_counters[port]] += ends[now][port].valid;
    // Neighbours on other threads read it: what stays is not written.
    uint8_t& next = busy[1 - now][m_number];
    if (!arrivals && m_router.idle()) {
        if (next) next = 0;
        return;
    }
    const LinkEnd* in[kPorts] = {};
    for (uint32_t port = 0; port < ports; ++port) {
        const uint32_t other = neighbours[port];
        in[port] = port == m_sizes.local ? &own
                   : busy[now][other]    ? &tiles[other]->ends[now][m_sizes.opposites[port]]
                                         : &kNoLink;
    }
    m_router.cycle(in, ends[1 - now]);
    const uint8_t leaves = !m_router.quiet();
    if (next != leaves) next = leaves;
}

void ChipTile::cycle(ChipTile* const* tiles, uint8_t* const busy[2], uint32_t now) {
    const auto count = static_cast<uint32_t>(engines.size()), others = count + 1;
    uint64_t own = 0, remote = 0;
    Demux::Source targets[kMostEngines];
    for (uint32_t left = m_requesting; left; left &= left - 1) {
        const uint32_t slot = std::countr_zero(left);
        const RequestBeat* beat = engines[slot]->request();
        targets[slot] = m_joined ? m_demuxes[slot].target(m_sizes, m_number, beat->address)
                                 : Demux::kOwn;
        own |= uint64_t{targets[slot] == Demux::kOwn} << slot;
        remote |= uint64_t{targets[slot] == Demux::kOthers} << slot;
    }
    own |= uint64_t{node.server.request() != nullptr} << others;
    const int passing = m_crossbar.selected(own), leaving = node.crossbar.selected(remote);
    const ResponseBeat* served = m_joined ? m_crossbar.response(others) : nullptr;
    const LinkEnd& arriving = busy[now][m_number] ? ends[now][m_sizes.local] : kNoLink;
    const bool idle = node.idle() && !remote && !served && !arriving.valid && !arriving.credit;
    if (!idle) node.look(arriving, served);

    Crossbar::Beat own_beat = {}, remote_beat = {};
    bool passes = false, leaves = false;
    uint64_t own_took = 0, remote_took = 0;
    const uint64_t answered = m_crossbar.answered() | node.crossbar.answered();
    for (uint32_t left = m_running; left; left &= left - 1) {
        const uint32_t slot = std::countr_zero(left);
        Demux& demux = m_demuxes[slot];
        if (m_cycle < m_turns[slot].wake && !(answered >> slot & 1) && !demux.refuses()) continue;
        PeModel& engine = caught_up(slot);
        const RequestBeat* beat = engine.request();
        const bool lost = beat && targets[slot] == Demux::kNone;
        MemoryPort port = {};
        RequestBeat fired;
        if (lost) {
            port.request_ready = !demux.refuses();
            fired = *beat;
        } else if (beat && targets[slot] == Demux::kOwn && static_cast<int>(slot) == passing) {
            port.request_ready = passes = true;
            own_beat = {*beat, slot};
            own_beat.beat.address &= (uint64_t{1} << m_sizes.address_bits) - 1;
            if (m_window_bits < 64)
                own_beat.beat.address |= uint64_t{slot} << m_window_bits;
        } else if (beat && targets[slot] == Demux::kOthers && static_cast<int>(slot) == leaving) {
            port.request_ready = leaves = true;
            remote_beat = {*beat, slot};
        }
        port.response = demux.response(m_crossbar.response(slot), node.crossbar.response(slot));
        engine.cycle(port);
        const bool taken = port.response && port.response_ready;
        if (taken && demux.selected() == Demux::kOwn) own_took |= uint64_t{1} << slot;
        if (taken && demux.selected() == Demux::kOthers) remote_took |= uint64_t{1} << slot;
        demux.edge(port.response, taken, lost && port.request_ready ? &fired : nullptr);
        const uint32_t bit = 1U << slot;
        m_requesting = engine.request() ? m_requesting | bit : m_requesting & ~bit;
        const uint64_t since = m_cycle + 1, rest = std::min(engine.rest(), kEver);
        m_turns[slot] = {since, since + rest};
        if (!engine.running()) m_running &= ~bit, m_requesting &= ~bit;
    }
    bool serves = false;
    if (passing == static_cast<int>(others) && node.server.request()) {
        own_beat = {*node.server.request(), others};
        passes = serves = true;
    }
    node.counters[kNetworkLocalRequests] += passes && !serves && own_beat.beat.last;
    if (served && node.takes_response()) own_took |= uint64_t{1} << others;

    const Passage passage = memory();
    if (m_joined) network(tiles, busy, now);
    if (idle) {
        node.rest();
    } else {
        node.edge(leaves ? &remote_beat : nullptr, remote_took, serves);
    }
    ++m_cycle;
    if (passes || passage.took || passage.answers || own_took)
        m_crossbar.edge(passes ? &own_beat : nullptr, passage.took,
                        passage.answers ? &passage.response : nullptr, own_took);
}

PeModel& ChipTile::caught_up(uint32_t slot) {
    Turn& turn = m_turns[slot];
    if (turn.since < m_cycle) engines[slot]->pass(m_cycle - turn.since);
    turn.since = m_cycle;
    return *engines[slot];
}

void ChipTile::launch(uint32_t slot, std::unique_ptr<PeModel> engine) {
    engines[slot] = std::move(engine);
    engines[slot]->launch();
    m_turns[slot] = {m_cycle, m_cycle};
    m_running |= 1U << slot;
    ++launches;
}

void ChipTile::stop(uint32_t slot) {
    caught_up(slot).stop();
    m_turns[slot].wake = m_cycle;
}

EngineResult ChipTile::result(uint32_t slot) {
    if (!engines[slot]) return {};
    return running() >> slot & 1 ? caught_up(slot).result() : engines[slot]->result();
}

}  // namespace vip::timed
