#include "memory.h"

#include <cassert>

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

}  // namespace vip::timed
