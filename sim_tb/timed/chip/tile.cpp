#include "tile.h"

#include <algorithm>
#include <bit>

namespace vip::timed {
namespace {

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
      m_demuxes(chip.engines + 1),
      m_dram(g_devices[static_cast<int32_t>(number)]),
      m_turns(chip.engines) {
    if (vault) m_controller.emplace(*vault);
    if (axi) m_axi.emplace(*axi, static_cast<int32_t>(number));
    if (lines.lines) m_lines.emplace(lines);
}

void ChipTile::dram(const DramSignals& signals) {
    m_read_data = m_dram.cycle(signals.valid, signals.kind, signals.bank, signals.row,
                               signals.column, signals.write_data, signals.write_strobe);
    failed = !m_dram.violation().empty();
}

Passage ChipTile::memory() {
    if (m_axi) {
        const bool answers = m_axi->response_valid();
        const ResponseBeat arrival = answers ? m_axi->response() : ResponseBeat{};
        const auto access = [&](const Crossbar::Beat* asked, bool taken) {
            if (!asked && m_axi->rest()) {
                m_axi->pass(1);
            } else {
                m_axi->cycle(asked ? &asked->beat : nullptr, asked ? asked->source : 0, taken);
            }
            return asked && m_axi->accepted;
        };
        return pass(m_lines, m_crossbar, answers ? &arrival : nullptr, m_axi->counters, access);
    }
    Controller& controller = *m_controller;
    const bool answers = controller.response_valid();
    const ResponseBeat arrival = answers ? controller.response() : ResponseBeat{};
    const auto access = [&](const Crossbar::Beat* asked, bool taken) {
        DramSignals signals = {};
        if (!asked && controller.rest()) {
            controller.pass(1);
        } else {
            controller.cycle(asked ? &asked->beat : nullptr, asked ? asked->source : 0, taken,
                             m_read_data, signals);
        }
        dram(signals);
        return asked && controller.accepted;
    };
    return pass(m_lines, m_crossbar, answers ? &arrival : nullptr, controller.counters, access);
}

// Whether a link to it may carry something.
bool ChipTile::arrivals(const uint8_t* busy) const {
    const uint8_t* const neighbours = m_sizes.neighbours + m_number * m_sizes.ports;
    for (uint32_t port = 0; port < m_sizes.ports; ++port)
        if (port != m_sizes.local && busy[neighbours[port]]) return true;
    return false;
}

void ChipTile::fall_asleep(const uint8_t* const busy[2]) {
    if (m_running || m_lines || !node.idle() || !m_router.idle() || !m_crossbar.idle() ||
        busy[0][m_number] || busy[1][m_number])
        return;
    m_sleep = m_axi ? m_axi->rest() : m_controller->rest();
}

void ChipTile::wake() {
    m_sleep = 0;
    if (!m_slept) return;
    node.rest(m_slept);
    m_cycle += m_slept;
    if (m_axi) {
        m_axi->pass(m_slept);
    } else {
        m_controller->pass(m_slept);
        for (; m_slept; --m_slept) dram({});
    }
    m_slept = 0;
}

void ChipTile::network(ChipTile* const* tiles, uint8_t* const busy[2], uint32_t now) {
    const uint8_t* const neighbours = m_sizes.neighbours + m_number * m_sizes.ports;
    const auto ports = static_cast<uint32_t>(m_sizes.ports);
    const LinkEnd& own = node.to_router();
    const bool busy_now = busy[now][m_number];
    if (busy_now)
        for (uint32_t port = 0; port < ports; ++port)
            node.counters[m_sizes.flit_counters[port]] += ends[now][port].valid;
    // Neighbours on other threads read it: what stays is not written.
    uint8_t& next = busy[1 - now][m_number];
    if (!own.valid && !own.credit && m_router.idle() && !arrivals(busy[now])) {
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
    if (m_sleep && !(m_joined && arrivals(busy[now])) && !(host && host->request)) {
        ++m_slept, --m_sleep;
        return;
    }
    wake();
    const auto count = static_cast<uint32_t>(engines.size()), others = count + 1;
    uint64_t own = 0, remote = 0;
    Demux::Source targets[kMostEngines + 1];
    const auto offered = [&](uint32_t slot, const RequestBeat& beat) {
        targets[slot] = m_joined ? m_demuxes[slot].target(m_sizes, m_number, beat.address)
                                 : Demux::kOwn;
        own |= uint64_t{targets[slot] == Demux::kOwn} << slot;
        remote |= uint64_t{targets[slot] == Demux::kOthers} << slot;
    };
    for (uint32_t left = m_requesting; left; left &= left - 1)
        offered(std::countr_zero(left), *engines[std::countr_zero(left)]->request());
    if (host && host->request) offered(count, *host->request);
    own |= uint64_t{node.server.request() != nullptr} << others;
    const int passing = m_crossbar.selected(own), leaving = node.crossbar.selected(remote);
    const ResponseBeat* served = m_joined ? m_crossbar.response(others) : nullptr;
    const LinkEnd& arriving = busy[now][m_number] ? ends[now][m_sizes.local] : kNoLink;
    const bool idle = node.idle() && !remote && !served && !arriving.valid && !arriving.credit;
    if (!idle) node.look(arriving, served);

    Crossbar::Beat own_beat, remote_beat;
    bool passes = false, leaves = false;
    uint64_t own_took = 0, remote_took = 0;
    const auto goes = [&](uint32_t slot, const RequestBeat* beat, uint64_t window) {
        if (!beat) return false;
        const auto number = static_cast<int>(slot);
        if (targets[slot] == Demux::kOwn && number == passing) {
            own_beat = {*beat, slot};
            own_beat.beat.address &= (uint64_t{1} << m_sizes.address_bits) - 1;
            own_beat.beat.address |= window;
            return passes = true;
        }
        if (targets[slot] == Demux::kOthers && number == leaving) {
            remote_beat = {*beat, slot};
            return leaves = true;
        }
        return false;
    };
    const auto took = [&](uint32_t slot, bool taken) {
        if (taken && m_demuxes[slot].selected() == Demux::kOwn) own_took |= uint64_t{1} << slot;
        if (taken && m_demuxes[slot].selected() == Demux::kOthers) remote_took |= uint64_t{1} << slot;
        return taken;
    };
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
        } else {
            port.request_ready = goes(slot, beat, m_window_bits < 64 ? uint64_t{slot} << m_window_bits : 0);
        }
        port.response = demux.response(m_crossbar.response(slot), node.crossbar.response(slot));
        engine.cycle(port);
        const bool taken = took(slot, port.response && port.response_ready);
        demux.edge(port.response, taken, lost && port.request_ready ? &fired : nullptr);
        const uint32_t bit = 1U << slot;
        m_requesting = engine.request() ? m_requesting | bit : m_requesting & ~bit;
        const uint64_t since = m_cycle + 1, rest = std::min(engine.rest(), kEver);
        m_turns[slot] = {since, since + rest};
        if (!engine.running()) m_running &= ~bit, m_requesting &= ~bit;
    }
    if (host && (host->request || answered >> count & 1)) {
        host->taken = goes(count, host->request, 0);
        const ResponseBeat* const response = m_demuxes[count].response(
            m_crossbar.response(count), node.crossbar.response(count));
        const bool taken = took(count, response && host->takes(*response));
        if (taken) host->response = *response;
        m_demuxes[count].edge(response, taken, nullptr);
    }
    bool serves = false;
    if (passing == static_cast<int>(others) && node.server.request()) {
        own_beat = {*node.server.request(), others};
        passes = serves = true;
    }
    if (passes && !serves) node.counters[kNetworkLocalRequests] += own_beat.beat.last;
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
    if (!m_running) fall_asleep(busy);
}

PeModel& ChipTile::caught_up(uint32_t slot) {
    Turn& turn = m_turns[slot];
    if (turn.since < m_cycle) engines[slot]->pass(m_cycle - turn.since);
    turn.since = m_cycle;
    return *engines[slot];
}

void ChipTile::launch(uint32_t slot, std::unique_ptr<PeModel> engine) {
    wake();
    engines[slot] = std::move(engine);
    engines[slot]->launch();
    m_turns[slot] = {m_cycle, m_cycle};
    m_running |= 1U << slot;
    ++launches;
}

void ChipTile::stop(uint32_t slot) {
    wake();
    caught_up(slot).stop();
    m_turns[slot].wake = m_cycle;
}

EngineResult ChipTile::result(uint32_t slot) {
    if (!engines[slot]) return {};
    return running() >> slot & 1 ? caught_up(slot).result() : engines[slot]->result();
}

}  // namespace vip::timed
