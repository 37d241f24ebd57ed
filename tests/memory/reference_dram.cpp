// A plain model of memory/model/dram.h to compare with.
//
// The first broken rule is kept, with bank and cycle; cycle 0 is the first after reset. A device
// goes on after it, so that the controller's state stays readable, but its data is no longer worth
// anything.

#include "device_model.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr int64_t kBurst = 4;  // clocks and words of a column on the data bus
constexpr uint64_t kWordBytes = 8;
constexpr uint64_t kColumnBytes = kBurst * kWordBytes;
constexpr int64_t kLongAgo = INT64_MIN / 2;
constexpr int64_t kNever = INT64_MAX;

enum Command : uint32_t { kAct, kRead, kWrite, kPre, kRefresh, kCommands };
constexpr const char* kNames[kCommands] = {"ACT", "READ", "WRITE", "PRE", "REFRESH"};

struct Bank {
    bool open = false;
    uint32_t row = 0;
    // Cycle of the last command of each kind.
    int64_t last[kCommands] = {kLongAgo, kLongAgo, kLongAgo, kLongAgo, kLongAgo};
    int64_t refreshes = 0;
};

struct Burst {
    int64_t start;
    bool write;
    uint32_t bank;
    uint64_t address;
    uint64_t data[kBurst];  // of a read
};

class Device {
  public:
    ~Device() { close_image(); }

    int64_t open_image(const char* path) {
        close_image();
        const int file = open(path, O_RDWR | O_CLOEXEC);
        if (file < 0) return -1;
        struct stat status;
        if (fstat(file, &status) == 0 && status.st_size > 0) {
            void* mapped = mmap(nullptr, static_cast<size_t>(status.st_size),
                                PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
            if (mapped != MAP_FAILED) {
                m_memory = static_cast<uint8_t*>(mapped);
                m_size = static_cast<uint64_t>(status.st_size);
            }
        }
        close(file);
        return m_memory ? static_cast<int64_t>(m_size) : -1;
    }

    bool configure(const VipDramSetup& setup) {
        m_setup = setup;
        const uint64_t bytes =
            kColumnBytes * setup.banks * static_cast<uint64_t>(setup.rows) * setup.columns;
        m_violation.clear();
        reset();
        return setup.base <= m_size && bytes <= m_size - setup.base;
    }

    const std::string& violation() const { return m_violation; }

    void counts(VipDramCounts& counts) const { counts = m_counts; }

    void record(uint32_t cycles) {
        m_window = cycles;
        m_recorded_from = m_now;
        m_windows.clear();
    }

    const std::vector<VipDramWindow>& recorded() const { return m_windows; }

    void reset() {
        m_now = 0;
        m_counts = {};
        m_banks.assign(m_setup.banks, Bank{});
        m_bursts.clear();
        m_acts.clear();
        record(0);
        m_random = m_setup.noise;
        find_deadline();
    }

    // The cycle that ends now. Returns what the bus holds in the next one.
    uint64_t cycle(bool valid, uint32_t kind, uint32_t bank, uint32_t row, uint32_t column,
                   uint64_t write_data, uint32_t write_strobe) {
        if (m_window) {
            m_windows.resize(static_cast<size_t>((m_now - m_recorded_from) / m_window) + 1);
        }
        if (valid) command(kind, bank, row, column);
        if (m_now >= m_deadline) late_refresh();
        uint64_t read_data = random();
        for (const Burst& burst : m_bursts) {
            const int64_t now = m_now - burst.start;
            if (burst.write && now >= 0 && now < kBurst) {
                store(burst.address + now * kWordBytes, write_data, write_strobe);
            }
            const int64_t next = now + 1;
            if (!burst.write && next >= 0 && next < kBurst) read_data = burst.data[next];
        }
        // Bursts that are over stay as long as they can be too near to a new one.
        while (!m_bursts.empty() && m_bursts.front().start + kBurst + m_setup.turnaround < m_now) {
            m_bursts.pop_front();
        }
        m_counts.cycles = static_cast<uint64_t>(++m_now);
        return read_data;
    }

  private:
    VipDramSetup m_setup = {};
    uint8_t* m_memory = nullptr;
    uint64_t m_size = 0;
    int64_t m_now = 0;
    int64_t m_deadline = kNever;  // cycle in which a bank has missed too many refreshes
    uint64_t m_random = 0;
    std::vector<Bank> m_banks;
    std::deque<Burst> m_bursts;
    std::deque<int64_t> m_acts;  // the last four ACTs of any banks
    VipDramCounts m_counts = {};
    int64_t m_window = 0;  // cycles, 0: nothing is recorded
    int64_t m_recorded_from = 0;
    std::vector<VipDramWindow> m_windows;
    std::string m_violation;

    void close_image() {
        if (m_memory) munmap(m_memory, m_size);
        m_memory = nullptr;
        m_size = 0;
    }

    uint64_t random() {
        m_random = m_random * 6364136223846793005ULL + 1442695040888963407ULL;
        return m_random ^ m_random >> 31;
    }

    void violate(const char* rule, uint32_t bank, const char* format, ...)
        __attribute__((format(printf, 4, 5))) {
        if (!m_violation.empty()) return;
        char text[160];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        char where[64];
        snprintf(where, sizeof where, " (bank %" PRIu32 ", cycle %" PRId64 ")", bank, m_now);
        m_violation = std::string(rule) + ": " + text + where;
    }

    // `kind` now, `least` cycles after the last `before` of the bank.
    void apart(const char* rule, uint32_t bank, Command before, Command kind, int64_t least) {
        const int64_t distance = m_now - m_banks[bank].last[before];
        if (distance < least) {
            violate(rule, bank, "%s %" PRId64 " cycles after %s, at least %" PRId64, kNames[kind],
                    distance, kNames[before], least);
        }
    }

    void command(uint32_t kind, uint32_t bank, uint32_t row, uint32_t column) {
        if (kind >= kCommands) {
            violate("COMMAND", bank, "no command has the number %" PRIu32, kind);
            return;
        }
        if (bank >= m_setup.banks || (kind == kAct && row >= m_setup.rows) ||
            ((kind == kRead || kind == kWrite) && column >= m_setup.columns)) {
            violate("RANGE", bank, "%s of row %" PRIu32 ", column %" PRIu32 ": there is none",
                    kNames[kind], row, column);
            return;
        }
        ++m_counts.commands[kind];
        switch (static_cast<Command>(kind)) {
            case kAct: activate(bank, row); break;
            case kRead:
            case kWrite: access(static_cast<Command>(kind), bank, column); break;
            case kPre: precharge(bank); break;
            default: refresh(bank);
        }
    }

    void activate(uint32_t number, uint32_t row) {
        Bank& bank = m_banks[number];
        if (bank.open) violate("ACT_OPEN", number, "ACT with row %" PRIu32 " open", bank.row);
        apart("tRP", number, kPre, kAct, m_setup.trp);
        apart("tRC", number, kAct, kAct, m_setup.trc);
        apart("tRFC", number, kRefresh, kAct, m_setup.trfc);
        if (!m_acts.empty() && m_now - m_acts.back() < m_setup.trrd) {
            violate("tRRD", number,
                    "ACT %" PRId64 " cycles after that of any bank, at least %" PRIu32,
                    m_now - m_acts.back(), m_setup.trrd);
        }
        if (m_acts.size() == 4 && m_now - m_acts.front() < m_setup.tfaw) {
            violate("tFAW", number, "fifth ACT within %" PRId64 " cycles, at least %" PRIu32,
                    m_now - m_acts.front(), m_setup.tfaw);
        }
        m_acts.push_back(m_now);
        if (m_acts.size() > 4) m_acts.pop_front();
        bank.open = true;
        bank.row = row;
        bank.last[kAct] = m_now;
    }

    void access(Command kind, uint32_t number, uint32_t column) {
        Bank& bank = m_banks[number];
        if (!bank.open) {
            violate("CLOSED", number, "%s with no row open", kNames[kind]);
            return;
        }
        apart("tRCD", number, kAct, kind, m_setup.trcd);
        if (kind == kRead) {
            apart("tWTR", number, kWrite, kRead,
                  static_cast<int64_t>(m_setup.tcwl) + kBurst + m_setup.twtr);
        }
        apart("tCCD", number, kRead, kind, m_setup.tccd);
        apart("tCCD", number, kWrite, kind, m_setup.tccd);
        Burst burst = {};
        burst.write = kind == kWrite;
        burst.start = m_now + (burst.write ? m_setup.tcwl : m_setup.tcl);
        burst.bank = number;
        burst.address = m_setup.base + (static_cast<uint64_t>(number) << m_setup.bank_shift) +
                        (static_cast<uint64_t>(bank.row) << m_setup.row_shift) +
                        (static_cast<uint64_t>(column) << m_setup.column_shift);
        check_bus(burst);
        if (!burst.write && burst.address + kColumnBytes <= m_size) {
            memcpy(burst.data, m_memory + burst.address, kColumnBytes);
        }
        m_bursts.push_back(burst);
        if (m_window) ++(burst.write ? m_windows.back().writes : m_windows.back().reads);
        bank.last[kind] = m_now;
    }

    void check_bus(const Burst& burst) {
        for (const Burst& other : m_bursts) {
            const int64_t idle = std::abs(burst.start - other.start) - kBurst;
            if (idle < 0) {
                violate("DATA_OVERLAP", burst.bank,
                        "data from cycle %" PRId64 " on, with those of bank %" PRIu32
                        " from cycle %" PRId64 " on",
                        burst.start, other.bank, other.start);
            } else if (burst.write != other.write && idle < m_setup.turnaround) {
                const Burst& second = burst.start > other.start ? burst : other;
                violate("DATA_TURNAROUND", burst.bank,
                        "%" PRId64 " idle cycles of the data bus before %s in cycle %" PRId64
                        ", at least %" PRIu32,
                        idle, second.write ? "writing" : "reading", second.start,
                        m_setup.turnaround);
            }
        }
    }

    void precharge(uint32_t number) {
        Bank& bank = m_banks[number];
        if (!bank.open) return;
        apart("tRAS", number, kAct, kPre, m_setup.tras);
        apart("tRTP", number, kRead, kPre, m_setup.trtp);
        apart("tWR", number, kWrite, kPre,
              static_cast<int64_t>(m_setup.tcwl) + kBurst + m_setup.twr);
        bank.open = false;
        bank.last[kPre] = m_now;
    }

    void refresh(uint32_t number) {
        Bank& bank = m_banks[number];
        if (bank.open) {
            violate("REFRESH_OPEN", number, "REFRESH with row %" PRIu32 " open", bank.row);
        }
        apart("tRP", number, kPre, kRefresh, m_setup.trp);
        apart("tRFC", number, kRefresh, kRefresh, m_setup.trfc);
        bank.last[kRefresh] = m_now;
        ++bank.refreshes;
        find_deadline();
    }

    // The cycle in which `bank` is one refresh too far behind unless one more comes.
    int64_t deadline(const Bank& bank) const {
        return (bank.refreshes + m_setup.postponed + 1) * static_cast<int64_t>(m_setup.trefi);
    }

    void find_deadline() {
        m_deadline = kNever;
        if (!m_setup.trefi) return;
        for (const Bank& bank : m_banks) m_deadline = std::min(m_deadline, deadline(bank));
    }

    void late_refresh() {
        for (uint32_t number = 0; number < m_banks.size(); ++number) {
            if (deadline(m_banks[number]) > m_now) continue;
            violate("tREFI", number, "%" PRId64 " refreshes done, at least %" PRId64,
                    m_banks[number].refreshes,
                    m_now / static_cast<int64_t>(m_setup.trefi) - m_setup.postponed);
        }
        m_deadline = kNever;
    }

    void store(uint64_t address, uint64_t data, uint32_t strobe) {
        if (address + kWordBytes > m_size) return;
        for (uint64_t byte = 0; byte < kWordBytes; ++byte) {
            if (!(strobe >> byte & 1)) continue;
            m_memory[address + byte] = static_cast<uint8_t>(data >> 8 * byte);
        }
    }
};

std::map<int32_t, Device> g_devices;

}  // namespace

extern "C" {

int64_t vip_dram_open(int32_t device, const char* path) {
    return g_devices[device].open_image(path);
}

int32_t vip_dram_configure(int32_t device, const VipDramSetup* setup) {
    return g_devices[device].configure(*setup) ? 0 : -1;
}

const char* vip_dram_violation(int32_t device) { return g_devices[device].violation().c_str(); }

void vip_dram_counts(int32_t device, VipDramCounts* counts) { g_devices[device].counts(*counts); }

void vip_dram_record(int32_t device, uint32_t cycles) { g_devices[device].record(cycles); }

uint64_t vip_dram_recorded(int32_t device, VipDramWindow* windows, uint64_t room) {
    const std::vector<VipDramWindow>& recorded = g_devices[device].recorded();
    std::copy_n(recorded.begin(), std::min<uint64_t>(room, recorded.size()), windows);
    return recorded.size();
}

int32_t vip_dram_cycle(int32_t index, uint8_t reset, uint8_t valid, uint32_t kind, uint32_t bank,
                       uint32_t row, uint32_t column, uint64_t write_data, uint32_t write_strobe,
                       uint64_t* read_data) {
    Device& device = g_devices[index];
    if (reset) {
        device.reset();
        *read_data = 0;
        return 0;
    }
    *read_data = device.cycle(valid, kind, bank, row, column, write_data, write_strobe);
    return !device.violation().empty();
}

}  // extern "C"
