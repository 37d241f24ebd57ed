// Timing model of a processing engine: the registers of its Verilog that determine what happens in
// which cycle, and how they change. isa/compiled executes the instructions.
//
// Names and order follow pe/: front end, dispatch, array range check, vector control, load-store
// unit. Each cycle first works out from the registers what happens, then updates them.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "../../../isa/compiled/engine.h"
#include "arc.h"
#include "timed.inc"
#include "load_store.h"

namespace vip::timed {

using Word = TimedWord;

// Executes a row of the instruction table.
using Execute = uint32_t (*)(Engine& engine, const Operation& operation, uint64_t& clipped);

// A word and its function.
struct alignas(64) Step : Word {
    bool plain;  // its place is the only fault it can have at issue
    uint8_t distance;  // see find_distances
    Operation operation;
    uint64_t registers, loaded;  // masks of those that it waits for and that it loads
    Execute function;

    uint64_t beats(uint64_t vl, uint64_t mr) const {
        return ((vl << width) + kWordBytes - 1) / kWordBytes * passes * (matrix ? mr : 1);
    }
    void execute(Engine& engine) const { execute(engine, operation); }
    void execute(Engine& engine, const Operation& other) const {
        uint64_t clipped = 0;
        function(engine, other, clipped);
    }
};
// No padding at the end: programs are compared by their bytes.
static_assert(sizeof(Step) == 64);

// Beats of the vector instructions from a word up to the first word that affects the load-store unit
// or depends on its state, along the path with the fewest beats, without the last two vector
// instructions: one leaves dispatch only when the second one before it has no beats left.
struct Ahead {
    uint16_t beats = 0;
    uint8_t fewer = 3;  // how many vector instructions before the word must be left out as well
    uint8_t then = 2;   // minimum cycles after these beats
};

// The words of a program, shared by engines.
class Program {
  public:
    explicit Program(std::vector<Step> words, uint64_t used)
        : m_words(std::move(words)), m_used(used) {}

    const std::vector<Step>& words() const { return m_words; }
    // An entry for each word used; or null.
    const Ahead* ahead(uint64_t vl, uint64_t mr) const;

  private:
    const std::vector<Step> m_words;
    const uint64_t m_used;
    mutable std::mutex m_lock;
    mutable std::map<std::pair<uint64_t, uint64_t>, std::vector<Ahead>> m_known;

    std::vector<Ahead> find(uint64_t vl, uint64_t mr) const;
};

// More cycles than any run has.
constexpr uint64_t kForever = ~uint64_t{0} / 2;

// A place that no branch leads to.
constexpr int64_t kNever = INT64_MIN;

// Cycles from a taken branch until the stages are full again.
constexpr int kRefillCycles = 3;

std::shared_ptr<const Program> program_of(const Sizes& sizes, const Operation* operations,
                                          const Word* buffer);

// A vector instruction's registers if the first three contain the values of its operands.
constexpr Operation kPlaced = {.row = 0, .a = 0, .b = 1, .c = 2, .constant = 0};

// A vector or load-store instruction at dispatch.
struct Dispatched {
    const Step* word;
    uint64_t values[3];
    uint64_t vl, mr, fx;
    Range ranges[3];
    uint64_t bytes, columns, beats;
    // lowered: a load from the window; recorded: by the load history.
    bool nothing, lowered, recorded;
    uint32_t cause;
    int64_t pc;
};

enum class State { kRest, kClear, kRun, kDrain, kFlush };

class PeModel {
  public:
    PeModel(const Sizes& sizes, Engine& engine, const Word* buffer);

    void launch();
    bool running() const { return m_state != State::kRest; }
    uint32_t cause() const { return m_cause; }
    void stop() {
        catch_up();
        m_stop = true, m_usual = false, m_frozen = m_slack = 0;
    }
    // The request that it offers in this cycle, or null.
    const RequestBeat* request() const {
        return m_load_store.request_valid() ? &m_load_store.request() : nullptr;
    }

    void cycle(MemoryPort& port);
    // For how many cycles from now, without a response, nothing visible happens. The caller may skip
    // them and must pass their number to `pass` before the next `cycle`.
    uint64_t rest() const { return m_still ? m_slack : 0; }
    // After these, instead of a `cycle` without a response: whether there are more. If not, that
    // cycle must still be done.
    bool rests_on();
    void pass(uint64_t count) { m_slack -= count, m_behind += count, m_time += count; }
    // Takes a response in one of these cycles, the one after the first `count`, if it remains one of
    // them. The last word of an access may reduce their number.
    bool absorb(const ResponseBeat& response, uint64_t count) {
        if (!m_load_store.only_responds() || !m_load_store.absorb(response)) return false;
        if (m_load_store.arrived) complete(m_load_store.arrived_entry, m_time + count + 1 + 2);
        return true;
    }

    // After a cycle, takes a word of a later one that is not the last of its access; see LoadStore.
    bool absorb_early(const ResponseBeat& response) {
        return !m_ports && m_load_store.absorb_early(response);
    }

    uint64_t cycles() const { return m_cycles + m_behind; }
    EngineResult result();

  private:
    // State used in each cycle comes first, close together: a chip has many engines.
    Engine& m_engine;  // registers of the program
    const std::shared_ptr<const Program> m_program;
    const Step* const m_words;  // of the program
    const uint64_t m_straight;  // words before it are too far from the end for stages to pass it

    // How many cycles front end and vector unit are behind the load-store unit, and how many more
    // they may fall behind, having nothing for that unit. They catch up before they see a change of
    // its state. See catch_up.cpp.
    uint64_t m_behind = 0, m_slack = 0;
    uint64_t m_time = 0;   // cycles that the load-store unit has done
    uint32_t m_seen = LoadStore::kSeesIdle;  // its state as they see it meanwhile
    bool m_still = false;  // without a response, that unit does nothing either
    // Cycles in which the front end repeats what it did in the last one: only counters and the vector
    // unit's beats change, until it sees a change.
    uint64_t m_frozen = 0, m_cycles = 0;

    // Sequencer.
    bool m_run = false, m_stop = false;
    bool m_usual = false;  // it runs, nothing has failed, and no setting is new
    State m_state = State::kRest;

    // Fetch.
    bool m_fetch_valid = false, m_redirect = false;
    int64_t m_fetch_pc = 0, m_following = 0;

    // Operands.
    bool m_operands_held = false, m_operands_outside = false;
    int64_t m_operands_pc = 0;
    const Step* m_operands_word;
    uint64_t m_valid = ~uint64_t{0};

    // Issue.
    bool m_held = false, m_outside_now = false;
    const Step* m_now;
    int64_t m_pc = 0, m_target = 0, m_last_pc = 0, m_fault_pc = 0;
    uint32_t m_settling = 0;

    // Event of the previous cycle, for the counters.
    uint32_t m_late_event = kCounters;

    // Registers that may change even if no instruction moves.
    struct alignas(8) Waits {
        bool late_conflict, late_full, quiet, again, vector_busy, vector_running, vector_waits,
            late_stop;
        bool operator==(const Waits& other) const {
            return std::bit_cast<uint64_t>(*this) == std::bit_cast<uint64_t>(other);
        }
    };
    Waits m_waits = {};

    // With shared ports of the scratchpad, each cycle is done in turn.
    const std::unique_ptr<SharedPorts> m_ports;
    // Vector control.
    uint64_t m_beats = 0, m_waiting_beats = 0;
    const Ahead* m_ahead = nullptr;  // for the current settings
    uint32_t m_unwritten = 0;

    // Dispatch.
    bool m_dispatch_held = false, m_leaves = false;
    bool m_given = false;  // the load-store unit already has it, but the front end is behind
    bool m_conflict = false, m_compared = false;  // compared: since its ranges or the entries changed
    uint32_t m_entry = 0;
    Dispatched m_dispatched = {};

    uint64_t m_counters[kCounters + 1] = {};  // the last one counts cycles without an event
    LoadStore m_load_store;
    Arc m_arc;

    const Sizes m_sizes;
    uint32_t m_cause = kNone;
    bool m_failed = false;
    uint64_t m_step = 0;
    Engine m_vector;  // runs the instruction that the vector unit takes

    // What happens in a cycle; the fields correspond to signals of the Verilog.
    struct Cycle {
        bool run, redirect, failed;
        // Dispatch: its instruction goes to its unit in this cycle, or leaves in the next.
        bool offer_ready, vector_goes, transfer_done, transfer_goes, leaves, conflict, full;
        uint32_t dispatch_cause;
        // Issue.
        bool present, sound, fire, offered, halt, leads_away, declares;
        uint32_t cause;
        int64_t target;
        // Operands and fetch.
        bool waits, next_waits, next_ready, next_valid, take, advance;
        bool quiet;
    };

    const Step* word_at(int64_t pc) const;
    int64_t kept(int64_t pc) const;
    // Moves a word from fetch to operands.
    void take() {
        m_operands_word = word_at(m_fetch_pc);
        m_operands_pc = m_fetch_pc;
        m_operands_outside = static_cast<uint64_t>(m_fetch_pc) >= m_sizes.words;
    }
    void advance(int64_t pc) { m_fetch_pc = pc, m_following = kept(pc + 1); }
    // Compares the instruction at dispatch with the array range check's entries.
    void compare() {
        if (!m_compared) m_conflict = m_arc.conflict(m_dispatched.ranges), m_compared = true;
    }
    // Whether the load-store unit accepts the instruction at dispatch in the next cycle.
    bool accepts(bool conflict, bool full) const {
        const Step& word = *m_dispatched.word;
        return (word.is_register | !(conflict | full)) &&
               (m_dispatched.nothing ||
                LoadStore::ready(m_seen, word.store & word.is_register, m_dispatched.lowered,
                                 m_dispatched.recorded));
    }
    template <bool kAlone>
    bool is_idle() const {
        return kAlone ? (m_seen & LoadStore::kSeesIdle) != 0 : m_load_store.idle();
    }
    bool beats() const { return m_waits.vector_running && (!m_ports || m_ports->beat); }
    void count_transfer() {
        m_counters[m_dispatched.word->store ? kBytesStored : kBytesLoaded] += m_dispatched.bytes;
    }
    // Executes a scalar instruction; returns whether it branches.
    bool branches(const Step& now);
    void dispatch(const Step& word, int64_t pc, Dispatched& found) const;
    [[gnu::cold]] uint32_t cause_at_issue(bool present) const;
    template <bool kUsual>
    VIP_INLINE uint32_t event(const Cycle& c) const;

    // A cycle: works out what happens, then updates the registers. Usual: see m_usual. Alone: without
    // the load-store unit, for which it has nothing.
    template <bool kUsual>
    void step(MemoryPort& port);
    template <bool kUsual>
    void step_alone();
    template <bool kUsual, bool kAlone>
    VIP_INLINE void front(Cycle& c);
    template <bool kUsual>
    VIP_INLINE void look_at_dispatch(Cycle& c);
    template <bool kUsual, bool kAlone>
    VIP_INLINE void look_at_issue(Cycle& c);
    template <bool kUsual>
    VIP_INLINE void look_at_operands(Cycle& c) const;
    template <bool kUsual>
    VIP_INLINE void count(const Cycle& c);
    [[gnu::cold]] void sequence(uint32_t cause_now, int64_t cause_pc, bool halt, bool done,
                                int64_t waiting_pc, bool late);
    void launched();
    [[gnu::cold]] void check_workspace(Dispatched& found) const;
    [[gnu::cold]] void report_to_history(const Cycle& c);
    template <bool kAlone>
    VIP_INLINE void write(const Cycle& c);
    VIP_INLINE void receive();
    VIP_INLINE void vector_edge(bool handed_on);
    [[gnu::cold]] void shared_edge(bool handed_on);
    [[gnu::cold]] void shared_cycle(MemoryPort& port);
    VIP_INLINE bool transfer_edge(const MemoryPort& port, bool handed_on);
    template <bool kUsual>
    VIP_INLINE void stage_edge(const Cycle& c);
    void transfer_alone(const MemoryPort& port);
    VIP_INLINE void proceed_alone(MemoryPort& port);
    bool gives() const;
    void give(MemoryPort& port);
    VIP_INLINE Command transfer(uint32_t entry) const;
    VIP_INLINE bool enter(const Command& given);
    VIP_INLINE void response_alone(const ResponseBeat* response);
    VIP_INLINE void show();
    void catch_up();
    void pass_frozen(uint64_t count);
    static constexpr int64_t kRefill = kRefillCycles;
    struct Beats;
    VIP_INLINE int64_t departure(const Beats& beats, uint64_t begin, int64_t time, int64_t& most);
    void execute_vector();
    VIP_INLINE void keep(Beats& beats, int64_t time);
    VIP_INLINE int64_t gap(int64_t& pc) const;
    void keep_gap(int64_t gap, int64_t pc, int64_t first, int64_t passed);
    uint64_t flow(uint64_t cycles);
    struct Way {
        int64_t pc;
        uint64_t cycles;
    };
    Way way() const;
    uint64_t distance(const Way& way) const;
    uint64_t beats_ahead(int64_t pc) const;
    void set_ahead() { m_ahead = m_program->ahead(m_engine.vl, m_engine.mr); }
    bool blocked() const;
    uint64_t slack() const;
    void complete(uint32_t entry, uint64_t time);
    void follow_transfers();
    void leave(uint64_t time);
    VIP_INLINE bool stays(bool changes, uint32_t seen) const;
    VIP_INLINE uint64_t frozen(const Cycle& c) const;
};

}  // namespace vip::timed
