// Timing model of the load-store unit (pe/lsu/).
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>

#include "history.h"
#include "lowering.h"
#include "shared_ports.h"
#include "timed.inc"

// A cycle is one inlined function, so that its values stay in registers.
#define VIP_INLINE [[gnu::always_inline]] inline

namespace vip::timed {

struct RequestBeat {
    uint64_t address, data;
    uint32_t tag, words, strobe;
    bool write, last;
};

struct ResponseBeat {
    uint64_t data;
    uint32_t tag, source;
    bool last, error;
};

// The memory port of an engine in one cycle, except for the request that it offers.
struct MemoryPort {
    bool request_ready;
    const ResponseBeat* response;  // or null
    bool response_ready;           // driven by the engine
};

class LoadStore {
  public:
    static constexpr uint32_t kSeesWaiting = 1, kSeesValue = 2, kSeesIdle = 4, kSeesLowering = 8,
                              kSeesDeclared = 16, kSeesCuts = 32;

    LoadStore(uint8_t* scratchpad, uint32_t scratchpad_bytes, uint32_t tags,
              std::unique_ptr<History> history)
        : m_scratchpad(scratchpad),
          m_mask(scratchpad_bytes - 1),
          m_remembers(history != nullptr),
          m_free(tags == 64 ? ~uint64_t{0} : (uint64_t{1} << tags) - 1),
          m_history(std::move(history)) {}

    // Whether it has no requests to make and no register to load: then `respond` does a cycle.
    bool only_responds() const { return !(m_active | m_unlike | m_remembers); }
    // Does a cycle, which takes the response, if any.
    VIP_INLINE void respond(const ResponseBeat* response);
    // Takes a response ahead of its cycle, with nothing else going on, if that makes no difference: a
    // word to write, or the end of an access that is not the only one.
    VIP_INLINE bool absorb(const ResponseBeat& response);
    // The same for a word that is not the last one, whatever else goes on. It is the next to arrive.
    VIP_INLINE bool absorb_early(const ResponseBeat& response);

    // Whether it has only transfers and columns being loaded: then `proceed` does a cycle, followed by
    // `take` if a new transfer comes in it. Otherwise `look` and `edge` do.
    bool plain() const { return !(m_special | m_unlike | m_remembers | m_result_valid); }
    VIP_INLINE void proceed(MemoryPort& port);
    VIP_INLINE void take(const Command& transfer, uint64_t value);

    // With shared ports: parities of rows for which a load or store asks in this cycle, and whether
    // it has its port.
    uint32_t load_asks() const;
    uint32_t store_asks(bool request_ready) const;
    bool load_ready = true, store_ready = true;

    // Works out what happens in this cycle. `writes_first`: a scalar result occupies the registers'
    // write port.
    VIP_INLINE void look(MemoryPort& port, bool writes_first);

    bool request_valid() const { return m_request_valid || asks(); }
    const RequestBeat& request() const { return asks() ? m_asked : m_beats[m_sent]; }
    // The load history, or null.
    const History* history() const { return m_history.get(); }
    // Empties the history.
    void forget() { m_history->empty(); }
    // The instruction dispatched in this cycle will write there. Called after `look`.
    void overwrites(const Range& range) {
        m_history->overwrites(range);
        if (m_still) m_history->overwrite();
    }
    // Begins to declare a workspace in this cycle; no other declaration is in progress.
    void declare(uint64_t descriptor) {
        m_declaration.begin(descriptor);
        m_special = m_active = true;
        m_asked = RequestBeat{.address = m_declaration.address, .data = 0, .tag = 0,
                              .words = kColumnWords - 1, .strobe = 0xff, .write = false, .last = true};
    }
    const Workspace* declared() const {
        return m_special && m_declaration.done() ? &m_declaration.workspace : nullptr;
    }
    bool idle() const { return !(m_active | m_response_valid | (m_outstanding != 0)); }
    // Whether cycles change nothing until a transfer or response arrives.
    bool steady() const {
        return !(m_active | m_response_valid) && (m_tag_ready || !m_free);
    }
    // Whether a loaded register waits to be written; scalar results go first.
    bool holds_result() const { return m_result_valid; }
    // The state that the front end sees.
    uint32_t seen() const {
        const uint32_t usual = (m_waits ? kSeesWaiting : 0) | (m_value_held ? kSeesValue : 0) |
                               (idle() ? kSeesIdle : 0);
        if (!m_special) [[likely]] return usual;
        return usual | (m_lowering.rest() ? 0 : kSeesLowering) |
               (m_declaration.done() ? kSeesDeclared : 0) | (m_cuts ? kSeesCuts : 0);
    }
    // Whether it accepts a transfer in the state `seen`.
    static bool ready(uint32_t seen, bool stores_register, bool lowered, bool recorded) {
        if (seen & kSeesLowering) return false;
        if (lowered) return true;
        return !(seen & kSeesCuts) &&
               (recorded ||
                !(seen & (kSeesWaiting | (stores_register ? kSeesValue : 0))));
    }

    // Events of this cycle, valid after `look`.
    bool arrived = false, released = false, loaded = false, error = false;
    bool grown = false;
    uint32_t arrived_entry = 0, released_entry = 0, grown_entry = 0;
    uint32_t loaded_index = 0;
    uint64_t loaded_value = 0;

    // Advances to the next cycle, with the transfer handed over in this one, or null.
    VIP_INLINE void edge(const MemoryPort& port, const Command* transfer, uint64_t value);

  private:
    // What to do with the response to a tag.
    struct Target {
        bool store, is_register;
        uint8_t width;
        bool recorded;
        uint8_t first, last, entry, index;
        uint8_t rows;  // parities of the first word, if the ports are shared
        uint32_t scratchpad;
    };

    uint8_t* const m_scratchpad;
    const uint32_t m_mask;

    // State used in each cycle comes first.
    bool m_active = false;   // it has requests to make or a register to load
    bool m_unlike = false;   // the response is for a register, or an error
    bool m_remembers;        // it has a load history
    bool m_special = false;  // there has been a declaration or lowering
    bool m_working = false, m_waits = false, m_formed_valid = false, m_request_valid = false;
    bool m_result_valid = false;
    bool m_response_valid = false, m_tag_ready = false;
    bool m_following = false, m_value_held = false;
    uint32_t m_behind = 0, m_tag = 0, m_outstanding = 0;
    uint64_t m_free;
    std::unique_ptr<History> m_history;  // null if the engine has no load history

    // Request side.
    Command m_now = {}, m_waiting = {};
    uint64_t m_value = 0;
    bool m_opened = false;
    uint32_t m_kept_tag = 0;
    bool m_from_register = false;
    RequestBeat m_beats[2] = {};  // one being sent and one being formed
    uint32_t m_sent = 0;

    // Response side.
    ResponseBeat m_response = {};
    Target m_target = {};
    uint32_t m_result_index = 0;
    uint64_t m_result = 0;

    // Events of this cycle.
    bool m_go = false, m_last = false, m_done = false, m_taken = false, m_space = false, m_move = false;
    bool m_response_go = true, m_freed = false, m_loads = false, m_loads_register = false;
    bool m_still = false;  // nothing happens
    uint32_t m_words = 0, m_end = 0;

    Target m_targets[64] = {};

    // Only for workspaces.
    Lowering m_lowering;
    Declaration m_declaration;
    RequestBeat m_asked = {};
    bool m_fills = false;

    // Only for a load history.
    bool m_cuts = false;    // it is splitting or copying a load
    bool m_copies = false;  // it writes a word to the scratchpad

    uint64_t word_at(uint32_t address) const;
    bool asks() const { return m_special && m_declaration.asks(); }
    VIP_INLINE void write_loaded(const Target& target, const ResponseBeat& response);
    VIP_INLINE void end_word(const Target& target, const ResponseBeat& response);
    VIP_INLINE void take_response();
    VIP_INLINE void latch(const ResponseBeat* response);
    VIP_INLINE void choose_tag(uint64_t free);
    VIP_INLINE void look_at_requests(bool request_ready);
    VIP_INLINE void send();
    VIP_INLINE void form();
    VIP_INLINE void advance();
    bool has_request() const {
        return m_special | m_working | m_waits | m_formed_valid | m_request_valid | m_result_valid;
    }
    [[gnu::cold]] void look_at_workspace(const MemoryPort& port);
    [[gnu::cold]] void write_zeros();
    [[gnu::cold]] const Command* follow_history(const Command* transfer, Command& piece);
};

}  // namespace vip::timed
