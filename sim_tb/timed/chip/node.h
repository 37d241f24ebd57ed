// Timing model of a vault's node in the network (noc/node/).
#pragma once

#include <cstdint>
#include <vector>

#include "../vault/crossbar.h"
#include "../vault/fifo.h"
#include "network.inc"
#include "router.h"

namespace vip::timed {

enum MessageClass : uint32_t { kRequests, kResponses };

// The requests of a vault's requesters to other vaults, as packets (client.py).
class Client {
  public:
    Client(const NetworkSizes& sizes, uint32_t vault) : m_sizes(sizes), m_vault(vault) {}

    // `beat`: the beat offered, or null.
    bool offers(const Crossbar::Beat* beat) const { return m_sending || (beat && beat->beat.last); }
    Flit flit(const Crossbar::Beat* beat) const;
    bool takes(const RequestBeat& beat, bool sent) const {
        return m_sending ? !beat.last && m_stored < m_sent : !beat.last || sent;
    }
    // Advances to the next cycle: the beat accepted, or null; whether a flit leaves.
    void edge(const Crossbar::Beat* taken, bool sent);

    // Whether a flit of a returning packet makes a beat; its first does only if it is also the last.
    bool makes_beat(const Flit& flit) const { return m_in_packet || flit.last; }
    ResponseBeat response(const Flit& flit) const;
    void returned(const Flit& flit);

  private:
    const NetworkSizes& m_sizes;
    const uint32_t m_vault;
    uint64_t m_words[kColumnWords] = {};
    uint32_t m_strobes[kColumnWords] = {};
    uint32_t m_stored = 0, m_sent = 0, m_last = 0;
    bool m_partial = false, m_sending = false, m_mask_first = false;
    bool m_in_packet = false;
    uint32_t m_tag = 0;
    uint8_t m_requester = 0;

    bool masked(const RequestBeat& beat) const;
};

// The accesses of other vaults to a vault's memory (server.py).
class Server {
  public:
    explicit Server(const NetworkSizes& sizes)
        : m_origins(uint64_t{1} << sizes.tag_bits), m_busy(m_origins.size()) {}

    // Towards the memory.
    const RequestBeat* request() const {
        return m_requests.valid() ? &m_requests.front() : nullptr;
    }
    // Whether it takes the first flit of a queue; `complete`: a whole packet waits there.
    bool takes(const Flit& flit, bool complete) const;
    bool takes_response(bool sent) const { return !m_valid || pops(sent); }
    bool offers() const { return m_valid; }
    Flit flit() const;
    // Advances to the next cycle: the flit that it takes, or null; whether the memory accepts its
    // beat; the response that it takes, or null; whether its own flit leaves.
    void edge(const Flit* taken, bool request_taken, const ResponseBeat* response, bool sent);

  private:
    struct Origin {
        uint32_t tag;
        uint8_t vault, requester;
        bool write;
    };

    StreamBuffer<RequestBeat, 2> m_requests;
    std::vector<Origin> m_origins;
    std::vector<bool> m_busy;
    uint32_t m_next_tag = 0, m_tag = 0;
    bool m_in_packet = false, m_masked = false;
    uint32_t m_mask = 0, m_words = 0;
    uint64_t m_word = 0;

    bool m_valid = false, m_first = false, m_in_response = false, m_header_sent = false;
    ResponseBeat m_beat = {};
    Origin m_origin = {};

    bool is_header() const { return m_first && !m_header_sent; }
    bool pops(bool sent) const { return m_valid && sent && (!is_header() || m_origin.write); }
};

// A requester's accesses to its own vault, to others, or to a vault that does not exist (demux.py).
class Demux {
  public:
    enum Source : uint32_t { kOwn, kOthers, kNone, kSources };

    static Source target(const NetworkSizes& sizes, uint32_t vault, uint64_t address) {
        const uint64_t number = address >> sizes.address_bits;
        return number == vault ? kOwn : number < sizes.vaults ? kOthers : kNone;
    }
    bool refuses() const { return m_error; }  // whether a request to no vault must wait
    // The response that passes, or null; `own`, `others`: what they offer, or null.
    const ResponseBeat* response(const ResponseBeat* own, const ResponseBeat* others);
    Source selected() const { return m_selected; }
    // Whether a response of its own vault passes if no other is offered. `pass_own`: one is offered;
    // `ends`: its last word is accepted in this cycle.
    bool passes_own() const { return !m_error && (!m_locked || m_owner == kOwnBit); }
    void pass_own(bool ends) {
        if (!m_locked) m_above = above(kOwnBit), m_owner = kOwnBit;
        m_locked = !ends;
        m_selected = kOwn;
    }
    // Advances to the next cycle: whether the response is accepted; a request to no vault, or null.
    void edge(const ResponseBeat* response, bool taken, const RequestBeat* lost);

  private:
    static constexpr uint32_t kOwnBit = 1U << kOwn;
    bool m_locked = false, m_error = false;
    uint32_t m_owner = 0, m_above = 0, m_grant = 0, m_left = 0;
    Source m_selected = kOwn;
    ResponseBeat m_answer = {};
};

// Client, server, their crossbar and their link to the router (node.py, local_link.py).
class Node {
  public:
    Node(const NetworkSizes& sizes, uint32_t vault);

    Crossbar crossbar;  // of requests to other vaults
    Server server;
    uint64_t counters[kNetworkCounters] = {};

    // What goes to the router in this cycle, and credits for flits from it.
    const LinkEnd& to_router() const { return m_out; }
    // Whether it has something for the router in this cycle.
    bool sends() const {
        return m_client.offers(nullptr) || server.offers() || crossbar.request();
    }
    // Works out this cycle, given what comes `from_router` and the response for the server, or null.
    void look(const LinkEnd& from_router, const ResponseBeat* response);
    bool takes_response() const { return server.takes_response(m_sent[kResponses]); }
    // Advances to the next cycle: the beat for the crossbar, or null; the requesters that accepted a
    // response; whether the memory accepted the server's request.
    void edge(const Crossbar::Beat* beat, uint64_t took, bool request_taken);
    // Whether it is empty. `rest` does cycles in which, in this state, nothing arrives or is offered.
    bool idle() const;
    void rest(uint64_t count = 1) { m_above = 0, counters[kNetworkCycles] += count; }

  private:
    struct Arrived {
        std::vector<Flit> flits;
        uint32_t first = 0, level = 0, packets = 0;
    };

    const NetworkSizes& m_sizes;
    Client m_client;
    LinkEnd m_out = {};
    const LinkEnd* m_in = nullptr;
    const ResponseBeat* m_response = nullptr;
    uint32_t m_credits[kClasses], m_above = 0;
    Arrived m_arrived[kClasses];
    // Events of this cycle.
    bool m_sent[kClasses] = {}, m_request_taken = false, m_popped[kClasses] = {};

    const Flit* arrived(uint32_t kind) const {
        const Arrived& queue = m_arrived[kind];
        return queue.level ? &queue.flits[queue.first] : nullptr;
    }
};

}  // namespace vip::timed
