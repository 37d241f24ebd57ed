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
    explicit Fifo(uint64_t depth) : m_words(depth) {}

    bool ready() const { return m_level != m_words.size(); }
    bool valid() const { return m_valid; }
    bool holds() const { return m_level; }
    // Also when it is not valid: the last one.
    const T& front() const { return m_front; }

    // To the next cycle: what enters if there is room, or null, and whether the output is taken.
    void edge(const T* word, bool taken) {
        if (!word && (m_valid ? !taken : !m_stored)) return;
        const bool push = word && ready(), pop = m_valid && taken;
        const bool fetch = m_stored && (!m_valid || taken);
        if (fetch) {
            m_front = m_words[m_first];
            if (++m_first == m_words.size()) m_first = 0;
            m_valid = true;
        } else if (taken) {
            m_valid = false;
        }
        if (push) {
            m_words[m_next] = *word;
            if (++m_next == m_words.size()) m_next = 0;
        }
        m_level += push, m_level -= pop;
        m_stored += push, m_stored -= fetch;
    }

  private:
    std::vector<T> m_words;
    uint64_t m_first = 0, m_next = 0, m_level = 0, m_stored = 0;
    bool m_valid = false;
    T m_front = {};
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
