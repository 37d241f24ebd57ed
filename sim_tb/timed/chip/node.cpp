// The routers and nodes of the torus (noc/router, noc/node).
#include <bit>

#include "router.h"
#include "node.h"

namespace vip::timed {

Router::Router(const NetworkSizes& sizes, uint32_t vault)
    : m_sizes(sizes),
      m_routes(sizes.routes + vault * sizes.vaults),
      m_buffers(kPorts * kChannels * sizes.buffer_flits) {
    for (Output& output : m_outputs) output.credits = static_cast<uint32_t>(sizes.buffer_flits);
}

// noc/router/link_input.py
void Router::arrive(uint32_t port, const LinkEnd& link) {
    const uint32_t number = port * kChannels + link.channel;
    Input& input = m_inputs[number];
    if (!input.in_packet) {
        const bool local = port == m_sizes.local;
        const uint32_t kind =
            local ? link.channel : link.channel / static_cast<uint32_t>(m_sizes.virtual_channels);
        const uint32_t route = m_routes[link.flit.to], target = route / kMostVcs;
        const uint32_t channel = target == m_sizes.local
                                     ? kind
                                     : kind * static_cast<uint32_t>(m_sizes.virtual_channels) +
                                           route % kMostVcs;
        input.output = static_cast<uint8_t>(target * kChannels + channel);
    }
    place(number, input.level) = {link.flit, !input.in_packet, input.output};
    ++input.level;
    m_waiting |= 1U << number;
    input.in_packet = !link.flit.last;
}

uint32_t Router::held() const {
    uint32_t ports = 0;
    for (uint32_t left = m_waiting; left; left &= left - 1) {
        const uint32_t input = std::countr_zero(left);
        ports |= 1U << input / kChannels | 1U << head(input).output / kChannels;
    }
    return ports;
}

void Router::cycle(const LinkEnd* const in[kPorts], LinkEnd out[kPorts]) {
    const auto ports = static_cast<uint32_t>(m_sizes.ports);
    // Flits that may leave (output_channel.py, arbiter.py).
    uint32_t headers[kPorts * kChannels] = {}, contended = 0, eligible = 0;
    for (uint32_t left = m_waiting; left; left &= left - 1) {
        const uint32_t number = std::countr_zero(left);
        const Waiting& head = place(number, 0);
        const Output& output = m_outputs[head.output];
        if (head.is_header) {
            headers[head.output] |= 1U << number;
            contended |= 1U << head.output;
        } else if (output.credits) {
            eligible |= 1U << number;
        }
    }
    for (uint32_t left = contended; left; left &= left - 1) {
        const uint32_t number = std::countr_zero(left);
        const Output& output = m_outputs[number];
        const uint32_t first = headers[number] & output.preferred;
        if (output.credits && !output.allocated) eligible |= first ? first : headers[number];
    }
    // Choose an input of each port, then a port for each output.
    uint32_t chosen[kPorts] = {}, requests[kPorts] = {};
    for (uint32_t port = 0; port < ports; ++port) {
        const uint32_t mine = eligible >> port * kChannels & ((1U << kChannels) - 1);
        if (!mine) continue;
        chosen[port] = port * kChannels + std::countr_zero(granted(mine, m_input_above[port]));
        requests[place(chosen[port], 0).output / kChannels] |= 1U << port;
    }
    uint32_t served[kPorts * kChannels] = {}, spent = 0, popped[kPorts] = {};
    m_left = false;
    for (uint32_t port = 0; port < ports; ++port) {
        LinkEnd& end = out[port];
        if (end.valid != (requests[port] != 0)) end.valid = requests[port] != 0;
        if (!requests[port]) continue;
        m_left = true;
        const uint32_t grant = granted(requests[port], m_output_above[port]);
        const uint32_t source = std::countr_zero(grant), number = chosen[source];
        const Waiting& head = place(number, 0);
        m_output_above[port] = above(grant);
        m_input_above[source] = above(1U << number % kChannels);
        end.channel = head.output % kChannels;
        end.flit = head.flit;
        popped[source] = 1U << number % kChannels;
        spent |= 1U << head.output;
        if (head.is_header) served[head.output] = 1U << number;
        m_outputs[head.output].allocated = !head.flit.last;
        Input& input = m_inputs[number];
        input.first = (input.first + 1) % m_sizes.buffer_flits;
        if (!--input.level) m_waiting &= ~(1U << number);
    }
    for (uint32_t left = contended; left; left &= left - 1) {
        const uint32_t number = std::countr_zero(left);
        Output& output = m_outputs[number];
        const uint32_t others = headers[number] & ~output.preferred;
        const uint32_t following = others & above(output.preferred);
        if (headers[number] & output.preferred & ~served[number] || !others) continue;
        output.preferred = following ? following & -following : others & -others;
    }
    for (uint32_t port = 0; port < ports; ++port) {
        const LinkEnd& link = *in[port];
        for (uint32_t left = link.credit; left; left &= left - 1)
            ++m_outputs[port * kChannels + std::countr_zero(left)].credits;
        if (out[port].credit != popped[port]) out[port].credit = static_cast<uint8_t>(popped[port]);
        m_left = m_left || popped[port];
        if (link.valid) arrive(port, link);
    }
    for (; spent; spent &= spent - 1) --m_outputs[std::countr_zero(spent)].credits;
}

namespace {

constexpr uint32_t kAllBytes = 0xff;

}  // namespace

bool Client::masked(const RequestBeat& beat) const {
    return beat.write && (m_partial || beat.strobe != kAllBytes);
}

Flit Client::flit(const Crossbar::Beat* offered) const {
    Flit flit = {};
    if (m_sending) {
        for (uint32_t word = 0; word < kColumnWords && m_mask_first; ++word)
            flit.data |= uint64_t{m_strobes[word]} << 8 * word;
        if (!m_mask_first) flit.data = m_words[m_sent];
        flit.last = !m_mask_first && m_sent == m_last;
        return flit;
    }
    const RequestBeat& beat = offered->beat;
    const uint64_t word = (beat.address & ((uint64_t{1} << m_sizes.address_bits) - 1)) / kWordBytes;
    // All words of a request are in one column.
    const uint64_t first = (word - m_stored) % kColumnWords;
    flit.word = beat.write ? word / kColumnWords * kColumnWords + first : word;
    flit.tag = beat.tag;
    flit.requester = static_cast<uint8_t>(offered->source);
    flit.to = static_cast<uint8_t>(beat.address >> m_sizes.address_bits);
    flit.from = static_cast<uint8_t>(m_vault);
    flit.words = static_cast<uint8_t>(beat.write ? m_stored : beat.words);
    flit.write = beat.write;
    flit.masked = masked(beat);
    flit.last = !beat.write;
    return flit;
}

void Client::edge(const Crossbar::Beat* taken, bool sent) {
    if (m_sending && sent) {
        if (m_mask_first) {
            m_mask_first = false;
        } else {
            m_sending = m_sent != m_last;
            m_sent = (m_sent + 1) % kColumnWords;
        }
    }
    if (!taken || !taken->beat.write) return;
    const RequestBeat& beat = taken->beat;
    const bool partial = masked(beat);
    m_words[m_stored] = beat.data;
    m_strobes[m_stored] = beat.strobe;
    m_partial = partial;
    if (beat.last) {
        m_partial = false;
        m_sending = true;
        m_mask_first = partial;
        m_sent = 0;
        m_last = m_stored;
    }
    m_stored = beat.last ? 0 : (m_stored + 1) % kColumnWords;
}

ResponseBeat Client::response(const Flit& flit) const {
    return {.data = flit.data,
            .tag = m_in_packet ? m_tag : flit.tag,
            .source = m_in_packet ? m_requester : flit.requester,
            .last = flit.last,
            .error = flit.error};
}

void Client::returned(const Flit& flit) {
    if (!m_in_packet) {
        m_tag = flit.tag;
        m_requester = flit.requester;
    }
    m_in_packet = !flit.last;
}

bool Server::takes(const Flit& flit, bool complete) const {
    if (m_in_packet) return m_masked || m_requests.ready();
    return complete && !m_busy[m_next_tag] && (flit.write || m_requests.ready());
}

Flit Server::flit() const {
    const bool header = is_header();
    return {.data = m_beat.data,
            .word = 0,
            .tag = m_origin.tag,
            .to = m_origin.vault,
            .from = 0,
            .requester = m_origin.requester,
            .words = 0,
            .write = false,
            .masked = false,
            .last = header ? m_origin.write : m_beat.last,
            .error = m_beat.error};
}

void Server::edge(const Flit* taken, bool request_taken, const ResponseBeat* response, bool sent) {
    // Responses.
    const bool pop = pops(sent), header = is_header();
    if (sent && m_valid) m_header_sent = header && !m_origin.write;
    m_valid = response || (m_valid && !pop);
    if (response) {
        m_beat = *response;
        m_first = !m_in_response;
        m_in_response = !response->last;
        m_origin = m_origins[response->tag];
    }
    // Requests.
    const bool begins = taken && !m_in_packet;
    RequestBeat beat = {};
    bool makes_beat = false;
    if (begins) {
        makes_beat = !taken->write;
        beat = {.address = taken->word * kWordBytes,
                .data = 0,
                .tag = m_next_tag,
                .words = taken->words,
                .strobe = kAllBytes,
                .write = false,
                .last = taken->last};
        m_origins[m_next_tag] = {taken->tag, taken->from, taken->requester, taken->write};
        m_busy[m_next_tag] = true;
        m_tag = m_next_tag;
        m_next_tag = (m_next_tag + 1) % m_origins.size();
        m_in_packet = taken->write;
        m_masked = taken->masked;
        m_mask = ~uint32_t{0};
        m_word = taken->word;
        m_words = taken->words;
    } else if (taken) {
        makes_beat = !m_masked;
        beat = {.address = m_word * kWordBytes,
                .data = taken->data,
                .tag = m_tag,
                .words = m_words,
                .strobe = m_mask & kAllBytes,
                .write = true,
                .last = taken->last};
        if (m_masked) {
            m_mask = static_cast<uint32_t>(taken->data);
            m_masked = false;
        } else {
            m_in_packet = !taken->last;
            m_mask >>= 8;
            ++m_word;
            m_words = (m_words - 1) % kColumnWords;
        }
    }
    if (response && response->last && !(begins && m_tag == response->tag))
        m_busy[response->tag] = false;
    m_requests.edge(makes_beat ? &beat : nullptr, request_taken);
}

const ResponseBeat* Demux::response(const ResponseBeat* own, const ResponseBeat* others) {
    const ResponseBeat* const offered[kSources] = {own, others, m_error ? &m_answer : nullptr};
    uint32_t requests = 0;
    for (uint32_t source = 0; source < kSources; ++source)
        requests |= uint32_t{offered[source] != nullptr} << source;
    m_grant = m_locked ? m_owner : granted(requests, m_above);
    if (!(m_grant & requests)) return nullptr;
    m_selected = static_cast<Source>(std::countr_zero(m_grant));
    return offered[m_selected];
}

void Demux::edge(const ResponseBeat* response, bool taken, const RequestBeat* lost) {
    if (response) {
        if (!m_locked) m_above = above(m_grant);
        m_owner = m_grant;
        m_locked = !(taken && response->last);
        if (taken && m_selected == kNone) {
            m_error = !m_answer.last;
            m_answer.last = --m_left == 0;
        }
    }
    if (lost && lost->last) {
        m_error = true;
        m_left = lost->words;
        m_answer = {.data = 0, .tag = lost->tag, .source = 0, .last = !m_left, .error = true};
    }
}

Node::Node(const NetworkSizes& sizes, uint32_t vault)
    : crossbar(sizes.requesters), server(sizes), m_sizes(sizes), m_client(sizes, vault) {
    for (uint32_t kind = 0; kind < kClasses; ++kind) {
        m_credits[kind] = static_cast<uint32_t>(sizes.buffer_flits);
        m_arrived[kind].flits.resize(sizes.buffer_flits);
    }
}

bool Node::idle() const {
    return !crossbar.answered() && !crossbar.request() && !server.request() && !server.offers() &&
           !m_out.valid && !m_out.credit && !m_arrived[kRequests].level &&
           !m_arrived[kResponses].level && !m_client.offers(nullptr);
}

void Node::look(const LinkEnd& from_router, const ResponseBeat* response) {
    m_in = &from_router;
    const Crossbar::Beat* beat = crossbar.request();
    const bool offers[kClasses] = {m_client.offers(beat), server.offers()};
    uint32_t requests = 0;
    for (uint32_t kind = 0; kind < kClasses; ++kind)
        requests |= uint32_t{offers[kind] && m_credits[kind]} << kind;
    const uint32_t grant = granted(requests, m_above);
    m_above = grant ? above(grant) : 0;
    for (uint32_t kind = 0; kind < kClasses; ++kind) m_sent[kind] = grant >> kind & 1;
    m_request_taken = beat && m_client.takes(beat->beat, m_sent[kRequests]);
    m_response = response && takes_response() ? response : nullptr;
    const Flit *asked = arrived(kRequests), *answer = arrived(kResponses);
    m_popped[kRequests] = asked && server.takes(*asked, m_arrived[kRequests].packets);
    m_popped[kResponses] = answer && (!m_client.makes_beat(*answer) ||
                                      crossbar.takes(m_client.response(*answer)));
}

void Node::edge(const Crossbar::Beat* beat, uint64_t took, bool request_taken) {
    const Crossbar::Beat* asked = crossbar.request();
    const Crossbar::Beat leaves = asked ? *asked : Crossbar::Beat{};
    counters[kNetworkCycles] += 1;
    counters[kNetworkRemoteRequests] += m_request_taken && leaves.beat.last;
    counters[kNetworkServedRequests] += request_taken && server.request()->last;
    counters[kNetworkSentFlits] += m_out.valid;

    // Towards the router.
    m_out.valid = m_sent[kRequests] || m_sent[kResponses];
    if (m_out.valid) {
        m_out.channel = m_sent[kResponses];
        m_out.flit = m_sent[kResponses] ? server.flit() : m_client.flit(asked);
    }
    for (uint32_t kind = 0; kind < kClasses; ++kind) {
        m_credits[kind] += m_in->credit >> kind & 1;
        m_credits[kind] -= m_sent[kind];
    }

    // From the router.
    Flit request = {}, answer = {};
    if (m_popped[kRequests]) request = *arrived(kRequests);
    if (m_popped[kResponses]) answer = *arrived(kResponses);
    const bool answers = m_popped[kResponses] && m_client.makes_beat(answer);
    const ResponseBeat response = m_client.response(answer);
    crossbar.edge(beat, m_request_taken, answers ? &response : nullptr, took);
    if (m_popped[kResponses]) m_client.returned(answer);
    m_client.edge(m_request_taken ? &leaves : nullptr, m_sent[kRequests]);
    server.edge(m_popped[kRequests] ? &request : nullptr, request_taken, m_response,
                m_sent[kResponses]);
    m_out.credit = 0;
    for (uint32_t kind = 0; kind < kClasses; ++kind) {
        Arrived& queue = m_arrived[kind];
        const auto depth = static_cast<uint32_t>(queue.flits.size());
        if (m_popped[kind]) {
            queue.packets -= queue.flits[queue.first].last;
            queue.first = (queue.first + 1) % depth;
            --queue.level;
            m_out.credit |= static_cast<uint8_t>(1U << kind);
        }
        if (m_in->valid && m_in->channel == kind) {
            queue.flits[(queue.first + queue.level) % depth] = m_in->flit;
            ++queue.level;
            queue.packets += m_in->flit.last;
        }
    }
}

}  // namespace vip::timed
