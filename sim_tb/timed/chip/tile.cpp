// A tile with its engines and its memory, what it knows about its neighbours and reports to them, and
// a cycle of its router.
#include <algorithm>
#include <bit>
#include <cassert>

#include "memory.h"
#include "tile.h"

namespace vip::timed {

void Memory::do_before(uint64_t cycle) {
    while (m_cycle < cycle) {
        // It would be offered before it is due.
        assert(!m_controller.response_valid());
        const Crossbar::Beat* const beat = next_beat();
        if (beat || !m_controller.rest()) {
            step(beat, false);
            continue;
        }
        const uint64_t end = m_entered == m_left ? cycle : m_inbox[m_left % kInbox].cycle;
        const uint64_t count = std::min(m_controller.rest(), end - m_cycle);
        m_controller.pass(count);
        m_dram.pass(count);
        m_cycle += count;
    }
}

void Memory::step(const Crossbar::Beat* asked, bool taken) {
    const DramSignals& signals = m_controller.dram();
    m_dram.drive(signals.valid, signals.kind, signals.bank, signals.row, signals.column);
    m_controller.cycle(asked ? &asked->beat : nullptr, asked ? asked->source : 0, taken, 0);
    ++m_cycle;
}

ChipTile::ChipTile(const ChipSizes& chip, const NetworkSizes& sizes, const VaultSizes* vault,
                   const AxiSizes* axi, const LineSizes& lines, Summaries& summaries,
                   uint32_t number)
    : engines(chip.engines),
      node(sizes, number),
      m_sizes(sizes),
      m_number(number),
      m_joined(chip.joined),
      m_window_bits(chip.window_bits),
      m_summaries(summaries),
      m_router(sizes, number),
      m_crossbar(chip.requesters),
      m_dram(dram_device(static_cast<int32_t>(number))) {
    if (vault) m_memory.emplace(*vault, m_dram);
    if (axi) m_axi.emplace(*axi, static_cast<int32_t>(number));
    if (lines.lines) m_lines.emplace(lines);
}

// For a memory behind a line buffer or on an AXI bus.
Passage ChipTile::memory_in_step() {
    wake();
    if (!m_axi) {
        const ResponseBeat* const arrival = m_memory->offered();
        const auto access = [&](const Crossbar::Beat* asked, bool taken) {
            m_memory->cycle(m_cycle, asked, [&](const ResponseBeat&) { return taken; });
            return asked && m_memory->accepted();
        };
        return pass(m_lines, m_crossbar, arrival, m_memory->counters(), access);
    }
    const ResponseBeat* const arrival = m_axi->response_valid() ? &m_axi->response() : nullptr;
    const auto access = [&](const Crossbar::Beat* asked, bool taken) {
        m_axi->cycle(asked ? &asked->beat : nullptr, asked ? asked->source : 0, taken);
        ++m_axi_cycle;
        return asked && m_axi->accepted;
    };
    return pass(m_lines, m_crossbar, arrival, m_axi->counters, access);
}

Passage ChipTile::memory() {
    if (m_axi || m_lines) [[unlikely]] return memory_in_step();
    Memory& memory = *m_memory;
    const Crossbar::Beat* asked = m_crossbar.request();
    const bool waits = asked && memory.accepts(asked->beat);
    if (waits) {
        memory.put(m_cycle, *asked);
        asked = nullptr;
    }
    if (!asked && m_cycle < memory.due()) return {waits, nullptr};
    const ResponseBeat* const answer = memory.cycle(
        m_cycle, asked, [&](const ResponseBeat& response) { return m_crossbar.takes(response); });
    return {waits || (asked && memory.accepted()), answer};
}

uint64_t ChipTile::next() const {
    if (m_running & (m_awake | m_refusing)) return m_cycle;
    if (!m_node_idle || !m_router.idle() || m_carries[m_cycle % 2] || !m_crossbar.idle())
        return m_cycle;
    if (m_axi || m_lines) [[unlikely]]
        return m_lines || m_running || !m_axi->rest() ? m_cycle : kEver;
    return std::min(m_wake, m_memory->due());
}

bool ChipTile::advance(uint64_t limit) {
    const uint64_t begin = time();
    if (begin >= limit) return false;
    if (m_joined) {
        look();
        limit = std::min(limit, m_known);
        if (begin >= limit) return false;
    }
    while (m_cycle < limit) {
        const uint64_t found = std::min({m_next, limit, m_arrival});
        if (found > m_cycle && !(host && host->request)) {
            m_node_rests += found - m_cycle;
            m_cycle = found;
            continue;
        }
        if (m_wake <= m_cycle) {
            find_awake();
            if ((m_next = next()) > m_cycle) continue;
        }
        cycle();
    }
    if (m_joined) {
        promise();
    } else {
        forget();
    }
    return true;
}

void ChipTile::report_states() {
    uint32_t faulted = 0;
    for (uint32_t slot = 0; slot < engines.size(); ++slot)
        faulted |= uint32_t{engines[slot] && !engines[slot]->running() &&
                            engines[slot]->cause() != kNone}
                   << slot;
    const bool running = m_running;
    m_summaries.change(m_number, m_cycle, running - m_was_running,
                       int32_t{faulted != 0} - int32_t{m_was_faulted != 0},
                       faulted & ~m_was_faulted);
    m_was_running = running;
    m_was_faulted = faulted;
}

void ChipTile::wake() {
    if (m_memory) m_memory->catch_up(m_cycle);
    if (!m_axi) return;
    if (m_axi_cycle < m_cycle) m_axi->pass(m_cycle - m_axi_cycle);
    m_axi_cycle = m_cycle;
}

void ChipTile::settle() {
    wake();
    if (m_memory) m_memory->settle();
}

void ChipTile::finish() {
    settle();
    for (uint32_t slot = 0; slot < engines.size(); ++slot) result(slot);
}

void ChipTile::offer(uint32_t slot) {
    const uint32_t bit = 1U << slot;
    m_own &= ~bit, m_remote &= ~bit, m_lost &= ~bit;
    const RequestBeat* const beat = engines[slot]->running() ? engines[slot]->request() : nullptr;
    if (!beat) return;
    switch (target(beat->address)) {
        case Demux::kOwn: m_own |= bit; break;
        case Demux::kOthers: m_remote |= bit; break;
        default: m_lost |= bit;
    }
}

// Requires that no other source can have a response for the engine in that cycle.
bool ChipTile::absorb(const ResponseBeat& word, uint64_t cycle) {
    const uint32_t slot = word.source;
    if (!((m_running & ~(m_awake | m_refusing)) >> slot & 1)) return false;
    const Turn& now = m_turns[slot];
    if (now.wake <= cycle || !m_demuxes[slot].passes_own()) return false;
    if (!engines[slot]->absorb(word, cycle - now.since)) return false;
    m_demuxes[slot].pass_own(word.last);
    if (word.last) turn(slot, now.since, engines[slot]->rest());
    return true;
}

// After the first word of a response: passes on the others ahead of their cycles, up to one that the
// engine would notice. Nothing from another vault can reach it meanwhile.
void ChipTile::absorb_rest(uint32_t slot) {
    const Turn& now = m_turns[slot];
    uint64_t cycle = m_cycle + 1;
    uint32_t count = 0;
    for (bool last = false; !last; ++count) {
        const ResponseBeat& word = m_memory->following(count);
        if (now.wake <= ++cycle || !engines[slot]->absorb(word, cycle - now.since)) break;
        last = word.last;
        if (last) m_demuxes[slot].pass_own(true), turn(slot, now.since, engines[slot]->rest());
    }
    if (count) m_memory->skip(count);
}

// Passes the first words of a response to an engine that does not rest.
bool ChipTile::absorb_early(const ResponseBeat& word, uint64_t took) {
    const uint32_t slot = word.source;
    if (!((m_running & m_awake & ~m_refusing) >> slot & 1)) return false;
    if (!m_demuxes[slot].passes_own() || !m_crossbar.empties(slot, took)) return false;
    PeModel& engine = *engines[slot];
    if (!engine.absorb_early(word)) return false;
    m_demuxes[slot].pass_own(false);
    uint32_t count = 0;
    while (engine.absorb_early(m_memory->following(count))) ++count;
    if (count) m_memory->skip(count);
    return true;
}

void ChipTile::cycle() {
    const auto count = static_cast<uint32_t>(engines.size()), others = count + 1;
    uint64_t own = m_own, remote = m_remote;
    Demux::Source hosts = Demux::kNone;
    if (host && host->request) [[unlikely]] {
        hosts = target(host->request->address);
        own |= uint64_t{hosts == Demux::kOwn} << count;
        remote |= uint64_t{hosts == Demux::kOthers} << count;
    }
    own |= uint64_t{node.server.request() != nullptr} << others;
    const int passing = m_crossbar.selected(own), leaving = node.crossbar.selected(remote);
    const uint64_t own_answered = m_crossbar.answered();
    const ResponseBeat* const served =
        m_joined && own_answered >> others & 1 ? m_crossbar.response(others) : nullptr;
    const LinkEnd& arriving = m_carries[m_cycle % 2] ? m_ends[m_cycle % 2][m_sizes.local] : kNoLink;
    const bool idle = m_node_idle && !remote && !served && !(arriving.valid | arriving.credit);
    if (!idle) [[unlikely]] {
        node_rests();
        node.look(arriving, served);
    }

    Crossbar::Beat own_beat, remote_beat;
    bool passes = false, leaves = false, ended = false;
    uint64_t own_took = 0, remote_took = 0;
    // Whether a beat of a requester to its own vault or to others goes there in this cycle.
    const auto goes = [&](uint32_t slot, Demux::Source to, const RequestBeat& beat, uint64_t window) {
        const auto number = static_cast<int>(slot);
        if (to == Demux::kOwn && number == passing) {
            own_beat = {beat, slot};
            own_beat.beat.address &= (uint64_t{1} << m_sizes.address_bits) - 1;
            own_beat.beat.address |= window;
            return passes = true;
        }
        if (to == Demux::kOthers && number == leaving) {
            remote_beat = {beat, slot};
            return leaves = true;
        }
        return false;
    };
    const auto took = [&](uint32_t slot, bool taken) {
        if (taken && m_demuxes[slot].selected() == Demux::kOwn) own_took |= uint64_t{1} << slot;
        if (taken && m_demuxes[slot].selected() == Demux::kOthers) remote_took |= uint64_t{1} << slot;
        return taken;
    };
    const uint64_t others_answered = m_node_idle ? 0 : node.crossbar.answered();
    const uint64_t answered = own_answered | others_answered;
    for (uint32_t left = m_running & (m_awake | static_cast<uint32_t>(answered) | m_refusing); left;
         left &= left - 1) {
        const uint32_t slot = std::countr_zero(left), bit = 1U << slot;
        Demux& demux = m_demuxes[slot];
        // Responses can come only from its own vault.
        const bool alone = !(others_answered & bit) && demux.passes_own();
        const ResponseBeat* const word = m_crossbar.response(slot);
        if (alone && word && absorb(*word, m_cycle)) {
            own_took |= bit;
            continue;
        }
        PeModel& engine = caught_up(slot);
        MemoryPort port = {};
        RequestBeat fired;
        const bool lost = m_lost & bit;
        if (lost) [[unlikely]] {
            port.request_ready = !demux.refuses();
            fired = *engine.request();
        } else if ((m_own | m_remote) & bit) {
            port.request_ready =
                goes(slot, m_own & bit ? Demux::kOwn : Demux::kOthers, *engine.request(),
                     m_window_bits < 64 ? uint64_t{slot} << m_window_bits : 0);
        }
        if (alone && !lost) [[likely]] {
            port.response = word;
            engine.cycle(port);
            if (word) {
                demux.pass_own(port.response_ready && word->last);
                if (port.response_ready) own_took |= bit;
            }
        } else {
            port.response = demux.response(word, node.crossbar.response(slot));
            engine.cycle(port);
            const bool taken = took(slot, port.response && port.response_ready);
            demux.edge(port.response, taken, lost && port.request_ready ? &fired : nullptr);
            m_refusing = demux.refuses() ? m_refusing | bit : m_refusing & ~bit;
        }
        // A request stays until it is accepted.
        const bool offered = (m_own | m_remote | m_lost) & bit;
        if (port.request_ready | (offered != (engine.request() != nullptr))) offer(slot);
        turn(slot, m_cycle + 1, engine.rest());
        if (!engine.running()) [[unlikely]] m_running &= ~bit, ended = true, offer(slot);
    }
    if (host && (host->request || answered >> count & 1)) [[unlikely]] {
        host->taken = host->request && goes(count, hosts, *host->request, 0);
        const ResponseBeat* const response = m_demuxes[count].response(
            m_crossbar.response(count), node.crossbar.response(count));
        const bool taken = took(count, response && host->takes(*response));
        if (taken) host->response = *response;
        m_demuxes[count].edge(response, taken, nullptr);
    }
    bool serves = false;
    if (passing == static_cast<int>(others) && node.server.request()) [[unlikely]] {
        own_beat = {*node.server.request(), others};
        passes = serves = true;
    }
    if (passes && !serves) node.counters[kNetworkLocalRequests] += own_beat.beat.last;
    if (served && node.takes_response()) [[unlikely]] own_took |= uint64_t{1} << others;

    const Passage passage = memory();
    if (m_joined) network();
    if (idle) [[likely]] {
        ++m_node_rests;
    } else {
        node.edge(leaves ? &remote_beat : nullptr, remote_took, serves);
        m_node_idle = node.idle();
    }
    // Take a word early if the next cycle would do nothing else with it.
    const ResponseBeat* answer = passage.answer;
    if (answer && m_node_idle && m_crossbar.empties(answer->source, own_took) &&
        absorb(*answer, m_cycle + 1)) {
        if (!answer->last && !m_axi && !m_lines && m_router.idle()) absorb_rest(answer->source);
        answer = nullptr;
    } else if (answer && !answer->last && m_node_idle && !m_axi && !m_lines && m_router.idle() &&
               absorb_early(*answer, own_took)) {
        answer = nullptr;
    }
    ++m_cycle;
    // Pass on a beat that the memory is certain to accept in the next cycle.
    if (passes && m_memory && !m_lines && !m_crossbar.request() && m_memory->accepts(own_beat.beat)) {
        m_crossbar.grant(own_beat);
        m_memory->put(m_cycle, own_beat);
        if (answer || own_took) m_crossbar.respond(answer, own_took);
    } else if (passes || passage.took || answer || own_took) {
        m_crossbar.edge(passes ? &own_beat : nullptr, passage.took, answer, own_took);
    }
    if (ended) [[unlikely]] report_states();
    m_next = next();
}

void ChipTile::node_rests() {
    if (m_node_rests) node.rest(m_node_rests), m_node_rests = 0;
}

void ChipTile::turn(uint32_t slot, uint64_t since, uint64_t rest) {
    const uint32_t bit = 1U << slot;
    const uint64_t wake = since + std::min(rest, kEver);
    m_turns[slot] = {since, wake};
    if (rest) {
        m_awake &= ~bit;
        m_wake = std::min(m_wake, wake);
    } else {
        m_awake |= bit;
    }
}

void ChipTile::find_awake() {
    m_wake = kEver;
    for (uint32_t left = m_running & ~m_awake; left; left &= left - 1) {
        const uint32_t slot = std::countr_zero(left);
        if (m_turns[slot].wake > m_cycle) {
            m_wake = std::min(m_wake, m_turns[slot].wake);
        } else if (PeModel& engine = caught_up(slot); engine.rests_on()) {
            turn(slot, m_cycle, engine.rest());
        } else {
            m_awake |= 1U << slot;
        }
    }
}

PeModel& ChipTile::caught_up(uint32_t slot) {
    Turn& turn = m_turns[slot];
    if (turn.since < m_cycle) engines[slot]->pass(m_cycle - turn.since);
    turn.since = m_cycle;
    return *engines[slot];
}

void ChipTile::launch(uint32_t slot, std::unique_ptr<PeModel> engine) {
    engines[slot] = std::move(engine);
    m_next = m_cycle;
    engines[slot]->launch();
    turn(slot, m_cycle, 0);
    offer(slot);
    m_running |= 1U << slot;
    report_states();
}

void ChipTile::stop(uint32_t slot) {
    caught_up(slot).stop();
    turn(slot, m_cycle, 0);
    m_next = m_cycle;
}

EngineResult ChipTile::result(uint32_t slot) {
    if (!engines[slot]) return {};
    return running() >> slot & 1 ? caught_up(slot).result() : engines[slot]->result();
}

void ChipTile::connect(const std::vector<std::unique_ptr<ChipTile>>& tiles) {
    const uint8_t* const neighbours = m_sizes.neighbours + m_number * m_sizes.ports;
    for (uint32_t port = 0; port < m_sizes.ports; ++port) {
        if (port == m_sizes.local) continue;
        ChipTile& other = *tiles[neighbours[port]];
        const uint32_t there = m_sizes.opposites[port];
        m_from[m_neighbours] = port;
        m_incoming[m_neighbours++].connect(other.m_reported, other.m_links[there], there);
    }
}

void ChipTile::find_arrival() {
    m_arrival = kEver;
    for (uint32_t number = 0; number < m_neighbours; ++number)
        m_arrival = std::min(m_arrival, m_incoming[number].next());
}

void ChipTile::look() {
    m_known = kEver;
    for (uint32_t number = 0; number < m_neighbours; ++number)
        m_known = std::min(m_known, m_incoming[number].look());
    find_arrival();
}

// A request without waiting passes the crossbar, the link to the router, its buffer and its output.
uint64_t ChipTile::leaves() const {
    const uint64_t now = time();
    if (!m_node_idle) [[unlikely]] {
        if (node.to_router().valid) return now + 2;
        if (node.sends()) return now + 3;
    }
    if (m_crossbar.response(engines.size() + 1)) [[unlikely]] return now + 4;
    if (m_remote) return now + 4;
    return std::max(now, m_next) + 5;
}

void ChipTile::promise() {
    const uint64_t now = time();
    // A flit that arrives needs one cycle in a buffer and one in an output.
    uint64_t passes = std::min(m_arrival, m_known) + 2;
    // Behind a waiting flit there may be another one, for any port.
    if (m_router.waits()) [[unlikely]] passes = std::min(passes, now + 2);
    const uint64_t later = std::min({passes, leaves(), now + kMostPromised});
    m_reported.promise.store(Reported::promised(now, m_router.held(), later - now),
                             std::memory_order_release);
}

void ChipTile::forget() {
    m_reported.promise.store(Reported::promised(time(), Reported::kAllHeld, 0),
                             std::memory_order_release);
}

void ChipTile::network() {
    const auto ports = static_cast<uint32_t>(m_sizes.ports);
    const LinkEnd& own = node.to_router();
    const uint32_t now = m_cycle % 2;
    if (m_carries[now]) [[unlikely]] {
        for (uint32_t port = 0; port < ports; ++port)
            node.counters[m_sizes.flit_counters[port]] += m_ends[now][port].valid;
        m_carries[now] = false;
    }
    const bool arrives = m_arrival == m_cycle;
    if (m_router.idle() && !arrives && !own.valid && !own.credit) [[likely]] return;
    const LinkEnd* in[kPorts] = {};
    in[m_sizes.local] = &own;
    for (uint32_t number = 0; number < m_neighbours; ++number) {
        const bool carries = m_incoming[number].next() == m_cycle;
        in[m_from[number]] = carries ? &m_incoming[number].take() : &kNoLink;
    }
    LinkEnd* const out = m_ends[1 - now];
    m_router.cycle(in, out);
    if (arrives) find_arrival();
    m_carries[1 - now] = !m_router.quiet();
    if (!m_carries[1 - now]) return;
    uint64_t entries = m_reported.entries.load(std::memory_order_relaxed);
    for (uint32_t port = 0; port < ports; ++port) {
        if (port == m_sizes.local || (!out[port].valid && !out[port].credit)) continue;
        // Promises are kept.
        assert(Reported::known(m_reported.promise.load(std::memory_order_relaxed), port) <=
               m_cycle + 1);
        const auto number = static_cast<uint8_t>(entries >> 8 * port);
        m_links[port][number] = {m_cycle + 1, out[port]};
        entries += (uint64_t{static_cast<uint8_t>(number + 1)} - number) << 8 * port;
    }
    m_reported.entries.store(entries, std::memory_order_release);
}

}  // namespace vip::timed
