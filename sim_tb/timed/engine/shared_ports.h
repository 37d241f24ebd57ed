// Ports of a scratchpad whose accesses share them (pe/scratchpad_shared.py), and the vector unit's
// beats, which wait for them (pe/vector/control.py).
#pragma once

#include <cstdint>

#include "timed.inc"

namespace vip::timed {

// A vector instruction as it steps through its beats.
struct Stepping {
    uint64_t result, first, second;  // addresses
    uint64_t row_bytes, rows;
    uint64_t passes;
    uint32_t width;
    bool matrix, scalar, unary;
};

class SharedPorts {
  public:
    // From the last beat of an element to the cycle in which its result asks for a port.
    explicit SharedPorts(uint64_t result_cycles) : m_result_cycles(result_cycles) {}

    // Parities of rows, as bits, in which an access has bytes.
    static uint32_t parities(uint64_t address, uint64_t bytes) {
        return 1U << (address / kWordBytes % 2) | 1U << ((address + bytes - 1) / kWordBytes % 2);
    }

    bool running() const { return m_running; }
    bool waits() const { return m_waits; }

    // What goes in this cycle, valid after `look`.
    bool beat = false, load_ready = false, store_ready = false;

    // Decides that. `load` and `store` are the parities that ask; with none, either is ready.
    void look(uint32_t load, uint32_t store) {
        const bool reads = m_running && !m_pass;
        const uint32_t first = reads ? parities(m_now.first + m_row_at + m_at, kWordBytes) : 0;
        const bool both = reads && !m_now.unary && (!m_now.scalar || !m_at);
        const uint32_t second = both ? parities(m_now.second + m_at, kWordBytes) : 0;
        const uint32_t fresh = m_due[m_time % kDue], result = m_late ? m_late : fresh;
        const bool urgent_load = m_load_cycles == kPatience;
        const bool urgent_store = m_store_cycles == kPatience;
        const bool crowded = result & (first | store);
        const bool at_1 = crowded && !urgent_load && !(result & second);
        const uint32_t claim = urgent_load || (m_late & second) ? m_late : 0;
        m_result_waits = m_late || (crowded && !at_1) ? fresh : 0;
        beat = m_running && !(first & (claim | (urgent_store ? store : 0))) &&
               !(urgent_load && second);
        store_ready = !(store & (claim | (urgent_store ? 0 : first)));
        load_ready = urgent_load || !(load & (second | (at_1 ? result : 0)));
        m_load_cycles = load_ready ? 0 : m_load_cycles + 1;
        m_store_cycles = store_ready ? 0 : m_store_cycles + !urgent_store;
    }

    // Advances to the next cycle, with the instruction handed over in this one, or null.
    void edge(const Stepping* next) {
        m_due[m_time % kDue] = 0;
        m_late = m_result_waits;
        const bool ends = beat && step();
        ++m_time;
        if (m_running && !ends) {
            if (next) m_waiting = *next, m_waits = true;
            return;
        }
        m_running = m_waits || next;
        if (m_waits) {
            m_now = m_waiting;
        } else if (next) {
            m_now = *next;
        }
        m_waits = false;
        m_row_at = m_at = m_pass = 0;
    }

  private:
    static constexpr uint64_t kDue = 16;  // more than any number of cycles to a result

    const uint64_t m_result_cycles;
    bool m_running = false, m_waits = false;
    Stepping m_now = {}, m_waiting = {};
    uint64_t m_row_at = 0, m_at = 0, m_pass = 0;  // bytes before the row, and in it; pass of the word
    uint32_t m_due[kDue] = {};  // results by the cycle in which they ask
    uint64_t m_time = 0;
    uint32_t m_late = 0, m_result_waits = 0;  // rows of the result that waits, in this cycle and next
    uint32_t m_load_cycles = 0, m_store_cycles = 0;

    // Does a beat; returns whether it was the instruction's last.
    bool step() {
        if (++m_pass < m_now.passes) return false;
        m_pass = 0;
        const uint64_t left = m_now.row_bytes - m_at;
        const bool row_ends = left <= kWordBytes;
        if (!m_now.matrix) {
            write(m_now.result + m_at, row_ends ? left : kWordBytes);
        } else if (row_ends) {
            write(m_now.result, uint64_t{1} << m_now.width);
            m_now.result += uint64_t{1} << m_now.width;
        }
        m_at += kWordBytes;
        if (!row_ends) return false;
        m_at = 0;
        m_row_at += m_now.row_bytes;
        return !--m_now.rows;
    }
    void write(uint64_t address, uint64_t bytes) {
        m_due[(m_time + m_result_cycles) % kDue] = parities(address, bytes);
    }
};

}  // namespace vip::timed
