// The controller of a vault's memory, and its schedulers (memory/controller/): which request goes to
// its bank's queue, and which bank's command is issued.
#include <algorithm>
#include <bit>

#include "controller.h"

namespace vip::timed {

namespace {

uint32_t field(uint64_t address, uint64_t low, uint64_t bits) {
    return static_cast<uint32_t>(address >> low & ((uint64_t{1} << bits) - 1));
}

}  // namespace

Controller::Controller(const VaultSizes& sizes, Dram* dram)
    : m_sizes(sizes),
      m_device(dram),
      m_banks(sizes),
      m_queue(sizes),
      m_pending_reads(sizes.read_columns),
      m_pending_writes(sizes.write_depth),
      m_beats(sizes.read_columns * kColumnWords),
      m_acknowledgements(kAcknowledgements),
      m_store(sizes.write_slots * kColumnWords),
      m_free_slots((sizes.write_slots + 63) / 64, ~uint64_t{0}),
      m_slots_left(static_cast<uint32_t>(sizes.write_slots)) {
    if (sizes.write_slots % 64) m_free_slots.back() = (uint64_t{1} << sizes.write_slots % 64) - 1;
    if (sizes.scheduler == kLearned)
        m_learner = std::make_unique<Learner>(sizes);
    for (uint64_t number = 0; number < sizes.banks; ++number)
        m_due.push_back(static_cast<uint32_t>(sizes.trefi * number / sizes.banks));
}

// Issues a READ or WRITE.
void Controller::transfer(const Request& head, bool write) {
    ++counters[write ? kVaultWrites : kVaultReads];
    counters[kVaultTurnarounds] += write != m_bus_writes;
    ++counters[m_banks.event(head.bank)];
    const uint64_t units = m_now >> kUnitBits;
    const uint64_t age = (units - head.arrival) % (1 << kArrivalBits);
    uint32_t place = 0;
    while (place < kLatencyLimits && age >= kLimits[place] >> kUnitBits) ++place;
    ++counters[kVaultLatency0 + place];
    m_bus_writes = write;
    m_burst = m_now + kBurstClocks;
    uint64_t busy;
    Words words = {0, head.tag, head.source, head.slot, head.first, head.last};
    if (write) {
        m_reads = std::max(m_reads, m_now + m_sizes.turnaround_to_read);
        m_writes = m_burst;
        m_acknowledgements.enter(m_now) = {0, head.tag, head.source, true, false};
        words.start = busy = m_now + m_sizes.tcwl;
        // A whole column is passed with its last word, which frees its slot.
        if (m_device) words.start += kColumnWords - 1;
        m_pending_writes.enter(m_now, words);
        --m_unwritten;
    } else {
        m_reads = m_burst;
        m_writes = std::max(m_writes, m_now + m_sizes.turnaround_to_write);
        ++m_reserved;
        words.start = m_now + m_sizes.tcl + 1;
        busy = words.start;
        // A whole column is passed with its first wanted word.
        if (m_device) words.start += words.first;
        m_pending_reads.enter(m_now, words);
    }
    // The DRAM sees the last word of a write one cycle after the store is read.
    m_busy_until = std::max(m_busy_until, busy + kColumnWords + 1);
}

// Issues a command: what it begins, and how it restricts later ones.
void Controller::command(int bank, DramKind kind) {
    const Request& head = m_banks.head(bank);
    m_dram.kind = kind;
    m_dram.bank = static_cast<uint32_t>(bank);
    m_dram.row = head.row;
    m_dram.column = head.column;
    m_busy_until = std::max(m_busy_until, m_now + 2);
    if (kind == kRead || kind == kWrite) {
        transfer(head, kind == kWrite);
    } else if (kind == kAct) {
        m_windows[m_oldest_act] = m_now + m_sizes.tfaw;
        m_oldest_act = (m_oldest_act + 1) % 4;
        m_activates = std::max(m_now + m_sizes.trrd, m_windows[m_oldest_act]);
    } else if (kind == kRefresh) {
        ++counters[kVaultRefreshes];
    }
}

// Offers the next response after the last was taken. Responses of one beat go before reads, but never
// interrupt one.
void Controller::respond() {
    const bool acknowledged = m_acknowledgements.valid(m_now) && !m_in_response;
    m_response_valid = acknowledged || m_beats.valid(m_now);
    if (acknowledged) {
        ResponseBeat& beat = m_acknowledgements.front();
        beat.data = m_beats.valid(m_now) ? m_beats.front().data : m_beats.last().data;
        m_response = &beat;
        m_acknowledgements.leave(m_now);
    } else if (m_response_valid) {
        const ResponseBeat& beat = m_beats.front();
        m_response = &beat;
        m_in_response = !beat.last;
        m_reserved -= beat.last;
        m_beats.leave(m_now);
    }
}

void Controller::skip(uint32_t count) {
    m_response_valid = false;
    m_responds_from = m_now + count - 1;
    for (uint32_t number = 1; number < count; ++number) {
        m_ends_before = m_beats.front().last;
        m_beats.leave(m_now + number - 1);
    }
}

// Ends a response whose beats were taken early.
void Controller::end_response() {
    if (!m_ends_before || m_now + 1 != m_responds_from) return;
    m_in_response = m_ends_before = false;
    --m_reserved;
}

// The banks with a refresh that becomes due.
uint64_t Controller::refreshes_due() {
    uint64_t due = 0;
    while (m_due_at == m_now) {
        due |= uint64_t{1} << m_next_due;
        if (++m_next_due == m_due.size()) m_next_due = 0, m_interval += m_sizes.trefi;
        m_due_at = m_interval + m_due[m_next_due];
    }
    return due;
}

// Whether the offered beat completes a request. `refuses`: whether an error can be answered.
bool Controller::decode(const RequestBeat& beat, uint32_t source, bool refuses) {
    const auto word = static_cast<uint32_t>(beat.address / kWordBytes % kColumnWords);
    const bool outside = beat.address >> m_sizes.address_bits;
    accepted = beat.last ? (outside ? refuses : m_queue.ready()) && (!beat.write || m_slot_valid)
                         : m_slot_valid;
    if (!accepted) return false;
    const uint32_t first = m_in_write ? m_write_first : word;
    if (beat.write) m_store[m_slot * kColumnWords + word] = {beat.data, beat.strobe};
    m_write_first = first;
    m_in_write = !beat.last;
    if (!beat.last) return false;
    if (outside) [[unlikely]] {
        m_acknowledgements.enter(m_now) = {0, beat.tag, source, true, true};
        return false;
    }
    m_queue.next() = {
        .row = field(beat.address, m_sizes.row_low, m_sizes.row_bits),
        .tag = beat.tag,
        .stamp = m_stamp,
        .column =
            static_cast<uint16_t>(field(beat.address, m_sizes.column_low, m_sizes.column_bits)),
        .slot = static_cast<uint16_t>(m_slot),
        .arrival = static_cast<uint16_t>(m_now >> kUnitBits),
        .bank = static_cast<uint8_t>(field(beat.address, m_sizes.bank_low, m_sizes.bank_bits)),
        .source = static_cast<uint8_t>(source),
        .first = static_cast<uint8_t>(first),
        .last = static_cast<uint8_t>(beat.write ? word : (word + beat.words) % kColumnWords),
        .write = beat.write,
    };
    m_stamp = static_cast<uint32_t>((m_stamp + 1) & ((uint64_t{1} << m_sizes.stamp_bits) - 1));
    if (beat.write) m_slot_valid = false, ++m_unwritten;
    return true;
}

// Reserves the slot for the next write, one cycle ahead.
void Controller::reserve_slot() {
    size_t word = 0;
    while (word < m_free_slots.size() && !m_free_slots[word]) ++word;
    m_slot_valid = word < m_free_slots.size();
    if (!m_slot_valid) return;
    m_slot = static_cast<uint32_t>(64 * word + std::countr_zero(m_free_slots[word]));
    m_free_slots[word] &= m_free_slots[word] - 1;
    --m_slots_left;
}

// Takes a word of a column being read from the bus.
void Controller::read_word(uint64_t data) {
    const Words& current = m_pending_reads.front();
    const uint64_t word = m_now - current.start;
    if (word >= current.first && word <= current.last)
        m_beats.enter(m_now) = {.data = data,
                                .tag = current.tag,
                                .source = current.source,
                                .last = word == current.last,
                                .error = false};
    if (word == kColumnWords - 1) m_pending_reads.leave(m_now);
}

// Takes all wanted words of a column when the first is on the bus. Each of the others arrives before
// it could be offered.
void Controller::read_column() {
    const Words& current = m_pending_reads.front();
    const uint64_t* const column = m_device->take();
    for (uint32_t word = current.first; word <= current.last; ++word) {
        ResponseBeat& beat = m_beats.enter(m_now);
        beat.data = column[word];
        beat.tag = current.tag;
        beat.source = current.source;
        beat.last = word == current.last;
        beat.error = false;
    }
    m_pending_reads.leave(m_now);
}

void Controller::leave_slot(uint32_t slot) {
    m_free_slots[slot / 64] |= uint64_t{1} << slot % 64;
    ++m_slots_left;
}

// Sends a word of a column being written from the store. The last one frees its slot.
void Controller::write_word() {
    const Words& sent = m_pending_writes.front();
    const uint64_t word = m_now - sent.start;
    const Stored& stored = m_store[sent.slot * kColumnWords + word];
    m_dram.write_data = stored.data;
    m_dram.write_strobe = word >= sent.first && word <= sent.last ? stored.strobe : 0;
    if (word != kColumnWords - 1) return;
    leave_slot(sent.slot);
    m_pending_writes.leave(m_now);
}

// After a command for a write come an acknowledgement in a queue and the response; for a read, the
// first word on the bus, a beat in a queue and the response.
uint64_t Controller::responds() const {
    if (m_response_valid) return m_now;
    const uint64_t from = std::max(m_responds_from, m_now);
    const uint64_t held = std::min(m_acknowledgements.valid_from(), m_beats.valid_from());
    uint64_t found = std::max(held, from) + 1;
    found = std::min(found, m_pending_reads.next() + 3);
    if (m_unwritten) found = std::min(found, std::max(m_writes, m_now) + 3);
    if (m_queue.occupied() | m_banks.holds()) found = std::min(found, m_now + m_sizes.tcl + 4);
    return found;
}

void Controller::write_column() {
    const Words& sent = m_pending_writes.front();
    Dram::Word words[kColumnWords];
    find_words(sent, words);
    m_device->put(words);
    leave_slot(sent.slot);
    m_pending_writes.leave(m_now);
}

void Controller::find_words(const Words& sent, Dram::Word (&words)[kColumnWords]) const {
    for (uint32_t word = 0; word < kColumnWords; ++word) {
        const Stored& stored = m_store[sent.slot * kColumnWords + word];
        words[word] = {stored.data, word >= sent.first && word <= sent.last ? stored.strobe : 0};
    }
}

void Controller::settle() {
    Dram::Word words[kColumnWords];
    const bool writes = m_device->knows_write();
    if (writes) find_words(m_pending_writes.front(), words);
    m_device->settle(writes ? words : nullptr);
}

// How many cycles without a request change nothing.
uint64_t Controller::rest_of_all() const {
    const bool moves = m_busy_until > m_now || m_queue.occupied() || m_response_valid ||
                       m_responds_from > m_now || m_beats.holds() || m_acknowledgements.holds() ||
                       m_occupancy || !m_slot_valid || m_learner;
    return moves ? 0 : std::min(m_banks.rest(), m_due_at - m_now);
}

void Controller::cycle(const RequestBeat* beat, uint32_t source, bool response_taken,
                       uint64_t read_data) {
    // Commands.
    const bool acknowledges = m_acknowledgements.ready();
    m_banks.look(m_reads <= m_now && m_reserved != m_sizes.read_columns,
                 m_writes <= m_now && acknowledges, m_activates <= m_now);
    int issued = -1;
    if (m_learner) [[unlikely]] {
        issued = issue_learned();
    } else if (m_banks.column | m_banks.row) {
        issued = issue();
    }
    const uint64_t picked = m_queue.occupied() ? pick() : 0;
    if (m_now < m_responds_from) {
        end_response();
    } else if (!m_response_valid || response_taken) {
        respond();
    }
    DramKind kind = kPre;
    m_dram.valid = issued >= 0;
    if (issued >= 0) {
        kind = m_banks.kind(issued);
        command(issued, kind);
    }
    ++counters[kVaultCycles];
    counters[kVaultBusBusy] += m_burst > m_now;
    if (const uint64_t blocked = m_banks.refresh_blocked(); blocked != m_blocked)
        m_blocked = blocked, m_count_blocked = std::popcount(blocked);
    counters[kVaultRefreshBlocked] += m_count_blocked;
    counters[kVaultOccupancy] += m_occupancy;
    m_occupancy = m_queue.level();

    // Data.
    accepted = false;
    const bool comes =
        beat && decode(*beat, source, acknowledges && !(issued >= 0 && kind == kWrite));
    if (!m_slot_valid) reserve_slot();
    if (m_pending_reads.pass(m_now)) m_device ? read_column() : read_word(read_data);
    if (m_pending_writes.pass(m_now)) m_device ? write_column() : write_word();

    // Queues and banks.
    m_banks.edge(issued, kind, m_due_at == m_now ? refreshes_due() : 0,
                 picked ? &m_queue.entry(picked) : nullptr);
    m_queue.edge(m_now, picked, comes);
    ++m_now;
    m_rest_until = m_now + rest_of_all();
}

// For how many cycles the oldest request has been the oldest, up to as many as matter.
uint64_t Controller::patience() const {
    if (!m_queue.occupied()) return 0;
    return std::min<uint64_t>(m_now - m_queue.oldest_since(), kPatienceCycles);
}

// The entry that goes to its bank's queue, or 0.
uint64_t Controller::pick() {
    uint64_t candidates = m_queue.eligible(m_banks.full());
    if (!candidates) return 0;
    const uint64_t oldest = m_queue.oldest();
    if (m_sizes.scheduler == kInOrder) return oldest & candidates;
    if (patience() == kPatienceCycles)
        candidates &= oldest | ~m_queue.of_bank(m_queue.entry(oldest).bank);
    const uint64_t hits = candidates & m_queue.row_hits();
    const uint64_t straight = hits & ~m_queue.turnarounds();
    return m_queue.oldest_of(straight ? straight : hits ? hits : candidates);
}

// The bank with the first stamp among `candidates`, at least one. Compares halves pairwise, like
// scheduler.py, since stamps of banks without a request are old.
int Controller::first_stamp(uint64_t candidates) const {
    const uint64_t others = candidates & (candidates - 1);
    int a = std::countr_zero(candidates);
    if (!others) return a;
    int b = 63 - std::countl_zero(candidates);
    if (others & (others - 1)) [[unlikely]] {
        // The first bank of the upper half of the smallest subtree that contains them all.
        const int middle = b & ~0 << (31 - std::countl_zero(static_cast<uint32_t>(a ^ b)));
        const uint64_t below = (uint64_t{1} << middle) - 1;
        a = first_stamp(candidates & below), b = first_stamp(candidates & ~below);
    }
    const uint32_t top = uint32_t{1} << (m_sizes.stamp_bits - 1);
    return (m_banks.head(b).stamp - m_banks.head(a).stamp) & top ? b : a;
}

// Given that a bank has a command: the bank whose command is issued, or -1.
int Controller::issue() {
    const uint64_t column = m_banks.column, row = m_banks.row, urgent = m_banks.urgent;
    if (m_sizes.scheduler == kInOrder) [[unlikely]] {
        if (m_banks.waiting) {
            const int first = first_stamp(m_banks.waiting);
            if (column >> first & 1) return first;
        }
        const uint64_t rows = row & urgent ? row & urgent : row;
        return rows ? first_stamp(rows) : -1;
    }
    const uint64_t same = m_writing ? m_banks.writes() : ~m_banks.writes();
    uint64_t candidates = row & urgent;
    if (m_learner) [[unlikely]] {
        candidates = m_learner->candidates(m_banks, same);
    } else {
        const uint64_t others = m_sizes.scheduler == kFirstReady ? m_banks.hit : m_banks.ready();
        const bool change = m_count == kGroupBursts && others & ~same;
        const uint64_t classes[] = {change ? 0 : column & same, column & ~same, row};
        for (const uint64_t members : classes)
            if (!candidates) candidates = members;
    }
    if (!candidates) return -1;
    const int found = first_stamp(candidates);
    if (column >> found & 1) {
        if (same >> found & 1) {
            if (m_count != kGroupBursts) ++m_count;
        } else {
            m_writing = !m_writing;
            m_count = 1;
        }
    }
    return found;
}

// Issues with a scheduler that learns.
int Controller::issue_learned() {
    const Learner::View view = {.same = m_writing ? m_banks.writes() : ~m_banks.writes(),
                                .bursts = m_count,
                                .patience = static_cast<uint32_t>(patience()),
                                .queue = m_queue.level(),
                                .writing = m_writing};
    const int issued = m_banks.column | m_banks.row ? issue() : -1;
    m_learner->edge(m_banks, view, issued);
    return issued;
}

}  // namespace vip::timed
