#include "dram.h"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>

namespace vip {
namespace {

constexpr const char* kCommandNames[] = {"ACT", "READ", "WRITE", "PRE", "REFRESH"};

}  // namespace

Dram& dram_device(int32_t number) {
    static std::map<int32_t, Dram> devices;
    return devices[number];
}

int64_t Dram::open_image(const char* path) {
    return m_memory.open(path) ? static_cast<int64_t>(m_memory.size) : -1;
}

bool Dram::configure(const VipDramSetup& setup) {
    m_setup = setup;
    const uint64_t bytes =
        kColumnBytes * setup.banks * static_cast<uint64_t>(setup.rows) * setup.columns;
    // The maximum with a command in every cycle.
    const uint64_t most =
        std::bit_ceil(uint64_t{std::max(setup.tcl, setup.tcwl)} + setup.turnaround + 2 * kBurst);
    m_bursts.resize(most);
    for (Columns* columns : {&m_reads, &m_writes}) columns->resize(most);
    m_violation.clear();
    m_failed = false;
    reset();
    return setup.base <= m_memory.size && bytes <= m_memory.size - setup.base;
}

void Dram::reset() {
    m_now = 0;
    m_banks.assign(m_setup.banks, Bank{});
    m_reads.clear();
    m_writes.clear();
    m_put.start = kNever;
    m_accessed = 0;
    std::fill_n(m_acts, 4, kLongAgo);
    m_activated = 0;
    std::fill_n(m_commands, kCommands, 0);
    record(0);
    m_random = m_setup.noise;
    find_deadline();
}

VipDramCounts Dram::counts() const {
    VipDramCounts counts = {.cycles = static_cast<uint64_t>(m_now), .commands = {}};
    std::copy_n(m_commands, kCommands, counts.commands);
    return counts;
}

void Dram::record(uint32_t cycles) {
    m_window = cycles;
    m_recorded_from = m_now;
    m_windows.clear();
}

const std::vector<VipDramWindow>& Dram::recorded() {
    if (m_window && m_now > m_recorded_from)
        m_windows.resize(static_cast<size_t>((m_now - 1 - m_recorded_from) / m_window) + 1);
    return m_windows;
}

// The window of this cycle.
VipDramWindow& Dram::window() {
    m_windows.resize(static_cast<size_t>((m_now - m_recorded_from) / m_window) + 1);
    return m_windows.back();
}

uint64_t Dram::pass(uint64_t count) {
    uint64_t data = 0;
    for (; count && std::min(m_reads.next, m_writes.next) != kNever; --count)
        data = cycle(false, 0, 0, 0, 0, 0, 0);
    if (!count) return data;
    const int64_t end = m_now + static_cast<int64_t>(count);
    if (m_deadline < end) {
        m_now = std::max(m_now, m_deadline);
        late_refresh();
    }
    m_now = end;
    // Advance the random numbers by that many steps at once.
    uint64_t factor = kFactor, summand = kSummand;
    for (; count; count >>= 1) {
        if (count & 1) m_random = m_random * factor + summand;
        summand *= factor + 1;
        factor *= factor;
    }
    return m_random ^ m_random >> 31;
}

void Dram::write(uint64_t data, uint32_t strobe) {
    const Column& column = m_writes.at(m_writes.first);
    const int64_t word = m_now - column.start;
    m_writes.passed(word);
    store(column.address + static_cast<uint64_t>(word) * kWordBytes, data, strobe);
}

// The word on the bus in this cycle.
uint64_t Dram::read() {
    const Column& column = m_reads.at(m_reads.first);
    const int64_t word = m_now - column.start;
    const uint64_t data = column.data[word];
    m_reads.passed(word);
    return data;
}

void Dram::violate(const char* rule, uint32_t bank, const char* format, ...) {
    if (m_failed) return;
    char text[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    char where[64];
    snprintf(where, sizeof where, " (bank %" PRIu32 ", cycle %" PRId64 ")", bank, m_now);
    m_violation = std::string(rule) + ": " + text + where;
    m_failed = true;
}

void Dram::apart(const char* rule, uint32_t bank, Command before, Command kind, int64_t least) {
    const int64_t distance = m_now - m_banks[bank].last[before];
    if (distance < least) {
        violate(rule, bank, "%s %" PRId64 " cycles after %s, at least %" PRId64,
                kCommandNames[kind], distance, kCommandNames[before], least);
    }
}

void Dram::command(uint32_t kind, uint32_t bank, uint32_t row, uint32_t column) {
    if (kind >= kCommands) [[unlikely]] {
        violate("COMMAND", bank, "no command has the number %" PRIu32, kind);
        return;
    }
    if (bank >= m_setup.banks || (kind == kOpens && row >= m_setup.rows) ||
        ((kind == kReads || kind == kWrites) && column >= m_setup.columns)) [[unlikely]] {
        violate("RANGE", bank, "%s of row %" PRIu32 ", column %" PRIu32 ": there is none",
                kCommandNames[kind], row, column);
        return;
    }
    ++m_commands[kind];
    switch (static_cast<Command>(kind)) {
        case kOpens: activate(bank, row); break;
        case kReads:
        case kWrites: access(static_cast<Command>(kind), bank, column); break;
        case kCloses: precharge(bank); break;
        default: refresh(bank);
    }
}

void Dram::activate(uint32_t number, uint32_t row) {
    Bank& bank = m_banks[number];
    int64_t& fourth = m_acts[m_activated % 4];
    const int64_t last = m_acts[(m_activated + 3) % 4];
    const bool broken = bank.open | near(bank, kCloses, m_setup.trp) |
                        near(bank, kOpens, m_setup.trc) | near(bank, kRefreshes, m_setup.trfc) |
                        (m_now - last < m_setup.trrd) | (m_now - fourth < m_setup.tfaw);
    if (broken) [[unlikely]] {
        if (bank.open) violate("ACT_OPEN", number, "ACT with row %" PRIu32 " open", bank.row);
        apart("tRP", number, kCloses, kOpens, m_setup.trp);
        apart("tRC", number, kOpens, kOpens, m_setup.trc);
        apart("tRFC", number, kRefreshes, kOpens, m_setup.trfc);
        if (m_now - last < m_setup.trrd) {
            violate("tRRD", number,
                    "ACT %" PRId64 " cycles after that of any bank, at least %" PRIu32,
                    m_now - last, m_setup.trrd);
        }
        if (m_now - fourth < m_setup.tfaw) {
            violate("tFAW", number, "fifth ACT within %" PRId64 " cycles, at least %" PRIu32,
                    m_now - fourth, m_setup.tfaw);
        }
    }
    fourth = m_now;
    ++m_activated;
    bank.open = true;
    bank.row = row;
    bank.last[kOpens] = m_now;
}

void Dram::access(Command kind, uint32_t number, uint32_t column) {
    Bank& bank = m_banks[number];
    if (!bank.open) [[unlikely]] {
        violate("CLOSED", number, "%s with no row open", kCommandNames[kind]);
        return;
    }
    const bool writes = kind == kWrites;
    const int64_t after_write = int64_t{m_setup.tcwl} + kBurst + m_setup.twtr;
    const bool broken = near(bank, kOpens, m_setup.trcd) | near(bank, kReads, m_setup.tccd) |
                        near(bank, kWrites, m_setup.tccd) |
                        (!writes & near(bank, kWrites, after_write));
    if (broken) [[unlikely]] {
        apart("tRCD", number, kOpens, kind, m_setup.trcd);
        if (!writes) apart("tWTR", number, kWrites, kReads, after_write);
        apart("tCCD", number, kReads, kind, m_setup.tccd);
        apart("tCCD", number, kWrites, kind, m_setup.tccd);
    }
    const int64_t start = m_now + (writes ? m_setup.tcwl : m_setup.tcl);
    Columns& columns = writes ? m_writes : m_reads;
    const Burst fresh = {start, number, writes};
    // A burst that comes after all others need not be compared with each of them.
    if (start < columns.over || start < (writes ? m_reads : m_writes).over + m_setup.turnaround)
        [[unlikely]] check_bus(fresh);
    burst(m_accessed++) = fresh;
    Column& moved = columns.add(start);
    moved.address = m_setup.base + (uint64_t{number} << m_setup.bank_shift) +
                    (uint64_t{bank.row} << m_setup.row_shift) +
                    (uint64_t{column} << m_setup.column_shift);
    if (!writes) {
        // It may be in the last column put.
        store_put(m_now);
        if (moved.address + kColumnBytes <= m_memory.size) {
            memcpy(moved.data, m_memory.data + moved.address, kColumnBytes);
        } else {
            memset(moved.data, 0, kColumnBytes);
        }
    }
    if (m_window) [[unlikely]] ++(writes ? window().writes : window().reads);
    bank.last[kind] = m_now;
}

void Dram::check_bus(const Burst& fresh) {
    const uint64_t first = m_accessed - std::min<uint64_t>(m_accessed, m_bursts.size());
    for (uint64_t place = first; place != m_accessed; ++place) {
        const Burst& other = burst(place);
        const int64_t idle = std::abs(fresh.start - other.start) - kBurst;
        if (idle < 0) [[unlikely]] {
            violate("DATA_OVERLAP", fresh.bank,
                    "data from cycle %" PRId64 " on, with those of bank %" PRIu32
                    " from cycle %" PRId64 " on",
                    fresh.start, other.bank, other.start);
        } else if (fresh.write != other.write && idle < m_setup.turnaround) [[unlikely]] {
            const Burst& second = fresh.start > other.start ? fresh : other;
            violate("DATA_TURNAROUND", fresh.bank,
                    "%" PRId64 " idle cycles of the data bus before %s in cycle %" PRId64
                    ", at least %" PRIu32,
                    idle, second.write ? "writing" : "reading", second.start, m_setup.turnaround);
        }
    }
}

void Dram::precharge(uint32_t number) {
    Bank& bank = m_banks[number];
    if (!bank.open) return;
    const int64_t after_write = int64_t{m_setup.tcwl} + kBurst + m_setup.twr;
    if (near(bank, kOpens, m_setup.tras) | near(bank, kReads, m_setup.trtp) |
        near(bank, kWrites, after_write)) [[unlikely]] {
        apart("tRAS", number, kOpens, kCloses, m_setup.tras);
        apart("tRTP", number, kReads, kCloses, m_setup.trtp);
        apart("tWR", number, kWrites, kCloses, after_write);
    }
    bank.open = false;
    bank.last[kCloses] = m_now;
}

void Dram::refresh(uint32_t number) {
    Bank& bank = m_banks[number];
    if (bank.open) {
        violate("REFRESH_OPEN", number, "REFRESH with row %" PRIu32 " open", bank.row);
    }
    apart("tRP", number, kCloses, kRefreshes, m_setup.trp);
    apart("tRFC", number, kRefreshes, kRefreshes, m_setup.trfc);
    bank.last[kRefreshes] = m_now;
    ++bank.refreshes;
    find_deadline();
}

// The cycle in which `bank` is one refresh too far behind, unless another one comes.
int64_t Dram::missed(const Bank& bank) const {
    return (bank.refreshes + m_setup.postponed + 1) * static_cast<int64_t>(m_setup.trefi);
}

void Dram::find_deadline() {
    m_deadline = kNever;
    if (!m_setup.trefi) return;
    for (const Bank& bank : m_banks) m_deadline = std::min(m_deadline, missed(bank));
}

void Dram::late_refresh() {
    for (uint32_t number = 0; number < m_banks.size(); ++number) {
        if (missed(m_banks[number]) > m_now) continue;
        violate("tREFI", number, "%" PRId64 " refreshes done, at least %" PRId64,
                m_banks[number].refreshes,
                m_now / static_cast<int64_t>(m_setup.trefi) - m_setup.postponed);
    }
    m_deadline = kNever;
}

}  // namespace vip

extern "C" {

int64_t vip_dram_open(int32_t device, const char* path) {
    return vip::dram_device(device).open_image(path);
}

int32_t vip_dram_configure(int32_t device, const VipDramSetup* setup) {
    return vip::dram_device(device).configure(*setup) ? 0 : -1;
}

const char* vip_dram_violation(int32_t device) {
    return vip::dram_device(device).violation().c_str();
}

void vip_dram_counts(int32_t device, VipDramCounts* counts) {
    *counts = vip::dram_device(device).counts();
}

void vip_dram_record(int32_t device, uint32_t cycles) {
    vip::dram_device(device).record(cycles);
}

uint64_t vip_dram_recorded(int32_t device, VipDramWindow* windows, uint64_t room) {
    const std::vector<VipDramWindow>& recorded = vip::dram_device(device).recorded();
    std::copy_n(recorded.begin(), std::min<uint64_t>(room, recorded.size()), windows);
    return recorded.size();
}

int32_t vip_dram_cycle(int32_t index, uint8_t reset, uint8_t valid, uint32_t kind, uint32_t bank,
                       uint32_t row, uint32_t column, uint64_t write_data, uint32_t write_strobe,
                       uint64_t* read_data) {
    vip::Dram& device = vip::dram_device(index);
    if (reset) {
        device.reset();
        *read_data = 0;
        return 0;
    }
    *read_data = device.cycle(valid, kind, bank, row, column, write_data, write_strobe);
    return device.failed();
}

// Does cycles without commands; `read_data` is what is on the bus after them.
int32_t vip_dram_pass(int32_t index, uint64_t cycles, uint64_t* read_data) {
    vip::Dram& device = vip::dram_device(index);
    *read_data = device.pass(cycles);
    return device.failed();
}

}  // extern "C"
