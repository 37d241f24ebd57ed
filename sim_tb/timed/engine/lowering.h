// Timing model of workspaces in the load-store unit (pe/lsu/lowering.py, declaration.py).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "../../../isa/compiled/engine.h"
#include "timed.inc"

namespace vip::timed {

// A load or store from dispatch, or a piece of a load from the window.
struct Command {
    bool store, is_register;
    uint8_t width;
    uint64_t dram;
    uint32_t columns, last;
    uint32_t scratchpad;  // where byte 0 of the first word goes, wanted or not; wraps
    uint32_t entry, index;
    bool lowered, final, recorded;  // recorded: by the load history
    uint64_t bytes;
};

// Cuts loads from the window.
class Lowering {
  public:
    bool rest() const { return m_state == State::kRest; }
    void declare(const Workspace& workspace) {
        m_workspace = workspace;
        m_follows = false;
    }

    // Works out what it offers in this cycle: a piece for the request side, or zeros for the
    // scratchpad. `settled`: everything before has been requested.
    void look(bool settled) {
        piece = fill = false;
        if (m_state != State::kSend) return;
        m_settled = settled;
        const uint64_t room = m_zeros ? std::min<uint64_t>(kWordBytes, m_span) : m_span;
        part = std::min(room, m_now.bytes);
        final = part == m_now.bytes;
        piece = !m_zeros;
        fill = m_zeros && (settled || (m_stores_done && !final));
    }
    bool piece = false, fill = false, final = false;
    uint64_t part = 0;
    uint32_t entry() const { return m_now.entry; }
    uint32_t scratchpad() const { return m_now.scratchpad; }

    Command command() const {
        Command found = m_now;
        found.dram = m_base + m_offset;
        const uint64_t place = found.dram % kColumnBytes;
        found.columns = static_cast<uint32_t>((place + part + kColumnBytes - 1) / kColumnBytes);
        found.last = static_cast<uint32_t>((place + part - 1) % kColumnBytes);
        found.scratchpad = static_cast<uint32_t>(m_now.scratchpad - found.dram % kWordBytes);
        found.final = final;
        return found;
    }

    // Advances to the next cycle. `load`: a new load from the window, or null. `taken`: whether the
    // offer was accepted.
    void edge(const Command* load, bool taken) {
        switch (m_state) {
            case State::kRest:
                if (load) begin(*load);
                break;
            case State::kDivide:
                if (!--m_cycles) m_state = State::kPlan;
                break;
            case State::kPlan:
                plan();
                m_state = State::kSend;
                break;
            case State::kSend:
                if (m_settled) m_stores_done = true;
                if (taken) advance();
                break;
        }
    }

  private:
    enum class State { kRest, kDivide, kPlan, kSend };

    State m_state = State::kRest;
    Workspace m_workspace = {};
    bool m_follows = false, m_settled = false, m_stores_done = false;
    uint64_t m_following = 0, m_cycles = 0;
    Command m_now = {};
    // As in _Place; addresses modulo 2**64.
    uint64_t m_byte = 0, m_column = 0, m_kernel_row = 0, m_line = 0, m_base = 0;
    int64_t m_left = 0, m_top = 0;
    bool m_zeros = false;
    uint64_t m_span = 0, m_offset = 0;

    uint64_t run() const { return uint64_t{m_workspace.kernel} * m_workspace.pixel_bytes; }
    uint64_t pitch() const { return uint64_t{m_workspace.width} * m_workspace.pixel_bytes; }
    int64_t margin() const { return int64_t{m_workspace.padding} * m_workspace.pixel_bytes; }

    // Divides, with the remainder in `rest`; returns the number of cycles.
    static uint64_t divide(uint64_t& rest, uint64_t divisor, uint64_t& quotient) {
        quotient = rest / divisor;
        rest %= divisor;
        return 2 * static_cast<uint64_t>(std::bit_width(quotient)) + 2;
    }

    void begin(const Command& load) {
        const Workspace& w = m_workspace;
        const bool follows = m_follows && load.dram == m_following;
        m_now = load;
        m_stores_done = false;
        m_follows = true;
        m_following = load.dram + load.bytes;
        m_state = State::kPlan;
        if (follows) return;
        uint64_t row = 0;
        m_byte = load.dram - w.window;
        m_cycles = divide(m_byte, w.row_bytes() * w.output_width, row);
        m_cycles += divide(m_byte, w.row_bytes(), m_column);
        m_cycles += divide(m_byte, run(), m_kernel_row);
        m_top = static_cast<int64_t>(row * w.stride) - w.padding;
        m_left = static_cast<int64_t>(m_column * w.stride * w.pixel_bytes) - margin();
        m_line = w.image + static_cast<uint64_t>(m_top) * pitch();
        m_base = m_line + m_kernel_row * pitch();
        m_state = State::kDivide;
    }

    void plan() {
        const int64_t offset = m_left + static_cast<int64_t>(m_byte);
        const int64_t row = m_top + static_cast<int64_t>(m_kernel_row);
        const int64_t width = static_cast<int64_t>(pitch());
        const bool beside = row < 0 || row >= m_workspace.height || offset >= width;
        const uint64_t edge = static_cast<uint64_t>(offset < 0 ? -offset : width - offset);
        m_zeros = beside || offset < 0;
        m_offset = static_cast<uint64_t>(offset);
        m_span = run() - m_byte;
        if (!beside) m_span = std::min(m_span, edge);
    }

    void advance() {
        const Workspace& w = m_workspace;
        m_byte += part;
        m_span -= part;
        m_now.scratchpad += static_cast<uint32_t>(part);
        m_now.bytes -= part;
        const bool ended = m_byte == run();
        if (ended) {
            m_byte = 0;
            m_base += pitch();
            if (++m_kernel_row == w.kernel) {
                m_kernel_row = 0;
                m_base = m_line;
                m_left += int64_t{w.stride} * w.pixel_bytes;
                if (++m_column == w.output_width) {
                    m_column = 0;
                    m_left = -margin();
                    m_line += pitch() * w.stride;
                    m_base = m_line;
                    m_top += w.stride;
                }
            }
        }
        if (final) {
            m_state = State::kRest;
        } else if (ended || !m_span) {
            m_state = State::kPlan;
        }
    }
};

// Reads a descriptor.
class Declaration {
  public:
    bool rest() const { return m_state == State::kRest; }
    bool asks() const { return m_state == State::kRequest; }
    bool waits() const { return m_state == State::kWords; }
    bool done() const { return m_state == State::kDone; }

    uint64_t address = 0;
    Workspace workspace = {};

    void begin(uint64_t descriptor) {
        if (!rest()) return;
        address = descriptor;
        m_words = 0;
        m_state = State::kRequest;
    }

    // Advances to the next cycle. `asked`: whether the request was accepted. `word`, `last`, `error`:
    // the response's beat, if any.
    void edge(bool asked, const uint64_t* word, bool last, bool error) {
        switch (m_state) {
            case State::kRest:
                break;
            case State::kRequest:
                if (asked) m_state = State::kWords;
                break;
            case State::kWords:
                if (!word) break;
                std::memcpy(reinterpret_cast<uint8_t*>(&workspace) + 8 * m_words++, word, 8);
                if (last) m_state = error ? State::kRest : State::kWork;
                m_left = kDeclarationCycles;
                break;
            case State::kWork:
                if (!--m_left) m_state = State::kDone;
                break;
            case State::kDone:
                m_state = State::kRest;
                break;
        }
    }

  private:
    enum class State { kRest, kRequest, kWords, kWork, kDone };

    State m_state = State::kRest;
    uint32_t m_words = 0, m_left = 0;
};

}  // namespace vip::timed
