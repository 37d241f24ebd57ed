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

bool Arc::free(uint64_t time) {
    const uint64_t before = m_taken;
    for (; next() <= time; ++m_first) {
        const uint32_t number = m_leaving[m_first % kMostLeaving].entry;
        Entry& entry = m_entries[number];
        if (!entry.grows || !--entry.columns) m_taken &= ~(uint64_t{1} << number);
    }
    // Reuse the same slots.
    if (m_first == m_end) m_first = m_end = 0;
    return m_taken != before;
}

}  // namespace vip::timed
