#include "controller.h"

#include <algorithm>
#include <bit>

namespace vip::timed {
namespace {

uint32_t field(uint64_t address, uint64_t low, uint64_t bits) {
    return static_cast<uint32_t>(address >> low & ((uint64_t{1} << bits) - 1));
}

}  // namespace

Controller::Controller(const VaultSizes& sizes)
    : m_sizes(sizes),
      m_free_slots((sizes.write_slots + 63) / 64, ~uint64_t{0}),
      m_queue(sizes),
      m_banks(sizes),
      m_pending_reads(sizes.read_columns),
      m_beats(sizes.read_columns * kColumnWords),
      m_pending_writes(sizes.write_depth),
      m_store(sizes.write_slots * kColumnWords),
      // Until their last words have passed.
      m_read_mask((uint64_t{2} << std::min(sizes.tcl + kColumnWords, uint64_t{62})) - 1),
      m_write_mask((uint64_t{2} << std::min(sizes.tcwl + kColumnWords, uint64_t{62})) - 1),
      m_acknowledgements(kAcknowledgements) {
    if (sizes.write_slots % 64) m_free_slots.back() = (uint64_t{1} << sizes.write_slots % 64) - 1;
    if (sizes.scheduler == kLearned || sizes.scheduler == kMeta)
        m_learner = std::make_unique<Learner>(sizes);
    for (uint64_t number = 0; number < sizes.banks; ++number)
        m_due.push_back(static_cast<uint32_t>(sizes.trefi * number / sizes.banks));
}

// The number of a request's requester, as the scheduler sees it.
uint32_t Controller::requester(const Request& request) const {
    const uint64_t tag = uint64_t{request.source} << m_sizes.port_tag_bits | request.tag;
    return static_cast<uint32_t>(tag >> (m_sizes.tag_bits - m_sizes.requester_bits));
}

// The requester with the fewest entries in the batch, the first one of several.
uint32_t Controller::fewest() const {
    if (!m_sizes.requester_bits) return 0;
    uint32_t counts[16] = {}, found = 0;
    for (uint64_t left = m_batch; left; left &= left - 1)
        ++counts[requester(m_queue.at(std::countr_zero(left)))];
    // One without entries is the last.
    const auto rank = [&](uint32_t number) { return counts[number] - 1; };
    for (uint32_t number = 1; number < 1U << m_sizes.requester_bits; ++number)
        if (rank(number) < rank(found)) found = number;
    return found;
}

// Of `candidates` those that par_bs.py prefers.
uint64_t Controller::in_batches(uint64_t candidates) {
    uint64_t favourite = candidates;
    if (m_sizes.requester_bits)
        for (uint64_t left = candidates; left; left &= left - 1)
            if (requester(m_queue.at(std::countr_zero(left))) != m_fewest)
                favourite &= ~(left & -left);
    const uint64_t hits = m_queue.row_hits();
    uint64_t found = 0;
    for (const uint64_t entries : {candidates & m_batch, candidates})
        for (const uint64_t choice :
             {entries & hits & favourite, entries & hits, entries & favourite, entries})
            if (!found) found = choice;
    return found;
}

// The entry that goes to its bank's queue, or 0.
uint64_t Controller::pick() {
    const bool batches = m_sizes.scheduler == kParBs;
    if (!m_queue.occupied()) {
        m_patience = 0;
        if (batches) [[unlikely]] m_fewest = fewest(), m_batch = 0;
        return 0;
    }
    const uint64_t eligible = m_queue.eligible(m_banks.full());
    const uint64_t oldest = m_queue.oldest();
    if (m_sizes.scheduler == kInOrder) return oldest & eligible;
    uint64_t candidates = eligible;
    if (m_patience == kPatienceCycles && oldest)
        candidates &= oldest | ~m_queue.of_bank(m_queue.entry(oldest).bank);
    const uint64_t hits = candidates & m_queue.row_hits();
    const uint64_t straight = hits & ~m_queue.turnarounds();
    const uint64_t found = m_queue.oldest_of(batches    ? in_batches(candidates)
                                             : straight ? straight
                                             : hits     ? hits
                                                        : candidates);
    if (batches) [[unlikely]] {
        m_fewest = fewest();
        const uint64_t left = m_batch & m_queue.occupied() & ~found;
        m_batch = left ? left : m_queue.occupied() & ~found;
    }
    if (found & oldest || !m_queue.occupied()) {
        m_patience = 0;
    } else if (m_patience != kPatienceCycles) {
        ++m_patience;
    }
    return found;
}

// Of `candidates` the bank with the first stamp; -1 if there is none. As scheduler.py compares, in
// pairs: stamps of banks that hold no request are old.
int Controller::first_stamp(uint64_t candidates) const {
    if (!candidates) return -1;
    if (!(candidates & (candidates - 1))) return std::countr_zero(candidates);
    const uint32_t top = uint32_t{1} << (m_sizes.stamp_bits - 1);
    const auto before = [&](int b, int a) {
        return (m_banks.head(b).stamp - m_banks.head(a).stamp) & top;
    };
    if (std::popcount(candidates) == 2) {
        const int a = std::countr_zero(candidates), b = 63 - std::countl_zero(candidates);
        return before(b, a) ? b : a;
    }
    int nodes[64];
    size_t count = m_sizes.banks;
    for (size_t number = 0; number < count; ++number)
        nodes[number] = candidates >> number & 1 ? static_cast<int>(number) : -1;
    for (; count > 1; count /= 2)
        for (size_t number = 0; number < count / 2; ++number) {
            const int a = nodes[2 * number], b = nodes[2 * number + 1];
            nodes[number] = a < 0 || (b >= 0 && before(b, a)) ? b : a;
        }
    return nodes[0];
}

// The bank whose command is issued, or -1.
int Controller::issue() {
    const uint64_t column = m_banks.column, row = m_banks.row, urgent = m_banks.urgent;
    if (!(column | row)) return -1;
    if (m_sizes.scheduler == kInOrder) [[unlikely]] {
        const int first = first_stamp(m_banks.waiting);
        if (first >= 0 && column >> first & 1) return first;
        return first_stamp(row & urgent ? row & urgent : row);
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
            if (!candidates) candidates = members & m_marked ? members & m_marked : members;
    }
    const int found = first_stamp(candidates);
    if (found >= 0 && column >> found & 1) {
        if (same >> found & 1) {
            if (m_count != kGroupBursts) ++m_count;
        } else {
            m_writing = !m_writing;
            m_count = 1;
        }
    }
    return found;
}

bool Controller::activate_allowed() const {
    return (m_sizes.trrd <= 1 || m_distance <= m_now) &&
           (m_sizes.tfaw <= 4 || m_windows[m_oldest_act] <= m_now);
}

// What a command that is issued forbids the following ones.
void Controller::rules(DramKind kind) {
    const auto wait = [this](uint64_t& until, uint64_t clocks) {
        until = std::max(until, m_now + clocks);
    };
    if (kind == kRead) {
        wait(m_reads, kBurstClocks);
        wait(m_writes, m_sizes.turnaround_to_write);
        wait(m_burst, kBurstClocks);
        m_bus_writes = false;
    } else if (kind == kWrite) {
        wait(m_reads, m_sizes.turnaround_to_read);
        wait(m_writes, kBurstClocks);
        wait(m_burst, kBurstClocks);
        m_bus_writes = true;
    } else if (kind == kAct) {
        wait(m_distance, m_sizes.trrd);
        wait(m_windows[m_oldest_act], m_sizes.tfaw);
        m_oldest_act = (m_oldest_act + 1) % 4;
    }
}

void Controller::count(int issued, DramKind kind) {
    const bool any = issued >= 0;
    const bool moves = any && (kind == kRead || kind == kWrite);
    ++counters[kVaultCycles];
    counters[kVaultBusBusy] += moves || m_burst > m_now;
    if (const uint64_t blocked = m_banks.refresh_blocked())
        counters[kVaultRefreshBlocked] += std::popcount(blocked);
    counters[kVaultOccupancy] += m_occupancy;
    m_occupancy = m_queue.level();
    if (!moves) {
        counters[kVaultRefreshes] += any && kind == kRefresh;
        return;
    }
    const bool write = kind == kWrite;
    ++counters[write ? kVaultWrites : kVaultReads];
    counters[kVaultTurnarounds] += write != m_bus_writes;
    ++counters[m_banks.event(issued)];
    const uint64_t units = m_now >> kUnitBits;
    const uint64_t age = (units - m_banks.head(issued).arrival) % (1 << kArrivalBits);
    uint32_t place = 0;
    while (place < kLatencyLimits && age >= kLimits[place] >> kUnitBits) ++place;
    ++counters[kVaultLatency0 + place];
}

// The banks of which a refresh becomes due.
uint64_t Controller::refreshes_due() {
    uint64_t due = 0;
    while (m_due_at == m_now) {
        due |= uint64_t{1} << m_next_due;
        if (++m_next_due == m_due.size()) m_next_due = 0, m_interval += m_sizes.trefi;
        m_due_at = m_interval + m_due[m_next_due];
    }
    return due;
}

// The slot for the next write is reserved a cycle ahead.
void Controller::reserve_slot(bool used) {
    if (m_slot_valid && !used) [[likely]] return;
    size_t word = 0;
    while (word < m_free_slots.size() && !m_free_slots[word]) ++word;
    m_slot_valid = word < m_free_slots.size();
    if (!m_slot_valid) return;
    m_slot = static_cast<uint32_t>(64 * word + std::countr_zero(m_free_slots[word]));
    m_free_slots[word] &= m_free_slots[word] - 1;
}

// How many cycles without a request change nothing.
uint64_t Controller::rest_of_all() const {
    const bool moves = (m_reads_in_flight & m_read_mask) || (m_writes_in_flight & m_write_mask) ||
                       m_queue.occupied() || m_dram.valid || m_response_valid || m_learner ||
                       m_patience || m_batch || m_fewest || m_occupancy || m_read_word ||
                       m_write_word || m_pending_reads.holds() || m_pending_writes.holds() ||
                       m_beats.holds() || m_acknowledgements.holds() || !m_slot_valid ||
                       m_burst > m_now;
    return moves ? 0 : std::min(m_banks.rest(), m_due_at - m_now);
}

void Controller::cycle(const RequestBeat* beat, uint32_t source, bool response_taken,
                       uint64_t read_data, DramSignals& dram) {
    // What the DRAM sees in this cycle.
    dram = m_dram;
    dram.write_data = m_write_data.data;
    dram.write_strobe = m_wanted ? m_write_data.strobe : 0;

    // Commands.
    const bool read_allowed = m_reads <= m_now && m_reserved != m_sizes.read_columns;
    const bool acknowledges = m_acknowledgements.ready();
    const bool write_allowed = m_writes <= m_now && acknowledges;
    m_banks.look(read_allowed, write_allowed, activate_allowed());
    int issued = -1;
    if (m_learner) [[unlikely]] {
        const Learner::View view = {.same = m_writing ? m_banks.writes() : ~m_banks.writes(),
                                    .bursts = m_count,
                                    .patience = m_patience,
                                    .queue = m_queue.level(),
                                    .writing = m_writing};
        issued = issue();
        m_learner->edge(m_banks, view, issued);
    } else {
        issued = issue();
    }
    if (m_sizes.scheduler == kParBs) [[unlikely]] {
        const uint64_t served = issued < 0 ? 0 : m_banks.column & (uint64_t{1} << issued);
        m_marked = m_marked ? m_marked & ~served : m_banks.waiting;
    }
    const DramKind kind = issued < 0 ? kPre : m_banks.kind(issued);
    const uint64_t picked = pick();
    const bool reads = issued >= 0 && kind == kRead, writes = issued >= 0 && kind == kWrite;
    count(issued, kind);
    // The write path frees a slot when its last word is read from the store.
    const bool reading = (m_writes_in_flight >> (m_sizes.tcwl - 1) & 1) || m_write_word;
    const Words& sent = m_pending_writes.front();
    const bool freed = reading && m_write_word == kColumnWords - 1;

    // The request decoder.
    bool valid = false, rejected = false;
    Request request;
    accepted = false;
    bool slot_used = false;
    if (beat) {
        const uint32_t word = static_cast<uint32_t>(beat->address / kWordBytes % kColumnWords);
        const bool outside = beat->address >> m_sizes.address_bits;
        const bool has_slot = !beat->write || m_slot_valid;
        const bool ends = beat->last && has_slot;
        valid = ends && !outside;
        rejected = ends && outside;
        accepted = beat->last ? (outside ? acknowledges && !writes : m_queue.ready()) && has_slot
                              : m_slot_valid;
        if (valid) {
            request = {
                .row = field(beat->address, m_sizes.row_low, m_sizes.row_bits),
                .tag = beat->tag,
                .stamp = m_stamp,
                .column = static_cast<uint16_t>(
                    field(beat->address, m_sizes.column_low, m_sizes.column_bits)),
                .slot = static_cast<uint16_t>(m_slot),
                .arrival = static_cast<uint16_t>(m_now >> kUnitBits),
                .bank = static_cast<uint8_t>(
                    field(beat->address, m_sizes.bank_low, m_sizes.bank_bits)),
                .source = static_cast<uint8_t>(source),
                .first = static_cast<uint8_t>(m_in_write ? m_write_first : word),
                .last = static_cast<uint8_t>(beat->write ? word
                                                         : (word + beat->words) % kColumnWords),
                .write = beat->write,
            };
        }
        if (accepted) {
            if (beat->write) m_store[m_slot * kColumnWords + word] = {beat->data, beat->strobe};
            if (!m_in_write) m_write_first = word;
            m_in_write = !beat->last;
            slot_used = beat->write && beat->last && !outside;
        }
        if (valid && m_queue.ready())
            m_stamp = static_cast<uint32_t>((m_stamp + 1) & ((uint64_t{1} << m_sizes.stamp_bits) - 1));
    }
    reserve_slot(slot_used);
    if (freed) m_free_slots[sent.slot / 64] |= uint64_t{1} << sent.slot % 64;

    // The read path.
    const bool data_valid = (m_reads_in_flight >> m_sizes.tcl & 1) || m_read_word;
    bool wanted = false;
    if (data_valid) {
        const Words& current = m_pending_reads.front();
        wanted = m_read_word >= current.first && m_read_word <= current.last;
        if (wanted)
            m_beats.entry() = {.data = read_data,
                               .tag = current.tag,
                               .source = current.source,
                               .last = m_read_word == current.last,
                               .error = false};
    }

    // Responses: those of one beat go before reads, but never into one.
    const bool advance = !m_response_valid || response_taken;
    const bool acknowledged = m_acknowledgements.valid() && !m_in_response;
    const bool beats_taken = advance && !acknowledged;
    const bool acknowledges_end = advance && !m_in_response;
    if (advance) {
        m_response_valid = acknowledged || m_beats.valid();
        if (m_response_valid) {
            m_side ^= 1;
            ResponseBeat& response = m_responses[m_side];
            response = acknowledged ? m_acknowledgements.front() : m_beats.front();
            if (acknowledged) response.data = m_beats.front().data;
        }
    }
    if (m_beats.valid() && beats_taken) {
        m_in_response = !m_beats.front().last;
        m_reserved -= m_beats.front().last;
    }
    if (writes) {
        const Request& head = m_banks.head(issued);
        m_acknowledgements.entry() = {0, head.tag, head.source, true, false};
        m_pending_writes.entry() = {head.tag, head.source, head.slot, head.first, head.last};
    } else if (rejected) [[unlikely]] {
        m_acknowledgements.entry() = {0, beat->tag, source, true, true};
    }
    m_acknowledgements.edge(writes || rejected, acknowledges_end);
    m_beats.edge(wanted, beats_taken);
    if (reads) {
        const Request& head = m_banks.head(issued);
        m_pending_reads.entry() = {head.tag, head.source, head.slot, head.first, head.last};
    }
    m_pending_reads.edge(reads, data_valid && m_read_word == kColumnWords - 1);
    m_reserved += reads;
    if (data_valid) m_read_word = (m_read_word + 1) % kColumnWords;
    m_reads_in_flight = m_reads_in_flight << 1 | reads;

    // The write path.
    if (reading) {
        m_wanted = m_write_word >= sent.first && m_write_word <= sent.last;
        m_write_data = m_store[sent.slot * kColumnWords + m_write_word];
    }
    m_pending_writes.edge(writes, freed);
    if (reading) m_write_word = (m_write_word + 1) % kColumnWords;
    m_writes_in_flight = m_writes_in_flight << 1 | writes;

    // Queues and banks.
    m_dram.valid = issued >= 0;
    if (issued >= 0) {
        m_dram.kind = kind;
        m_dram.bank = static_cast<uint32_t>(issued);
        m_dram.row = m_banks.head(issued).row;
        m_dram.column = m_banks.head(issued).column;
        rules(kind);
    }
    m_banks.edge(issued, kind, m_due_at == m_now ? refreshes_due() : 0,
                 picked ? &m_queue.entry(picked) : nullptr);
    m_queue.edge(picked, valid ? &request : nullptr);
    ++m_now;
    m_rest_until = m_now + rest_of_all();
}

}  // namespace vip::timed
