// Cycles in which the stages of the front end are full, or refill after a branch, and nothing fails.
//
// Most cycles are like this. They are done instruction by instruction: the cycle in which each one
// moves on is known, since the vector unit's beats are cycles too. `step` and `step_alone` do all
// others.
#include <algorithm>

#include "pe_model.h"

namespace vip::timed {

static_assert(kIssuedScalar == kScalar && kIssuedVector == kVector &&
              kIssuedLoadStore == kLoadStore);

namespace {

// Later than any cycle.
constexpr int64_t kNotYet = INT64_MAX / 2;

// The stall of an instruction at issue behind a vector instruction.
uint32_t stall(bool conflict) { return conflict ? kStallArcConflict : kStallVector; }

}  // namespace

// The vector unit, by the cycles in which it runs.
struct PeModel::Beats {
    bool runs, waits;  // whether an instruction runs, and whether another one waits
    int64_t begin;     // of the current stretch of instructions without a gap
    int64_t end;       // of the instruction that runs
    int64_t waiting;   // beats of the one that waits
    int64_t last;      // last cycle before `begin` in which it ran
    int64_t busy = 0;  // cycles in which it ran before `begin`

    // Advances to `time`.
    void to(int64_t time) {
        while (runs && end <= time) {
            if (waits) {
                end += waiting;
                waits = false;
            } else {
                busy += end - begin;
                last = end - 1;
                runs = false;
            }
        }
    }
    void take(int64_t time, int64_t beats) {
        to(time);
        if (!runs) {
            runs = true;
            begin = time + 1;
            end = begin + beats;
        } else if (end == time + 1) {
            end += beats;
        } else {
            waits = true;
            waiting = beats;
        }
    }
};

// The cycle in which the instruction at dispatch goes, given that it is there in cycle `time`, counted
// from `begin`; kNotYet if that is not known before `most`, which may decrease.
int64_t PeModel::departure(const Beats& beats, uint64_t begin, int64_t time, int64_t& most) {
    const uint64_t now = begin + static_cast<uint64_t>(time);
    if (m_arc.next() <= now) leave(now);
    compare();
    const bool transfer = m_dispatched.word->unit == kLoadStore;
    if (transfer && accepts(m_conflict, m_arc.full())) return most = time + 1;
    if (transfer | m_conflict) {
        // Wait until an entry becomes free.
        most = static_cast<int64_t>(std::min(static_cast<uint64_t>(most), m_arc.next() - begin));
        return kNotYet;
    }
    return (beats.waits ? beats.end : time) + 1;
}

// Executes the vector instruction at dispatch.
void PeModel::execute_vector() {
    const Dispatched& held = m_dispatched;
    for (int i = 0; i < 3; ++i) m_vector.registers[i] = held.values[i];
    m_vector.vl = held.vl, m_vector.mr = held.mr, m_vector.fx = held.fx;
    held.word->execute(m_vector, kPlaced);
}

// Updates the registers of the vector unit to the beginning of cycle `time`.
void PeModel::keep(Beats& beats, int64_t time) {
    beats.to(time);
    const int64_t ran = beats.runs && beats.begin < time ? time - 1 : beats.last;
    const auto unwritten = static_cast<int64_t>(kVectorLatency) - (time - ran);
    m_unwritten = static_cast<uint32_t>(std::max<int64_t>(unwritten, 0));
    // An instruction was handed over or ran in the last cycle, or has results to come.
    m_waits.vector_busy = (beats.runs && beats.begin == time) || unwritten > 0;
    m_waits.vector_running = beats.runs;
    m_waits.vector_waits = beats.waits;
    m_beats = static_cast<uint64_t>(beats.end - time);
    m_waiting_beats = static_cast<uint64_t>(beats.waiting);
    m_counters[kVectorBusy] += beats.busy + (beats.runs ? time - beats.begin : 0);
}

// Cycles after a branch until the stages are full again; `pc` becomes their first word.
int64_t PeModel::gap(int64_t& pc) const {
    if (m_redirect) return pc = m_target, kRefill;
    if (!m_operands_held) return pc = m_fetch_pc, kRefill - 1;
    return pc = m_operands_pc, kRefill - 2;
}

// Updates the registers of the stages with such a gap; `passed`: the place in empty stages.
void PeModel::keep_gap(int64_t gap, int64_t pc, int64_t first, int64_t passed) {
    m_held = false;
    m_redirect = gap == kRefill;
    m_operands_held = gap != kRefill - 1;
    m_pc = m_redirect ? first : passed;
    m_operands_pc = gap == kRefill - 2 ? pc : passed;
    m_operands_word = word_at(m_operands_pc);
    m_operands_outside = static_cast<uint64_t>(m_operands_pc) >= m_sizes.words;
    advance(m_redirect ? kept(passed + 1) : gap == kRefill - 1 ? pc : kept(pc + 1));
}

// Does such cycles, at most `cycles`, of the front end. Returns how many.
uint64_t PeModel::flow(uint64_t cycles) {
    if (!(m_usual & m_fetch_valid)) return 0;
    bool held = m_dispatch_held, again = m_waits.again;
    if (held && m_dispatched.cause != kNone) return 0;
    int64_t pc = m_pc, left = 0;
    if (!m_held) {
        left = gap(pc);
        if (left == kRefill - 2 && again) return 0;
    } else if (!m_operands_held) {
        return 0;
    }
    const Step* const words = m_words;
    uint64_t valid = m_valid;
    if (static_cast<uint64_t>(pc) >= m_straight || (left ? (words[pc].registers & ~valid) != 0
                                                         : !words[pc].plain))
        return 0;

    // Cycles are numbered from here.
    int64_t time = 0, most = static_cast<int64_t>(cycles);
    Beats beats = {.runs = m_waits.vector_running,
                   .waits = m_waits.vector_waits,
                   .begin = 0,
                   .end = static_cast<int64_t>(m_beats),
                   .waiting = static_cast<int64_t>(m_waiting_beats),
                   .last = static_cast<int64_t>(m_unwritten) - kVectorLatency};
    // Of the instruction at dispatch: since when it is there, when it goes, when the last one went.
    int64_t since = 0, goes = kNotYet, gone = kNotYet;
    const uint64_t begin = m_time - m_behind;
    if (held) goes = m_leaves ? 0 : departure(beats, begin, 0, most);
    const auto pass_on = [&] {
        if (m_dispatched.word->unit == kVector) {
            execute_vector();
            beats.take(goes, static_cast<int64_t>(m_dispatched.beats));
        } else {
            count_transfer();
            m_given = false;
        }
        held = false;
        gone = goes;
        goes = kNotYet;
    };

    // After a branch: the contents of the stages until they are full.
    int64_t first = m_pc, passed = left == kRefill - 2 ? m_pc : m_operands_pc;
    int64_t last_pc = m_last_pc, fault_pc = m_fault_pc;
    bool stays = false;
    uint32_t event = m_late_event;
    ++m_counters[event];
    while (time < most) {
        if (left) {
            const int64_t count = std::min(left, most - time);
            if (goes < time + count) pass_on();
            event = kStallFetch;
            m_counters[kStallFetch] += count;
            fault_pc = left == kRefill && count == 1 ? first : passed;
            again = false;
            time += count;
            left -= count;
            continue;
        }
        const Step& now = words[pc];
        if (!now.plain || static_cast<uint64_t>(pc) >= m_straight) break;
        const bool waits = words[pc + 1].registers & (~valid | now.loaded);
        if (now.unit == kScalar) {
            if (goes == time) pass_on();
            last_pc = fault_pc = pc;
            event = kIssuedScalar;
            ++m_counters[kIssuedScalar];
            ++time;
            if (now.writes) {
                now.execute(m_engine);
            } else if (branches(now)) {
                first = pc + 1;
                passed = first + !(waits | again);
                again = waits;
                left = kRefill;
                pc = m_target;
                if (static_cast<uint64_t>(pc) >= m_straight || words[pc].registers & ~valid) break;
                continue;
            }
        } else {
            if (goes > time && held) {
                if (m_dispatched.word->unit == kLoadStore) break;
                last_pc = fault_pc = pc;
                // Counted by what dispatch saw one cycle earlier.
                const int64_t until = std::min(goes, most);
                const bool before = time ? since < time && m_conflict : m_waits.late_conflict;
                event = stall(before);
                ++m_counters[event];
                if (until - time > 1) {
                    event = stall(m_conflict);
                    m_counters[event] += until - time - 1;
                }
                again = waits;
                time = until;
                if (time == most) break;
            }
            if (held) pass_on();
            last_pc = fault_pc = pc;
            event = now.unit;
            ++m_counters[event];
            ++time;
            dispatch(now, pc, m_dispatched);
            held = true;
            m_compared = false;
            since = time;
            valid &= ~now.loaded;
            if (m_dispatched.cause != kNone) [[unlikely]] {
                most = time;
            } else if (time < most) {
                beats.to(time);
                goes = departure(beats, begin, time, most);
            }
        }
        stays = waits | again;
        again = waits;
        ++pc;
        if (stays) break;
    }
    --m_counters[event];
    if (!time) return 0;

    m_late_event = event;
    m_counters[kCycles] += time;
    m_cycles += time;
    m_last_pc = last_pc;
    m_fault_pc = fault_pc;
    m_valid = valid;
    keep(beats, time);
    const bool stood = held & (since < time);
    m_dispatch_held = held;
    m_leaves = held & (goes == time);
    m_waits.late_conflict = stood && m_conflict;
    m_waits.late_full = stood && m_dispatched.word->unit == kLoadStore && m_arc.full();
    m_waits.quiet = !(stood | (gone == time - 1)) && (m_seen & LoadStore::kSeesIdle);
    m_waits.again = again;
    if (left) {
        keep_gap(left, pc, first, passed);
    } else {
        m_held = !stays;
        m_redirect = false;
        m_operands_held = true;
        m_pc = pc;
        m_now = words + pc;
        m_operands_pc = pc + !stays;
        m_operands_word = words + m_operands_pc;
        m_outside_now = m_operands_outside = false;
        m_fetch_pc = m_operands_pc + 1;
        m_following = kept(m_fetch_pc + 1);
    }
    return static_cast<uint64_t>(time);
}

}  // namespace vip::timed
