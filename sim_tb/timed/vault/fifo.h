// Timing models of memory/fifo.py and hdl/stream_buffer.py.
#pragma once

#include <cstdint>
#include <vector>

namespace vip::timed {

// More cycles than any run has.
constexpr uint64_t kEver = uint64_t{1} << 62;

// A queue in an SRAM: what enters an empty queue is at the output two cycles later. Cycles in which
// nothing enters or leaves cost nothing: the output follows from `now`.
template <typename T>
class SramQueue {
  public:
    explicit SramQueue(uint64_t depth)
        : m_depth(static_cast<uint32_t>(depth)), m_words(depth + 1) {}

    bool ready() const { return m_level != m_depth; }
    bool valid(uint64_t now) const { return m_valid_from <= now; }
    bool holds() const { return m_level; }
    // From which cycle the output is valid if nothing leaves; kEver if empty.
    uint64_t valid_from() const { return m_valid_from; }
    T& front() { return m_words[m_front]; }
    const T& front() const { return m_words[m_front]; }
    const T& at(uint32_t number) const {
        const uint32_t place = m_front + number;
        return m_words[place > m_depth ? place - m_depth - 1 : place];
    }
    // What left last; its place is the last to be reused.
    const T& last() const { return m_words[m_front ? m_front - 1 : m_depth]; }

    // Removes the output. Within a cycle this comes before `enter`.
    void leave(uint64_t now) {
        m_front = after(m_front);
        m_valid_from = --m_level ? now + 1 : kEver;
    }
    // Adds an element, for which there was room before. Returns where to put it.
    T& enter(uint64_t now) {
        if (!m_level++) m_valid_from = now + 2;
        T& place = m_words[m_next];
        m_next = after(m_next);
        return place;
    }

  private:
    uint64_t m_valid_from = kEver;
    uint32_t m_depth, m_front = 0, m_next = 0, m_level = 0;
    std::vector<T> m_words;

    uint32_t after(uint32_t place) const { return place == m_depth ? 0 : place + 1; }
};

// The same for users that simulate every cycle.
template <typename T>
class Fifo {
  public:
    explicit Fifo(uint64_t depth) : m_queue(depth) {}

    bool ready() const { return m_queue.ready(); }
    bool valid() const { return m_queue.valid(m_now); }
    bool holds() const { return m_queue.holds(); }
    const T& front() const { return valid() ? m_queue.front() : m_queue.last(); }

    // Advances to the next cycle: what enters if there is room, or null; whether the output is taken.
    void edge(const T* word, bool taken) {
        const bool enters = word && ready();
        if (taken && valid()) m_queue.leave(m_now);
        if (enters) m_queue.enter(m_now) = *word;
        ++m_now;
    }

  private:
    SramQueue<T> m_queue;
    uint64_t m_now = 0;
};

// A queue in registers: what enters an empty queue is at the output in the next cycle.
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
