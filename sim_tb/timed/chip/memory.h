// Controller and DRAM of a tile, in the tile's time.
//
// Nobody sees what they do until a response is offered. So their cycles wait until then, or until a
// beat comes that the controller may refuse, and are done together.
#pragma once

#include <algorithm>
#include <cstdint>

#include "../vault/controller.h"
#include "../vault/crossbar.h"
#include "../vault/dram.h"

namespace vip::timed {

class Memory {
  public:
    // `sizes` stay.
    Memory(const VaultSizes& sizes, Dram& dram)
        : m_address_bits(sizes.address_bits), m_controller(sizes, &dram), m_dram(dram) {}

    // The first cycle in which a response may be offered; never later than that.
    uint64_t due() const { return m_due; }
    // Whether the controller certainly takes the beat, so that it can wait in the inbox.
    bool accepts(const RequestBeat& beat) const {
        return m_room && m_entered - m_left < kInbox && !(beat.address >> m_address_bits);
    }
    // Such a beat, which is offered in a cycle that is not done yet.
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
    // Does those, and it: the beat that is offered, if it is not in the inbox, or null. `takes`: whether a
    // response is taken, by what it is. Returns the response that is offered, or null.
    template <typename Takes>
    const ResponseBeat* cycle(uint64_t cycle, const Crossbar::Beat* asked, Takes takes) {
        do_before(cycle);
        const ResponseBeat* const response = offered();
        step(asked ? asked : next_beat(), response && takes(*response));
        if (asked && m_controller.accepted) m_dram.expect(asked->beat.address);
        plan();
        return response;
    }
    // Of the first cycle that is not done: the response that is offered, or null.
    const ResponseBeat* offered() const {
        return m_controller.response_valid() ? &m_controller.response() : nullptr;
    }
    // Of the last `cycle`: whether what was asked is taken.
    bool accepted() const { return m_controller.accepted; }

    // After `catch_up`, see Controller.
    void settle() { m_controller.settle(); }
    // See Controller.
    const ResponseBeat& following(uint32_t number) const { return m_controller.following(number); }
    void skip(uint32_t count) {
        m_controller.skip(count);
        plan();
    }
    // Of all cycles that are done.
    uint64_t* counters() { return m_controller.counters; }

  private:
    struct Coming {
        uint64_t cycle;
        Crossbar::Beat beat;
    };
    static constexpr uint32_t kInbox = 8;
    // From a beat that comes to its response, at least: queue, queue of its bank, command,
    // acknowledgement.
    static constexpr uint64_t kAnswers = 6;

    uint64_t m_cycle = 0;  // that it does next
    uint64_t m_due = 0;
    uint32_t m_room = 0;  // for requests, at least
    uint32_t m_entered = 0, m_left = 0;  // beats of the inbox
    uint32_t m_requests = 0;  // in the inbox
    Coming m_inbox[kInbox];
    const uint64_t m_address_bits;
    Controller m_controller;
    Dram& m_dram;

    // What is offered in the next cycle, or null.
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
