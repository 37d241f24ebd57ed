// What a tile knows of its neighbours, and what it reports to them; a cycle of its router.
#include <algorithm>
#include <cassert>

#include "tile.h"

namespace vip::timed {

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

// From a request's cycle, with no wait: crossbar, link to the router, its buffer, its output.
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
    // What arrives needs a cycle in a buffer and one in an output.
    uint64_t passes = std::min(m_arrival, m_known) + 2;
    // Behind a flit that waits is another one, for any port.
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
        // What is promised is kept.
        assert(Reported::known(m_reported.promise.load(std::memory_order_relaxed), port) <=
               m_cycle + 1);
        const auto number = static_cast<uint8_t>(entries >> 8 * port);
        m_links[port][number] = {m_cycle + 1, out[port]};
        entries += (uint64_t{static_cast<uint8_t>(number + 1)} - number) << 8 * port;
    }
    m_reported.entries.store(entries, std::memory_order_release);
}

}  // namespace vip::timed
