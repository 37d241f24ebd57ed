// Timing model of the array range check (pe/frontend/arc.py).
#pragma once

#include <bit>
#include <cstdint>

namespace vip::timed {

struct Range {
    bool used, writes;
    uint32_t start, end;  // in units of kRangeBytes
};

constexpr uint32_t kNobody = ~uint32_t{0};

class Arc {
  public:
    explicit Arc(uint64_t entries) : m_all(~uint64_t{0} >> (64 - entries)) {}

    bool conflict(const Range (&ranges)[3]) const;
    // Whether no transfer leaves it at the next edge.
    bool settled() const { return m_arrived == kNobody && m_released == kNobody; }
    bool full() const { return m_taken == m_all; }
    // The first one; not one of them if there is none.
    uint32_t free_entry() const { return static_cast<uint32_t>(std::countr_one(m_taken)); }

    // To the next cycle, in which a column of an entry's load has arrived, a store has read its
    // source, or an entry's load waits for a column more (kNobody: none), and in which a transfer is known, if `columns` is not 0. Returns
    // whether an entry has become free or taken.
    bool edge(uint32_t arrived, uint32_t released, uint32_t grown, uint32_t entry,
              const Range& range, uint32_t columns, bool store) {
        // kNobody has all bits.
        if ((arrived & released & grown & m_arrived & m_released) == kNobody && !columns)
            return false;
        return change(arrived, released, grown, entry, range, columns, store);
    }

  private:
    struct Entry {
        uint32_t start = 0, end = 0, columns = 0;
        bool store = false;
    };
    uint64_t m_all, m_taken = 0;
    uint32_t m_arrived = kNobody, m_released = kNobody;
    Entry m_entries[64];

    bool change(uint32_t arrived, uint32_t released, uint32_t grown, uint32_t entry,
                const Range& range, uint32_t columns, bool store);
    void leave(uint32_t entry);
};

}  // namespace vip::timed
