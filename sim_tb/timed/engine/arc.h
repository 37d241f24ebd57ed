// Timing model of the array range check (pe/frontend/arc.py).
#pragma once

#include <bit>
#include <cstdint>

namespace vip::timed {

struct Range {
    bool used, writes;
    uint32_t start, end;  // in units of kRangeBytes
};

class Arc {
  public:
    // Later than any cycle.
    static constexpr uint64_t kNever = ~uint64_t{0};

    explicit Arc(uint64_t entries) : m_all(~uint64_t{0} >> (64 - entries)) {}

    bool conflict(const Range (&ranges)[3]) const;
    bool full() const { return m_taken == m_all; }
    // The first free entry; the number of entries if none is free.
    uint32_t free_entry() const { return static_cast<uint32_t>(std::countr_one(m_taken)); }

    // Adds a transfer of this many columns; if it `grows`, it may get more of them later.
    void enter(uint32_t entry, const Range& range, uint32_t columns, bool store, bool grows) {
        m_entries[entry] = Entry{range.start, range.end, columns, store, grows};
        m_taken |= uint64_t{1} << entry;
    }
    // An entry's load waits for one more column.
    void grow(uint32_t entry) { ++m_entries[entry].columns; }
    // A column of an entry's load arrives, or a store has read its source. Returns whether the entry
    // may become free after cycle `time`, which never decreases from call to call.
    bool complete(uint32_t entry, uint64_t time) {
        Entry& found = m_entries[entry];
        if (!found.grows && --found.columns) return false;
        m_leaving[m_end++ % kMostLeaving] = {time, entry};
        return true;
    }
    // The next cycle after which an entry may become free.
    uint64_t next() const {
        return m_first == m_end ? kNever : m_leaving[m_first % kMostLeaving].time;
    }
    // Advances to the end of cycle `time`. Returns whether an entry has become free.
    bool leave(uint64_t time) {
        if (next() > time) return false;
        return free(time);
    }

  private:
    struct Entry {
        uint32_t start = 0, end = 0, columns = 0;
        bool store = false, grows = false;
    };
    struct Leaving {
        uint64_t time;
        uint32_t entry;
    };
    // Enough for each entry once, plus an entry that grows, with a column in each of two cycles.
    static constexpr uint32_t kMostLeaving = 128;

    uint64_t m_all, m_taken = 0;
    uint32_t m_first = 0, m_end = 0;  // of m_leaving
    Entry m_entries[64];
    Leaving m_leaving[kMostLeaving];

    bool free(uint64_t time);
};

inline bool Arc::conflict(const Range (&ranges)[3]) const {
    bool found = false;
    for (uint64_t left = m_taken; left; left &= left - 1) {
        const Entry& entry = m_entries[std::countr_zero(left)];
        for (const Range& range : ranges)
            found |= range.used & (range.writes | !entry.store) & (range.start < entry.end) &
                     (entry.start < range.end);
    }
    return found;
}

inline bool Arc::free(uint64_t time) {
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
