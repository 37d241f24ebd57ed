// Timing model of the host's data port (soc/host/data.py), for the bursts of the simulation's host:
// incrementing, of whole words, with one identifier. The host always accepts answers.
#pragma once

#include <cstdint>
#include <vector>

#include "../vault/crossbar.h"
#include "../vault/fifo.h"
#include "control.inc"
#include "host_link.h"
#include "node.h"
#include "vip_chip.h"

namespace vip::timed {

// A burst, and one of its beats (burst.py).
struct HostBurst {
    uint64_t address;
    uint32_t length;  // beats minus one
};
struct HostBeat {
    uint64_t column;
    uint32_t word, response;
    bool closes, last;
};

class BurstWalker {
  public:
    explicit BurstWalker(uint64_t memory_bytes) : m_memory_bytes(memory_bytes) {}

    const HostBeat* beat() const { return m_beats.valid() ? &m_beats.front() : nullptr; }
    // Whether it takes the last beat of the burst, and with it the burst.
    bool takes(const HostBurst& burst) const { return m_beats.ready() && m_done == burst.length; }
    void edge(const HostBurst* burst, bool taken);

  private:
    const uint64_t m_memory_bytes;
    StreamBuffer<HostBeat, 2> m_beats;
    bool m_in_burst = false;
    uint32_t m_next = 0, m_done = 0;
};

// Tags of pieces, which retire in order (reorder_buffer.py).
class ReorderBuffer {
  public:
    explicit ReorderBuffer(uint64_t tags) : m_done(tags), m_errors(tags) {}

    bool ready() const { return m_occupied != m_done.size(); }
    bool complete() const { return m_done[head]; }
    bool failed() const { return m_errors[head]; }
    void edge(bool allocate, bool refused, const ResponseBeat* response, bool retire);

    uint32_t tag = 0, head = 0;

  private:
    std::vector<uint8_t> m_done, m_errors;
    size_t m_occupied = 0;
};

// Words of a piece that its beats touch.
struct Touched {
    uint32_t words = 0;
    uint32_t with(const HostBeat& beat) const { return words | 1U << beat.word; }
};

class HostRead {
  public:
    explicit HostRead(const HostSizes& sizes);

    bool ready() const { return m_bursts.ready() && m_open.ready(); }
    const RequestBeat* request() const {
        return m_requests.valid() ? &m_requests.front() : nullptr;
    }
    struct Word {
        uint64_t data;
        uint32_t response;
        bool last;
    };
    const Word* word() const { return m_output.valid() ? &m_output.front() : nullptr; }
    bool idle() const {
        return !m_bursts.valid() && !m_open.holds() && !m_walker.beat() && !m_fetching &&
               !m_output.valid();
    }
    // Advances to the next cycle: the burst offered, or null; whether the request is accepted; the
    // memory's response, or null.
    void edge(const HostBurst* burst, bool taken, const ResponseBeat* response);

  private:
    BurstWalker m_request_walker, m_walker;
    StreamBuffer<HostBurst, 2> m_bursts;
    Fifo<HostBurst> m_open;
    ReorderBuffer m_reorder;
    StreamBuffer<RequestBeat, 2> m_requests;
    Touched m_touched;
    std::vector<uint32_t> m_lowest;
    std::vector<uint64_t> m_words;
    uint32_t m_received = 0;
    bool m_fetching = false;
    Word m_fetched = {};
    StreamBuffer<Word, 3> m_output;
};

class HostWrite {
  public:
    explicit HostWrite(const HostSizes& sizes);

    struct Word {
        uint64_t data;
        uint32_t strobe;
    };
    bool ready() const { return m_bursts.ready(); }
    bool word_ready() const { return m_beats.ready(); }
    const RequestBeat* request() const { return m_sending ? &m_sent : nullptr; }
    // The answer to a burst, or null.
    const uint32_t* answer() const { return m_answers.valid() ? &m_answers.front() : nullptr; }
    bool idle() const {
        return !m_bursts.valid() && !m_beats.valid() && !m_walker.beat() && !m_pieces.holds() &&
               !m_sending && !m_answers.valid();
    }
    // As for HostRead, with the word offered, or null.
    void edge(const HostBurst* burst, const Word* word, bool taken, const ResponseBeat* response);

  private:
    struct Piece {
        uint32_t response;
        bool last;
    };
    BurstWalker m_walker;
    StreamBuffer<HostBurst, 4> m_bursts;
    StreamBuffer<Word, 2> m_beats;
    ReorderBuffer m_reorder;
    Touched m_touched;
    Word m_gathered[kColumnWords] = {}, m_words[kColumnWords] = {};
    // Whether `m_sent` is offered.
    bool m_sending = false;
    RequestBeat m_sent = {};
    Fifo<Piece> m_pieces;
    uint32_t m_burst_response = 0;
    StreamBuffer<uint32_t, 2> m_answers;

    void send(uint64_t column, uint32_t place, uint32_t end);
};

// Both directions and their crossbar, whose tags have one bit more.
class HostData final : public HostLink {
  public:
    explicit HostData(const HostSizes& sizes)
        : m_tag_bits(sizes.tag_bits - 1), m_read(sizes), m_write(sizes) {}

    // What the host sees in this cycle.
    void drive(VipChipIn& in) const;
    bool takes(const ResponseBeat& response) override;
    // Begin and end of a cycle, in which the host drove `out`.
    void look();
    void edge(const VipChipOut& out);
    bool idle() const { return m_read.idle() && m_write.idle() && !m_crossbar.request(); }

  private:
    const uint64_t m_tag_bits;
    HostRead m_read;
    HostWrite m_write;
    Crossbar m_crossbar{2};
    RequestBeat m_offered = {};

    ResponseBeat received(const ResponseBeat& response) const;
};

// A vault's place in the chain that passes on the host's accesses (chain.py). In a cycle all places
// `look`, then the tiles advance, then all places `pass` and, last one first, `edge`.
class HostPlace final : public HostLink {
  public:
    // `next`: the next place, or null.
    HostPlace(const NetworkSizes& sizes, uint32_t vault, const HostPlace* next)
        : m_sizes(sizes), m_vault(vault), m_next(next) {}

    void look();
    bool takes(const ResponseBeat& own) override;
    void pass();
    // Advances to the next cycle: the request that the previous place offers, or null; whether that
    // place accepts the response.
    void edge(const RequestBeat* input, bool answered);

    // In this cycle, towards the previous place: whether it accepts a request; its response, or null.
    bool ready() const { return m_requests.ready(); }
    const ResponseBeat* answer() const {
        return m_responses.valid() ? &m_responses.front() : nullptr;
    }
    // Towards the next place: a request, or null; whether its response is accepted.
    const RequestBeat* passed() const { return m_passed; }
    bool took() const { return m_took; }
    bool idle() const { return !m_requests.valid() && !m_responses.valid(); }

  private:
    const NetworkSizes& m_sizes;
    const uint32_t m_vault;
    const HostPlace* const m_next;
    Demux m_demux;
    StreamBuffer<RequestBeat, 2> m_requests;
    StreamBuffer<ResponseBeat, 2> m_responses;
    // Of this cycle.
    const RequestBeat* m_passed = nullptr;
    ResponseBeat m_offered = {};  // chosen by the demux
    bool m_chosen = false, m_offers = false, m_took = false, m_fired = false;

    void choose(const ResponseBeat* own);
};

}  // namespace vip::timed
