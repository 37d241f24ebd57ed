// Controller and DRAM of a tile, in the tile's time.
//
// Nothing sees what they do until a response is offered. So their cycles are postponed until then, or
// until the controller might refuse a beat, and done together.
#pragma once

#include <algorithm>
#include <cstdint>

#include "../vault/controller.h"
#include "../vault/crossbar.h"
#include "../../../memory/model/dram.h"

namespace vip::timed {

class Memory {
  public:
    // `sizes` must outlive it.
    Memory(const VaultSizes& sizes, Dram& dram)
        : m_address_bits(sizes.address_bits), m_controller(sizes, &dram), m_dram(dram) {}

    // Lower bound of the first cycle in which a response may be offered.
    uint64_t due() const { return m_due; }
    // Whether the controller is certain to accept the beat, so that it can wait in the inbox.
    bool accepts(const RequestBeat& beat) const {
        return m_room && m_entered - m_left < kInbox && !(beat.address >> m_address_bits);
    }
    // Puts such a beat into the inbox, offered in a cycle that has yet to be done.
    void put(uint64_t cycle, const Crossbar::Beat& beat) {
        m_dram.expect(beat.beat.address);
        m_inbox[m_entered++ % kInbox] = {cycle, beat};
        m_room -= beat.beat.last, m_requests += beat.beat.last;
        m_due = std::min(m_due, cycle + kAnswers);
    }
    // Does all cycles before `cycle`.
    void catch_up(uint64_t cycle) {
        if (m_cycle == cycle) return;
        do_before(cycle);
        plan();
    }
    // Does these and then `cycle`. `asked`: the beat offered, unless it is in the inbox, or null.
    // `takes`: whether a given response is accepted. Returns the response offered, or null.
    template <typename Takes>
    const ResponseBeat* cycle(uint64_t cycle, const Crossbar::Beat* asked, Takes takes) {
        do_before(cycle);
        const ResponseBeat* const response = offered();
        step(asked ? asked : next_beat(), response && takes(*response));
        if (asked && m_controller.accepted) m_dram.expect(asked->beat.address);
        plan();
        return response;
    }
    // The response offered in the first cycle that has yet to be done, or null.
    const ResponseBeat* offered() const {
        return m_controller.response_valid() ? &m_controller.response() : nullptr;
    }
    // Whether `asked` was accepted in the last `cycle`.
    bool accepted() const { return m_controller.accepted; }

    // Called after `catch_up`; see Controller.
    void settle() { m_controller.settle(); }
    // See Controller.
    const ResponseBeat& following(uint32_t number) const { return m_controller.following(number); }
    void skip(uint32_t count) {
        m_controller.skip(count);
        plan();
    }
    // They cover all cycles that have been done.
    uint64_t* counters() { return m_controller.counters; }

  private:
    struct Coming {
        uint64_t cycle;
        Crossbar::Beat beat;
    };
    static constexpr uint32_t kInbox = 8;
    // Minimum cycles from a beat to its response: queue, bank queue, command, acknowledgement.
    static constexpr uint64_t kAnswers = 6;

    uint64_t m_cycle = 0;  // next one to do
    uint64_t m_due = 0;
    uint32_t m_room = 0;  // for at least this many requests
    uint32_t m_entered = 0, m_left = 0;  // beats of the inbox
    uint32_t m_requests = 0;  // in the inbox
    Coming m_inbox[kInbox];
    const uint64_t m_address_bits;
    Controller m_controller;
    Dram& m_dram;

    // The beat of the inbox that is offered in the next cycle, or null.
    const Crossbar::Beat* next_beat() {
        if (m_entered == m_left) return nullptr;
        const Coming& coming = m_inbox[m_left % kInbox];
        if (coming.cycle != m_cycle) return nullptr;
        ++m_left, m_requests -= coming.beat.beat.last;
        return &coming.beat;
    }
    void do_before(uint64_t cycle);
    void step(const Crossbar::Beat* asked, bool taken);
    void plan() {
        m_due = m_controller.responds();
        if (m_entered != m_left)
            m_due = std::min(m_due, m_inbox[m_left % kInbox].cycle + kAnswers);
        const uint32_t room = m_controller.room();
        m_room = room - std::min(room, m_requests);
    }
};

}  // namespace vip::timed
