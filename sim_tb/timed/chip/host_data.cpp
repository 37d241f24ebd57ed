#include "host_data.h"

#include <bit>

namespace vip::timed {
namespace {

constexpr uint32_t kPageBytes = 4096, kAllStrobes = 0xff;

uint32_t lowest(uint32_t words) { return std::countr_zero(words); }
uint32_t highest(uint32_t words) { return std::bit_width(words) - 1; }

}  // namespace

void BurstWalker::edge(const HostBurst* burst, bool taken) {
    if (!burst || !m_beats.ready()) {
        m_beats.edge(nullptr, taken);
        return;
    }
    const auto first = static_cast<uint32_t>(burst->address % kPageBytes);
    const uint32_t offset = m_in_burst ? m_next : first;
    const uint32_t following = ((offset | (kWordBytes - 1)) + 1) % kPageBytes;
    const bool last = m_done == burst->length, outside = burst->address >= m_memory_bytes;
    const HostBeat beat = {.column = (burst->address - first + offset) / kColumnBytes,
                           .word = offset / kWordBytes % kColumnWords,
                           .response = outside ? kResponseDecerr : kResponseOkay,
                           .closes = last || following / kColumnBytes != offset / kColumnBytes,
                           .last = last};
    m_beats.edge(&beat, taken);
    m_in_burst = !last;
    m_next = following;
    m_done = last ? 0 : m_done + 1;
}

void ReorderBuffer::edge(bool allocate, bool refused, const ResponseBeat* response, bool retire) {
    const auto next = [this](uint32_t number) {
        return static_cast<uint32_t>((number + 1) % m_done.size());
    };
    if (response) m_done[response->tag] = 1, m_errors[response->tag] = response->error;
    if (allocate) {
        if (refused) m_done[tag] = 1;
        tag = next(tag);
        ++m_occupied;
    }
    if (retire) {
        m_done[head] = m_errors[head] = 0;
        head = next(head);
        --m_occupied;
    }
}

HostRead::HostRead(const HostSizes& sizes)
    : m_request_walker(sizes.memory_bytes),
      m_walker(sizes.memory_bytes),
      m_open(uint64_t{1} << (sizes.tag_bits - 1)),
      m_reorder(uint64_t{1} << (sizes.tag_bits - 1)),
      m_lowest(uint64_t{1} << (sizes.tag_bits - 1)),
      m_words(kColumnWords * m_lowest.size()) {}

void HostRead::edge(const HostBurst* burst, bool taken, const ResponseBeat* response) {
    // Answers: the fetched word, and the next one if there is room for it.
    const HostBeat* const beat = m_walker.beat();
    const bool fire = beat && m_reorder.complete() && m_output.level() + m_fetching < 3;
    const bool retires = fire && beat->closes;
    const Word fetched = m_fetched;
    const bool fetching = m_fetching;
    m_fetching = fire;
    if (fire) {
        const bool failed = beat->response == kResponseOkay && m_reorder.failed();
        m_fetched = {.data = m_words[m_reorder.head * kColumnWords + beat->word],
                     .response = failed ? kResponseSlverr : beat->response,
                     .last = beat->last};
    }
    m_output.edge(fetching ? &fetched : nullptr, true);

    // Requests.
    const HostBeat* const asked = m_request_walker.beat();
    const bool sends = asked && (!asked->closes || (m_requests.ready() && m_reorder.ready()));
    const bool allocates = sends && asked->closes;
    const bool refused = allocates && asked->response != kResponseOkay;
    RequestBeat request = {};
    if (sends) {
        const uint32_t touched = m_touched.with(*asked), low = lowest(touched);
        request = {.address = asked->column * kColumnBytes + low * kWordBytes,
                   .data = 0,
                   .tag = m_reorder.tag,
                   .words = highest(touched) - low,
                   .strobe = kAllStrobes,
                   .write = false,
                   .last = true};
        m_touched.words = allocates ? 0 : touched;
    }
    m_requests.edge(allocates && !refused ? &request : nullptr, taken);

    // Responses of the memory.
    if (response) {
        const uint32_t place = (m_lowest[response->tag] + m_received) % kColumnWords;
        m_words[response->tag * kColumnWords + place] = response->data;
        m_received = response->last ? 0 : (m_received + 1) % kColumnWords;
    }
    if (allocates) m_lowest[m_reorder.tag] = request.address / kWordBytes % kColumnWords;
    m_reorder.edge(allocates, refused, response && response->last ? response : nullptr, retires);

    // Bursts.
    const HostBurst* const input = burst && ready() ? burst : nullptr;
    const HostBurst* const first = m_bursts.valid() ? &m_bursts.front() : nullptr;
    const HostBurst* const open = m_open.valid() ? &m_open.front() : nullptr;
    const bool goes = first && m_request_walker.takes(*first);
    const bool ends = open && m_walker.takes(*open);
    m_request_walker.edge(first, sends);
    m_walker.edge(open, fire);
    m_bursts.edge(input, goes);
    m_open.edge(input, ends);
}

HostWrite::HostWrite(const HostSizes& sizes)
    : m_walker(sizes.memory_bytes),
      m_reorder(uint64_t{1} << (sizes.tag_bits - 1)),
      m_pieces(uint64_t{1} << (sizes.tag_bits - 1)) {}

void HostWrite::send(uint64_t column, uint32_t place, uint32_t end) {
    m_sent.address = column * kColumnBytes + place * kWordBytes;
    m_sent.data = m_words[place].data;
    m_sent.strobe = m_words[place].strobe;
    m_sent.words = end - place;
    m_sent.last = place == end;
}

void HostWrite::edge(const HostBurst* burst, const Word* word, bool taken,
                     const ResponseBeat* response) {
    // Answers.
    const bool complete = m_pieces.valid() && m_reorder.complete();
    const Piece piece = m_pieces.front();
    uint32_t answer = m_burst_response;
    if (m_reorder.failed()) answer = kResponseSlverr;
    if (piece.response != kResponseOkay) answer = piece.response;
    const bool retires = complete && (m_answers.ready() || !piece.last);
    if (retires) m_burst_response = piece.last ? kResponseOkay : answer;
    m_answers.edge(complete && piece.last ? &answer : nullptr, true);

    // The piece being sent, and the one being gathered.
    const bool send_ready = !m_sending || (taken && m_sent.last);
    const HostBeat* const beat = m_walker.beat();
    const bool fire =
        beat && m_beats.valid() && (!beat->closes || (send_ready && m_reorder.ready()));
    const bool allocates = fire && beat->closes;
    const bool refused = allocates && beat->response != kResponseOkay;
    if (taken) {
        m_sending = !m_sent.last;
        const uint64_t column = m_sent.address / kColumnBytes;
        const uint32_t place = m_sent.address / kWordBytes % kColumnWords;
        if (m_sending) send(column, place + 1, place + m_sent.words);
    }
    if (fire) {
        Word& gathered = m_gathered[beat->word];
        const Word& given = m_beats.front();
        for (uint32_t byte = 0; byte < kWordBytes; ++byte) {
            if (!(given.strobe >> byte & 1)) continue;
            const uint64_t mask = uint64_t{0xff} << 8 * byte;
            gathered.data = (gathered.data & ~mask) | (given.data & mask);
            gathered.strobe |= 1U << byte;
        }
        m_touched.words = m_touched.with(*beat);
    }
    const Piece allocated = fire ? Piece{beat->response, beat->last} : Piece{};
    if (allocates) {
        const uint32_t low = lowest(m_touched.words), high = highest(m_touched.words);
        for (uint32_t place = 0; place < kColumnWords; ++place) {
            m_words[place] = m_gathered[place];
            m_gathered[place].strobe = 0;
        }
        m_touched.words = 0;
        m_sending = !refused;
        m_sent.tag = m_reorder.tag;
        m_sent.write = true;
        send(beat->column, low, high);
    }
    m_pieces.edge(allocates ? &allocated : nullptr, retires);
    m_reorder.edge(allocates, refused, response, retires);

    // Bursts and their words.
    const HostBurst* const first = m_bursts.valid() ? &m_bursts.front() : nullptr;
    const bool goes = first && m_walker.takes(*first);
    m_walker.edge(first, fire);
    m_bursts.edge(burst, goes);
    m_beats.edge(word, fire);
}

void HostData::drive(VipChipIn& in) const {
    in.data_awready = m_write.ready();
    in.data_wready = m_write.word_ready();
    in.data_arready = m_read.ready();
    const uint32_t* const answer = m_write.answer();
    in.data_bvalid = answer != nullptr;
    in.data_bresp = answer ? *answer : 0;
    const HostRead::Word* const word = m_read.word();
    in.data_rvalid = word != nullptr;
    in.data_rresp = word ? word->response : 0;
    in.data_rdata = word ? word->data : 0;
    in.data_rlast = word && word->last;
}

void HostData::look() {
    const Crossbar::Beat* const asked = m_crossbar.request();
    if (asked) {
        m_offered = asked->beat;
        m_offered.tag |= asked->source << m_tag_bits;
    }
    begin(asked ? &m_offered : nullptr);
}

ResponseBeat HostData::received(const ResponseBeat& response) const {
    ResponseBeat found = response;
    found.source = response.tag >> m_tag_bits;
    found.tag = response.tag & ((1U << m_tag_bits) - 1);
    return found;
}

bool HostData::takes(const ResponseBeat& response) { return m_crossbar.takes(received(response)); }

void HostData::edge(const VipChipOut& out) {
    const RequestBeat* const requests[] = {m_read.request(), m_write.request()};
    const int selected = m_crossbar.selected(uint64_t{requests[0] != nullptr} |
                                             uint64_t{requests[1] != nullptr} << 1);
    const RequestBeat* const passing = selected < 0 ? nullptr : requests[selected];
    const Crossbar::Beat beat =
        passing ? Crossbar::Beat{*passing, static_cast<uint32_t>(selected)} : Crossbar::Beat{};
    std::optional<ResponseBeat> answers[2];
    for (uint64_t side = 0; side < 2; ++side)
        if (const ResponseBeat* found = m_crossbar.response(side)) answers[side] = *found;
    const auto given = [&](uint64_t side) { return answers[side] ? &*answers[side] : nullptr; };
    const HostBurst reads = {out.data_araddr, static_cast<uint32_t>(out.data_arlen)};
    const HostBurst writes = {out.data_awaddr, static_cast<uint32_t>(out.data_awlen)};
    const HostWrite::Word word = {out.data_wdata, static_cast<uint32_t>(out.data_wstrb)};
    m_read.edge(out.data_arvalid ? &reads : nullptr, passing && selected == 0, given(0));
    m_write.edge(out.data_awvalid ? &writes : nullptr, out.data_wvalid ? &word : nullptr,
                 passing && selected == 1, given(1));
    const std::optional<ResponseBeat> arrival =
        response ? std::optional(received(*response)) : std::nullopt;
    m_crossbar.edge(passing ? &beat : nullptr, taken, arrival ? &*arrival : nullptr, ~uint64_t{0});
}

void HostPlace::look() {
    const RequestBeat* const first = m_requests.valid() ? &m_requests.front() : nullptr;
    const bool own = first && m_demux.target(m_sizes, m_vault, first->address) == Demux::kOwn;
    begin(own ? first : nullptr);
    m_passed = own ? nullptr : first;
    m_chosen = false;
}

void HostPlace::choose(const ResponseBeat* own) {
    const ResponseBeat* const found = m_demux.response(own, m_next ? m_next->answer() : nullptr);
    m_chosen = true;
    m_offers = found != nullptr;
    if (found) m_offered = *found;
}

bool HostPlace::takes(const ResponseBeat& own) {
    choose(&own);
    return m_offers && m_demux.selected() == Demux::kOwn && m_responses.ready();
}

void HostPlace::pass() {
    if (!m_chosen) choose(nullptr);
    m_took = m_offers && m_demux.selected() == Demux::kOthers && m_responses.ready();
    m_fired = request ? taken : m_passed && m_next && m_next->ready();
}

void HostPlace::edge(const RequestBeat* input, bool answered) {
    m_demux.edge(m_offers ? &m_offered : nullptr, m_offers && m_responses.ready(), nullptr);
    m_responses.edge(m_offers ? &m_offered : nullptr, answered);
    m_requests.edge(input, m_fired);
}

}  // namespace vip::timed
