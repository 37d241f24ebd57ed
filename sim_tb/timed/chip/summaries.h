// The state of the engines, which passes from tile to tile to the host (soc/tile/control.py) through a
// register in each tile. Instead of simulating these, tiles report each change for the cycle in which
// the host sees it.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <vector>

namespace vip::timed {

// The state of the engines of all tiles, as the host sees it in a cycle.
struct Summary {
    bool running, faulted, fault;
};

class Summaries {
  public:
    // A tile is at most `ahead` cycles ahead of the host.
    Summaries(uint32_t vaults, uint32_t ahead)
        : m_vaults(vaults), m_changes(std::bit_ceil(vaults + ahead + 2)) {}

    // Cycles that the state of a tile's engines takes to the host.
    uint32_t way(uint32_t vault) const { return m_vaults - vault; }
    // From `cycle` on, the numbers of tiles with running and with faulted engines change by `running`
    // and `faulted`; `fault`: an engine has faulted.
    void change(uint32_t vault, uint64_t cycle, int32_t running, int32_t faulted, bool fault) {
        Change& change = at(cycle + way(vault));
        change.running.fetch_add(running, std::memory_order_relaxed);
        change.faulted.fetch_add(faulted, std::memory_order_relaxed);
        if (fault) change.fault.store(true, std::memory_order_relaxed);
    }
    // What the host sees in `cycle`; must be called for each cycle in turn.
    Summary seen(uint64_t cycle) {
        Change& change = at(cycle);
        const int32_t running = change.running.load(std::memory_order_relaxed);
        const int32_t faulted = change.faulted.load(std::memory_order_relaxed);
        const bool fault = change.fault.load(std::memory_order_relaxed);
        if (running) change.running.store(0, std::memory_order_relaxed);
        if (faulted) change.faulted.store(0, std::memory_order_relaxed);
        if (fault) change.fault.store(false, std::memory_order_relaxed);
        m_running += running;
        m_faulted += faulted;
        return {m_running > 0, m_faulted > 0, fault};
    }

  private:
    struct Change {
        std::atomic<int32_t> running{0}, faulted{0};
        std::atomic<bool> fault{false};
    };

    const uint32_t m_vaults;
    std::vector<Change> m_changes;  // by cycle of the host, modulo their number
    int32_t m_running = 0, m_faulted = 0;

    Change& at(uint64_t cycle) { return m_changes[cycle % m_changes.size()]; }
};

}  // namespace vip::timed
