// Timing model of the control bus: the host's port and the tiles' ends (soc/host/control.py,
// soc/tile/control.py). The register map defines messages and registers.
#pragma once

#include <cstdint>
#include <vector>

#include "../vault/fifo.h"
#include "control.inc"
#include "tile.h"
#include "vip_chip.h"

namespace vip::timed {

// A message of the control bus (soc/chip/control_bus.py).
struct Message {
    bool write, addressed;
    uint32_t space, index, reg, data, response;
};

// The host's control port: AXI4-Lite to messages.
class HostPort {
  public:
    explicit HostPort(const RegisterMap& map) : m_map(map) {}

    // What the host sees in this cycle.
    void drive(VipChipIn& in) const;
    const StreamBuffer<Message, 2>& outgoing() const { return m_outgoing; }
    // Whether a cycle without host accesses changes nothing except interrupts.
    bool idle() const;
    // Advances to the next cycle: whether the first tile accepts a message; the message from the last
    // tile, or null; that tile's summary.
    void edge(const VipChipOut& out, bool taken, const Message* arrived, const Summary& last);
    // Called after `edge`, or instead of it in a cycle without accesses.
    void interrupts(const Summary& last);

  private:
    struct Word {
        uint32_t data, strobe;
    };
    struct Answer {
        uint32_t data, response;
    };

    const RegisterMap& m_map;
    StreamBuffer<uint32_t, 2> m_aw, m_ar;
    StreamBuffer<Word, 2> m_w;
    StreamBuffer<Message, 2> m_outgoing;
    StreamBuffer<uint32_t, kWritesInFlight> m_b;
    StreamBuffer<Answer, kReadsInFlight> m_r;
    uint32_t m_above = 0, m_reads = 0, m_writes = 0;
    bool m_decode_valid = false, m_write = false, m_all_bytes = false;
    uint32_t m_address = 0, m_data = 0;
    bool m_was_running = false;
    uint32_t m_pending = 0, m_enabled = 0, m_clear = 0;

    Message message(const Summary& last);
};

// An order to an engine: to stop, or to start a program of `words`.
struct Order {
    uint32_t engine;
    bool stops;
    uint32_t words;
};

// The end of the control bus at a tile.
class TileControl {
  public:
    TileControl(const RegisterMap& map, ChipTile& tile, uint32_t vault, uint32_t first_pe,
                uint32_t instruction_words);

    const StreamBuffer<Message, 2>& output() const { return m_buffer; }
    bool ready() const { return m_buffer.ready() && !m_busy; }
    bool idle() const { return !m_busy && !m_buffer.valid(); }
    // Advances to the next cycle: the message that it takes, or null; whether its own is accepted.
    // Appends orders to engines to `orders`.
    void edge(const Message* taken, bool sent, std::vector<Order>& orders);

    // By slot: the program as loaded, and the address of its parameter block.
    std::vector<std::vector<uint32_t>> programs;
    std::vector<uint64_t> parameters;

  private:
    const RegisterMap& m_map;
    ChipTile& m_tile;
    const uint32_t m_vault, m_first_pe;
    StreamBuffer<Message, 2> m_buffer;
    uint32_t m_selected = ~uint32_t{0};
    bool m_busy = false;
    Message m_captured = {};
    uint32_t m_step = 0, m_read_data = 0, m_high = 0;

    uint32_t slots() const { return static_cast<uint32_t>(m_tile.engines.size()); }
    uint32_t state(uint32_t slot) const;
    uint32_t in_state(uint32_t wanted) const;
    uint32_t addressed(const Message& message) const;
    bool perform(const Message& message, std::vector<Order>& orders);
    uint32_t bitmap() const;
    uint32_t read();
    uint32_t low(uint64_t value);
};

}  // namespace vip::timed
