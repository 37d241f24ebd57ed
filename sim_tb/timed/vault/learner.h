// Timing model of what an agent adds to a vault's scheduler: the state that it sees, and its order of
// the classes of commands (memory/controller/learned.py, snapshot.py).
#pragma once

#include <bit>
#include <cstdint>

#include "agent.h"
#include "banks.h"

namespace vip::timed {

class Learner {
  public:
    // What the scheduler knows in a cycle. `bursts`: in this direction; `patience`: for how many
    // cycles the oldest request of the transaction queue has been that; `queue`: requests in it.
    struct View {
        uint64_t same;
        uint32_t bursts, patience, queue;
        bool writing;
    };

    explicit Learner(const VaultSizes& sizes) : m_agent(sizes.agent) {}

    // Banks from which the command comes: the first class that is not empty.
    uint64_t candidates(const Banks& banks, uint64_t same) const {
        const uint64_t allowed = m_held ? 0 : ~uint64_t{0};
        const uint64_t present = m_switch ? 0 : banks.column & same & allowed;
        const uint64_t others = banks.column & ~same & allowed;
        const uint64_t first = banks.row & (m_rows ? ~uint64_t{0} : banks.urgent);
        const uint64_t second = m_others ? others : present, third = m_others ? present : others;
        return first ? first : second ? second : third ? third : banks.row & allowed;
    }

    // Advances to the next cycle; `issued`: the bank whose command is issued, or -1.
    void edge(const Banks& banks, const View& view, int issued) {
        const bool free = !m_late;
        const uint64_t others = banks.ready() & ~view.same;
        m_switch = view.bursts >= kGroupBursts && others;
        const uint32_t action = m_agent.action();
        m_others = action == 1 && free;
        m_rows = action == 2 && free && !(banks.row & banks.urgent);
        m_held = action == 3 && free && (m_agent.begins() || m_burst);
        if (m_agent.begins()) {
            m_burst = kBurstClocks - 1;
        } else if (m_burst) {
            --m_burst;
        }
        m_agent.edge(m_values, m_served != 0);
        look(banks, view);
        sweep(banks.waiting);
        m_served = issued < 0 ? 0 : banks.column & (uint64_t{1} << issued);
    }

  private:
    Agent m_agent;
    uint32_t m_values[kFeatureValues] = {};
    bool m_switch = false, m_others = false, m_rows = false, m_held = false;
    bool m_late = false;
    uint32_t m_burst = 0, m_age = 0;
    uint64_t m_marked = 0, m_served = 0;

    void look(const Banks& banks, const View& view) {
        const auto count = [](uint64_t set) { return static_cast<uint32_t>(std::popcount(set)); };
        m_values[kFeatureReads] = count(banks.waiting & ~banks.writes());
        m_values[kFeatureWrites] = count(banks.waiting & banks.writes());
        m_values[kFeatureHits] = count(banks.hit & view.same);
        m_values[kFeatureOtherHits] = count(banks.hit & ~view.same);
        m_values[kFeatureRows] = count(banks.row);
        m_values[kFeatureRun] = view.bursts;
        m_values[kFeaturePatience] = view.patience;
        m_values[kFeatureDirection] = view.writing;
        m_values[kFeatureQueue] = view.queue;
        m_values[kFeatureWaiting] = count(banks.waiting);
        m_values[kFeatureSweep] = m_age;
    }

    void sweep(uint64_t waiting) {
        m_late = m_marked && m_age == kSweepCycles;
        if (!m_marked) {
            m_marked = waiting, m_age = 0;
            return;
        }
        m_marked &= ~m_served;
        if (m_age != kSweepCycles) ++m_age;
    }
};

}  // namespace vip::timed
