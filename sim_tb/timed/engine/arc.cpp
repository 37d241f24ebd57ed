#include "arc.h"

namespace vip::timed {

bool Arc::conflict(const Range (&ranges)[3]) const {
    bool found = false;
    for (uint64_t left = m_taken; left; left &= left - 1) {
        const Entry& entry = m_entries[std::countr_zero(left)];
        for (const Range& range : ranges)
            found |= range.used & (range.writes | !entry.store) & (range.start < entry.end) &
                     (entry.start < range.end);
    }
    return found;
}

void Arc::leave(uint32_t entry) {
    if (entry != kNobody && !--m_entries[entry].columns) m_taken &= ~(uint64_t{1} << entry);
}

bool Arc::change(uint32_t arrived, uint32_t released, uint32_t grown, uint32_t entry,
                 const Range& range, uint32_t columns, bool store) {
    const uint64_t before = m_taken;
    if (grown != kNobody) ++m_entries[grown].columns;
    leave(m_arrived);
    leave(m_released);
    m_arrived = arrived;
    m_released = released;
    if (columns) {
        m_entries[entry] = Entry{range.start, range.end, columns, store};
        m_taken |= uint64_t{1} << entry;
    }
    return m_taken != before;
}

}  // namespace vip::timed
