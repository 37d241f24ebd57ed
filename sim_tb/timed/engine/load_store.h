// Timing model of the load-store unit (pe/lsu/).
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>

#include "history.h"
#include "lowering.h"
#include "timed.inc"

// A cycle is one function: what happens in it stays in registers.
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

// The memory port of an engine in one cycle, but for the request that it offers.
struct MemoryPort {
    bool request_ready;
    const ResponseBeat* response;  // or null
    bool response_ready;           // what the engine says
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

    // Whether it has nothing to ask for and no register to load: then a cycle is `respond`.
    bool only_responds() const { return !(m_active | m_unlike | m_remembers); }
    // A cycle, which takes the response, if there is one.
    VIP_INLINE void respond(const ResponseBeat* response);
    // The same where nothing else goes on, before its time, if that makes no difference: a word that
    // is written, or the end of an access that is not the only one.
    VIP_INLINE bool absorb(const ResponseBeat& response);
    // The same of a word that is not the last one, whatever else goes on. It is the next one that comes.
    VIP_INLINE bool absorb_early(const ResponseBeat& response);

    // Whether it has nothing but transfers and columns that are loaded: then a cycle is `proceed`,
    // with a `take` if a transfer is handed on in it. Otherwise it is `look` and `edge`.
    bool plain() const { return !(m_special | m_unlike | m_remembers | m_result_valid); }
    VIP_INLINE void proceed(MemoryPort& port);
    VIP_INLINE void take(const Command& transfer, uint64_t value);

    // What happens in this cycle. `writes_first`: a scalar result takes the registers' write port.
    VIP_INLINE void look(MemoryPort& port, bool writes_first);

    bool request_valid() const { return m_request_valid || asks(); }
    const RequestBeat& request() const { return asks() ? m_asked : m_beats[m_sent]; }
    // The load history, or null.
    const History* history() const { return m_history.get(); }
    // It forgets all.
    void forget() { m_history->empty(); }
    // An instruction that is dispatched in this cycle, after `look`, will write there.
    void overwrites(const Range& range) {
        m_history->overwrites(range);
        if (m_still) m_history->overwrite();
    }
    // A workspace is to be declared, if none is being; it is, in this cycle.
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
    // Whether cycles change nothing until a transfer or a response comes.
    bool steady() const {
        return !(m_active | m_response_valid) && (m_tag_ready || !m_free);
    }
    // Whether a register waits to be written: a scalar result goes first.
    bool holds_result() const { return m_result_valid; }
    // What the front end sees of it.
    uint32_t seen() const {
        const uint32_t usual = (m_waits ? kSeesWaiting : 0) | (m_value_held ? kSeesValue : 0) |
                               (idle() ? kSeesIdle : 0);
        if (!m_special) [[likely]] return usual;
        return usual | (m_lowering.rest() ? 0 : kSeesLowering) |
               (m_declaration.done() ? kSeesDeclared : 0) | (m_cuts ? kSeesCuts : 0);
    }
    // Whether it takes a transfer when it is seen so.
    static bool ready(uint32_t seen, bool stores_register, bool lowered, bool recorded) {
        if (seen & kSeesLowering) return false;
        if (lowered) return true;
        return !(seen & kSeesCuts) &&
               (recorded ||
                !(seen & (kSeesWaiting | (stores_register ? kSeesValue : 0))));
    }

    // Of this cycle, after `look`.
    bool arrived = false, released = false, loaded = false, error = false;
    bool grown = false;
    uint32_t arrived_entry = 0, released_entry = 0, grown_entry = 0;
    uint32_t loaded_index = 0;
    uint64_t loaded_value = 0;

    // To the next cycle, with the transfer that is handed on in this one, or null.
    VIP_INLINE void edge(const MemoryPort& port, const Command* transfer, uint64_t value);

  private:
    // What to do with the response to a tag.
    struct Target {
        bool store, is_register;
        uint8_t width;
        bool recorded;
        uint8_t first, last, entry, index;
        uint32_t scratchpad;
    };

    uint8_t* const m_scratchpad;
    const uint32_t m_mask;

    // What each cycle looks at comes first.
    bool m_active = false;   // it has something to ask for or a register to load
    bool m_unlike = false;   // the response is of a register or an error
    bool m_remembers;        // it has a load history
    bool m_special = false;  // something is declared or lowered
    bool m_working = false, m_waits = false, m_formed_valid = false, m_request_valid = false;
    bool m_result_valid = false;
    bool m_response_valid = false, m_tag_ready = false;
    bool m_following = false, m_value_held = false;
    uint32_t m_behind = 0, m_tag = 0, m_outstanding = 0;
    uint64_t m_free;
    std::unique_ptr<History> m_history;  // or null: the engine has no load history

    // Request side.
    Command m_now = {}, m_waiting = {};
    uint64_t m_value = 0;
    bool m_opened = false;
    uint32_t m_kept_tag = 0;
    bool m_from_register = false;
    RequestBeat m_beats[2] = {};  // that is sent, and that is formed
    uint32_t m_sent = 0;

    // Response side.
    ResponseBeat m_response = {};
    Target m_target = {};
    uint32_t m_result_index = 0;
    uint64_t m_result = 0;

    // Of this cycle.
    bool m_go = false, m_last = false, m_done = false, m_taken = false, m_space = false, m_move = false;
    bool m_response_go = true, m_freed = false, m_loads = false, m_loads_register = false;
    bool m_still = false;  // nothing happens
    uint32_t m_words = 0, m_end = 0;

    Target m_targets[64] = {};

    // What an engine with a workspace has.
    Lowering m_lowering;
    Declaration m_declaration;
    RequestBeat m_asked = {};
    bool m_fills = false;

    // What an engine with a load history has.
    bool m_cuts = false;    // a load is being cut or copied by it
    bool m_copies = false;  // a word goes to the scratchpad

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
