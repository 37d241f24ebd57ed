// Timing models of memory/fifo.py and hdl/stream_buffer.py.
#pragma once

#include <cstdint>
#include <vector>

namespace vip::timed {

// Cycles, longer than any run.
constexpr uint64_t kEver = uint64_t{1} << 62;

// A queue in an SRAM: what enters the empty queue is at the output two cycles later.
template <typename T>
class Fifo {
  public:
    explicit Fifo(uint64_t depth) : m_depth(static_cast<uint32_t>(depth)), m_words(depth + 1) {}

    bool ready() const { return m_level != m_depth; }
    bool valid() const { return m_valid; }
    bool holds() const { return m_level; }
    // Also when it is not valid: the last one, whose place is the last to be used again.
    const T& front() const { return m_words[m_front]; }
    // Where to put what enters.
    T& entry() { return m_words[m_next]; }

    // To the next cycle: whether what is at `entry` enters if there is room, and whether the output
    // is taken.
    void edge(bool enters, bool taken) {
        if (!enters && (m_valid ? !taken : !m_stored)) return;
        const bool push = enters && ready(), pop = m_valid && taken;
        const bool fetch = m_stored && (!m_valid || taken);
        if (fetch) {
            m_front = m_first;
            m_first = after(m_first);
            m_valid = true;
        } else if (taken) {
            m_valid = false;
        }
        if (push) m_next = after(m_next);
        m_level += push, m_level -= pop;
        m_stored += push, m_stored -= fetch;
    }
    void edge(const T* word, bool taken) {
        if (word && ready()) entry() = *word;
        edge(word != nullptr, taken);
    }

  private:
    uint32_t m_depth, m_front = 0, m_first = 0, m_next = 0, m_level = 0, m_stored = 0;
    bool m_valid = false;
    std::vector<T> m_words;

    uint32_t after(uint32_t place) const { return place == m_depth ? 0 : place + 1; }
};

// A queue in registers: what enters the empty queue is at the output in the next cycle.
template <typename T, unsigned kDepth>
class StreamBuffer {
  public:
    bool ready() const { return m_level != kDepth; }
    bool valid() const { return m_level != 0; }
    const T& front() const { return m_words[m_first]; }
    unsigned level() const { return m_level; }

    void edge(const T* word, bool taken) {
        const bool push = word && ready(), pop = valid() && taken;
        if (push) m_words[(m_first + m_level) % kDepth] = *word;
        if (pop) m_first = (m_first + 1) % kDepth;
        m_level += push, m_level -= pop;
    }

  private:
    T m_words[kDepth] = {};
    unsigned m_first = 0, m_level = 0;
};

}  // namespace vip::timed
