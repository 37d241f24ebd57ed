// Timing models of memory/fifo.py, hdl/stream_buffer.py and memory/controller/timer.py.
#pragma once

#include <cstdint>
#include <vector>

namespace vip::timed {

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
        const bool push = word && ready(), pop = m_valid && taken;
        const bool fetch = m_stored && (!m_valid || taken);
        if (fetch) {
            m_front = m_words[m_first];
            m_first = (m_first + 1) % m_words.size();
            m_valid = true;
        } else if (taken) {
            m_valid = false;
        }
        if (push) {
            m_words[m_next] = *word;
            m_next = (m_next + 1) % m_words.size();
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

// Cycles until a command is allowed.
class CountDown {
  public:
    bool done() const { return m_next == 0; }
    // Of the waits of a cycle, which come before its edge, the last counts.
    void wait(uint32_t clocks) {
        if (clocks >= 2 && m_next <= clocks) m_wait = clocks - 1;
    }
    void edge() {
        m_next = m_wait ? m_wait : m_next ? m_next - 1 : 0;
        m_wait = 0;
    }

  private:
    uint32_t m_next = 0, m_wait = 0;
};

}  // namespace vip::timed
