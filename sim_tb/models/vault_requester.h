// Requesters at the ports of a memory: see vault_traffic.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vip_traffic.h"

namespace vip {

constexpr uint64_t kWordBytes = 8;
constexpr uint64_t kColumnBytes = 32;
constexpr uint32_t kColumnWords = kColumnBytes / kWordBytes;

struct Random {
    uint64_t state = 0;

    uint64_t next() {
        state += 0x9e3779b97f4a7c15ULL;
        uint64_t mixed = state;
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
        return mixed ^ (mixed >> 31);
    }

    bool chance(uint32_t of_65536) {
        return of_65536 >= 65536 || (of_65536 && (next() & 0xffff) < of_65536);
    }

    uint64_t below(uint64_t limit) { return next() % limit; }
};

struct Access {
    bool open = false;  // in flight
    bool write = false;
    bool outside = false;
    uint32_t tag = 0;
    uint32_t words = 0;
    uint64_t address = 0;
    uint64_t offered = 0;  // cycle
    uint64_t data[kColumnWords] = {};
    uint32_t strobe[kColumnWords] = {};
};

// State shared by all requesters of a run.
struct Run {
    VipTrafficJob job = {};
    VipTrafficResult result = {};
    std::vector<uint64_t> copy;  // words of the span after the writes so far
    std::string violation;       // the first
    uint64_t now = 0;
    uint64_t first = 0;  // cycle of the first offer, 0 before it
    uint64_t last = 0;   // of the last response

    void violate(const char* rule, uint32_t requester, const char* format, ...)
        __attribute__((format(printf, 4, 5)));
};

// A response beat at the port.
struct Answer {
    bool valid = false;
    uint32_t tag = 0;
    uint64_t data = 0;
    bool last = false;
    bool error = false;
};

// Makes accesses, and checks every response against the order of its requests. A write changes the
// requester's copy of the memory when made; a read takes its expected value from the copy when made.
class Requester {
  public:
    Requester(Run& run, uint32_t number, const VipPattern& pattern, uint32_t tags);
    virtual ~Requester() = default;

    // Processes the cycle that ends: what the memory drove, and what this requester had offered.
    void cycle(bool request_ready, const Answer& answer);

    bool finished() const { return m_finished == m_pattern.accesses; }
    bool request_valid() const { return m_valid; }
    bool response_ready() const { return m_ready; }
    const Access& request() const { return m_current; }
    uint32_t beat() const { return m_beat; }  // of the request that is offered
    void check_patience() const;

  protected:
    Run& m_run;
    uint32_t m_number;
    VipPattern m_pattern;
    Random m_random;
    uint64_t m_made = 0;
    std::vector<uint32_t> m_free_tags;
    bool m_working = false;  // beats of an access are left to offer
    bool m_valid = false;
    bool m_ready = false;

    // Decides what is offered and taken in the next cycle.
    virtual void next() = 0;

    // Whether another access may be in flight.
    bool room() const;
    uint64_t* words_of(uint64_t address);
    // Begins with an access whose tag is the last free one.
    void begin(Access access);

  private:
    uint64_t m_finished = 0;
    std::vector<Access> m_by_tag;
    Access m_current;  // whose beats are being offered
    uint32_t m_beat = 0;
    Access* m_answer = nullptr;  // whose response has begun
    uint32_t m_answer_beats = 0;
    Answer m_held;  // a beat that was offered and not taken

    void finish(Access& access);
    void check_response(const Answer& answer);
    void check_held(const Answer& answer);
};

// Makes random accesses at the rates that the test sets.
class Walker : public Requester {
  public:
    Walker(Run& run, uint32_t number, const VipPattern& pattern, uint32_t tags);

  protected:
    void next() override;

  private:
    uint64_t m_position = 0;  // of a sequential or strided walk
    uint64_t m_rest = 0;      // cycles without a new request

    uint64_t next_column();
    void make_access();
};

}  // namespace vip
