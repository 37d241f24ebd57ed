// Requesters that drive the ports of a memory as fast as they are told to, and check every response
// against what the order of their requests makes it be.
//
// Each requester has the columns whose number leaves its own number when divided by the number of
// requesters; so nobody else changes what it reads, and its own order decides. The copy of the
// memory's contents that it checks against changes when a write is made, and what a read must
// return is taken from the copy when the read is made.

#include "vault_traffic.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr uint64_t kWordBytes = 8;
constexpr uint64_t kColumnBytes = 32;
constexpr uint32_t kColumnWords = kColumnBytes / kWordBytes;
constexpr uint32_t kAllBytes = 0xff;
constexpr uint32_t kResetCycles = 4;
constexpr uint32_t kLongestRest = 2000;

enum Kind : uint32_t { kSequential, kRandom, kHot, kStrided };
enum Outcome : uint32_t { kDone, kViolation, kTooLong };
enum class Phase { kIdle, kReset, kRun, kSettle, kCounters };

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

struct Requester {
    VipTrafficPattern pattern = {};
    Random random;
    uint64_t made = 0;
    uint64_t finished = 0;
    uint64_t position = 0;  // of a sequential or strided walk
    uint64_t rest = 0;      // cycles without a new request
    std::vector<Access> by_tag;
    std::vector<uint32_t> free_tags;
    size_t in_flight = 0;

    Access current;  // whose beats are being offered
    uint32_t beat = 0;
    bool working = false;
    bool valid = false;
    bool ready = false;
    Access* answer = nullptr;  // whose response has begun
    uint32_t answer_beats = 0;

    bool held = false;  // a response beat was offered and not taken
    uint32_t held_tag = 0;
    uint64_t held_data = 0;
    bool held_last = false;
};

struct Traffic {
    VipTrafficJob job = {};
    VipTrafficResult result = {};
    std::vector<Requester> requesters;
    std::vector<uint64_t> copy;  // words of the span as the writes made so far leave them
    uint8_t* image = nullptr;
    uint64_t image_size = 0;
    std::string violation;
    Phase phase = Phase::kIdle;
    bool pending = false;
    uint64_t now = 0;
    uint64_t first = 0;
    uint64_t last = 0;
    uint32_t step = 0;
};

Traffic g_traffic;

void violate(const char* rule, int32_t requester, const char* format, ...)
    __attribute__((format(printf, 3, 4)));

void violate(const char* rule, int32_t requester, const char* format, ...) {
    if (!g_traffic.violation.empty()) return;
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    char where[64];
    snprintf(where, sizeof where, " (requester %" PRId32 ", cycle %" PRIu64 ")", requester,
             g_traffic.now);
    g_traffic.violation = std::string(rule) + ": " + text + where;
}

uint64_t* words_of(uint64_t address) {
    return &g_traffic.copy[(address - g_traffic.job.begin) / kWordBytes];
}

uint64_t next_column(Requester& requester) {
    const uint64_t columns = g_traffic.job.span / kColumnBytes / g_traffic.job.requesters;
    const VipTrafficPattern& pattern = requester.pattern;
    switch (static_cast<Kind>(pattern.kind)) {
        case kSequential: return requester.position++ % columns;
        case kStrided: {
            const uint64_t column = requester.position % columns;
            requester.position += pattern.stride;
            // The next round walks along other columns.
            if (requester.position / columns != (requester.position - pattern.stride) / columns) {
                ++requester.position;
            }
            return column;
        }
        case kHot:
            if (requester.random.below(16)) return requester.random.below(pattern.hot) % columns;
            return requester.random.below(columns);
        default: return requester.random.below(columns);
    }
}

void make_access(Requester& requester, uint64_t number) {
    const VipTrafficPattern& pattern = requester.pattern;
    Random& random = requester.random;
    Access access;
    const uint64_t column = next_column(requester) * g_traffic.job.requesters + number;
    access.words = pattern.partial ? 1 + random.below(kColumnWords) : kColumnWords;
    access.address = g_traffic.job.begin + column * kColumnBytes +
                     kWordBytes * random.below(kColumnWords - access.words + 1);
    access.write = random.chance(pattern.writes);
    access.outside = random.chance(pattern.outside);
    if (access.outside) {
        const uint64_t beyond = (g_traffic.job.limit - g_traffic.job.size) / kColumnBytes;
        access.address = g_traffic.job.size + random.below(beyond) * kColumnBytes +
                         access.address % kColumnBytes;
    }
    // Any free tag, so that the number says nothing.
    const size_t pick = random.below(requester.free_tags.size());
    std::swap(requester.free_tags[pick], requester.free_tags.back());
    access.tag = requester.free_tags.back();
    requester.free_tags.pop_back();
    for (uint32_t i = 0; i < access.words; ++i) {
        if (access.write) {
            access.data[i] = random.next();
            access.strobe[i] = pattern.partial && random.below(2) ? random.next() & kAllBytes
                                                                  : kAllBytes;
        } else {
            access.strobe[i] = kAllBytes;
        }
        if (access.outside) continue;
        uint64_t& word = words_of(access.address)[i];
        if (!access.write) {
            access.data[i] = word;
            continue;
        }
        uint64_t mask = 0;
        for (uint64_t byte = 0; byte < kWordBytes; ++byte) {
            if (access.strobe[i] >> byte & 1) mask |= 0xffULL << 8 * byte;
        }
        word = (word & ~mask) | (access.data[i] & mask);
    }
    ++requester.made;
    ++requester.in_flight;
    if (pattern.burst && requester.made % pattern.burst == 0) {
        requester.rest = random.below(kLongestRest);
    }
    requester.current = access;
    requester.beat = 0;
    requester.working = true;
}

void finish(Requester& requester, Access& access) {
    VipTrafficResult& result = g_traffic.result;
    const uint64_t latency = g_traffic.now - access.offered + 1;
    result.longest = std::max(result.longest, latency);
    result.latency_sum += latency;
    ++result.latencies[std::min<uint64_t>(latency, kVipLatencies - 1)];
    ++(access.write ? result.writes : result.reads);
    if (!access.outside) result.bytes += access.words * kWordBytes;
    g_traffic.last = g_traffic.now;
    access.open = false;
    requester.free_tags.push_back(access.tag);
    --requester.in_flight;
    ++requester.finished;
    requester.answer = nullptr;
}

void check_response(Requester& requester, int32_t number, uint32_t tag, uint64_t data, bool last,
                    bool error) {
    if (tag >= requester.by_tag.size() || !requester.by_tag[tag].open) {
        violate("TAG_UNKNOWN", number, "a response to tag %" PRIu32 ", which is not in flight", tag);
        return;
    }
    Access& access = requester.by_tag[tag];
    if (requester.answer && requester.answer != &access) {
        violate("RESPONSE_MIXED", number, "tag %" PRIu32 " within the response to tag %" PRIu32, tag,
                requester.answer->tag);
        return;
    }
    if (!requester.answer) {
        requester.answer = &access;
        requester.answer_beats = 0;
    }
    const uint32_t beat = requester.answer_beats++;
    const uint32_t beats = access.write ? 1 : access.words;
    const bool failed = last && error;
    if (beat >= beats || (last && !failed && beat + 1 != beats)) {
        violate("RESPONSE_LENGTH", number, "beat %" PRIu32 " of %" PRIu32 " for 0x%" PRIx64 ", last %d",
                beat + 1, beats, access.address, last);
        return;
    }
    if (!last) {
        if (beat + 1 == beats) {
            violate("RESPONSE_LENGTH", number, "no last beat after %" PRIu32 " for 0x%" PRIx64, beats,
                    access.address);
        }
        if (access.outside) return;
    }
    if (last && failed != access.outside) {
        violate("ERROR", number, "error is %d for 0x%" PRIx64, error, access.address);
    } else if (!access.write && !access.outside && data != access.data[beat]) {
        violate("DATA", number,
                "word %" PRIu32 " of the read of 0x%" PRIx64 " is 0x%" PRIx64 ", expected 0x%" PRIx64,
                beat, access.address, data, access.data[beat]);
    }
    if (last) finish(requester, access);
}

void check_held(Requester& requester, int32_t number, bool valid, uint32_t tag, uint64_t data,
                bool last) {
    if (!requester.held) return;
    if (!valid) {
        violate("RESPONSE_WITHDRAWN", number, "valid fell before ready, tag %" PRIu32,
                requester.held_tag);
    } else if (tag != requester.held_tag || data != requester.held_data ||
               last != requester.held_last) {
        violate("RESPONSE_CHANGED", number, "payload changed before ready, tag %" PRIu32,
                requester.held_tag);
    }
}

void cycle(Requester& requester, int32_t number, bool request_ready, bool response_valid,
           uint32_t tag, uint64_t data, bool last, bool error) {
    const uint64_t now = g_traffic.now;
    if (requester.valid && request_ready) {
        Access& current = requester.current;
        if (requester.beat == 0) {
            VipTrafficResult& result = g_traffic.result;
            result.longest_offer = std::max(result.longest_offer, now - current.offered);
        }
        // Whoever sees the last beat may answer from the next cycle on.
        if (!current.write || requester.beat + 1 == current.words) {
            requester.working = false;
            current.open = true;
            requester.by_tag[current.tag] = current;
        }
        ++requester.beat;
        requester.valid = false;
    }
    check_held(requester, number, response_valid, tag, data, last);
    requester.held = response_valid && !requester.ready;
    requester.held_tag = tag;
    requester.held_data = data;
    requester.held_last = last;
    if (response_valid && requester.ready) {
        check_response(requester, number, tag, data, last, error);
    }
    if (requester.rest) --requester.rest;
    const VipTrafficPattern& pattern = requester.pattern;
    if (!requester.valid && requester.random.chance(pattern.offer)) {
        if (!requester.working && !requester.rest && requester.made < pattern.accesses &&
            requester.in_flight < pattern.window && !requester.free_tags.empty()) {
            make_access(requester, static_cast<uint64_t>(number));
            requester.current.offered = now + 1;
            if (!g_traffic.first) g_traffic.first = now + 1;
        }
        requester.valid = requester.working;
    }
    requester.ready = requester.random.chance(pattern.take);
}

void compare_memory() {
    const VipTrafficJob& job = g_traffic.job;
    for (uint64_t i = 0; i < g_traffic.copy.size(); ++i) {
        uint64_t word;
        memcpy(&word, g_traffic.image + job.begin + i * kWordBytes, kWordBytes);
        if (word != g_traffic.copy[i]) {
            violate("MEMORY", 0, "0x%" PRIx64 " at 0x%" PRIx64 " in the end, expected 0x%" PRIx64,
                    word, job.begin + i * kWordBytes, g_traffic.copy[i]);
            return;
        }
    }
}

bool map_image(const char* path) {
    if (g_traffic.image) munmap(g_traffic.image, g_traffic.image_size);
    g_traffic.image = nullptr;
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return false;
    struct stat status;
    if (fstat(file, &status) == 0 && status.st_size > 0) {
        g_traffic.image_size = static_cast<uint64_t>(status.st_size);
        void* mapped = mmap(nullptr, g_traffic.image_size, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_NORESERVE, file, 0);
        if (mapped != MAP_FAILED) g_traffic.image = static_cast<uint8_t*>(mapped);
    }
    close(file);
    return g_traffic.image != nullptr;
}

bool all_finished() {
    return std::all_of(
        g_traffic.requesters.begin(), g_traffic.requesters.end(),
        [](const Requester& requester) { return requester.finished == requester.pattern.accesses; });
}

void check_patience() {
    for (size_t i = 0; i < g_traffic.requesters.size(); ++i) {
        const Requester& requester = g_traffic.requesters[i];
        const auto waits = [](const Access& access) {
            return g_traffic.now > access.offered + g_traffic.job.patience;
        };
        for (const Access& access : requester.by_tag) {
            if (access.open && waits(access)) {
                violate("LOST", static_cast<int32_t>(i),
                        "0x%" PRIx64 ", tag %" PRIu32 ": no answer since cycle %" PRIu64,
                        access.address, access.tag, access.offered);
            }
        }
        if (requester.working && requester.valid && waits(requester.current)) {
            violate("REFUSED", static_cast<int32_t>(i), "0x%" PRIx64 " not taken since cycle %" PRIu64,
                    requester.current.address, requester.current.offered);
        }
    }
}

void end_run(uint32_t outcome) {
    g_traffic.result.outcome = outcome;
    g_traffic.result.cycles = g_traffic.last - g_traffic.first + 1;
    g_traffic.result.total_cycles = g_traffic.now;
    g_traffic.phase = Phase::kIdle;
}

}  // namespace

extern "C" {

int32_t vip_traffic_start(const VipTrafficJob* job, const VipTrafficPattern* patterns) {
    if (!map_image(job->image) || job->begin > g_traffic.image_size ||
        job->span > g_traffic.image_size - job->begin) {
        return -1;
    }
    g_traffic.job = *job;
    g_traffic.result = VipTrafficResult{};
    g_traffic.violation.clear();
    g_traffic.requesters.assign(job->requesters, Requester{});
    Random contents;
    for (uint32_t i = 0; i < job->requesters; ++i) {
        g_traffic.requesters[i].pattern = patterns[i];
        g_traffic.requesters[i].random.state = patterns[i].seed * 0x9e3779b97f4a7c15ULL + i;
        contents.state ^= patterns[i].seed + i;
    }
    g_traffic.copy.resize(job->span / kWordBytes);
    for (uint64_t& word : g_traffic.copy) word = contents.next();
    memcpy(g_traffic.image + job->begin, g_traffic.copy.data(), job->span);
    g_traffic.pending = true;
    return 0;
}

const char* vip_traffic_violation() { return g_traffic.violation.c_str(); }

void vip_traffic_result(VipTrafficResult* result) { *result = g_traffic.result; }

uint64_t vip_traffic_cycles() { return g_traffic.now; }

int32_t vip_traffic_host(uint8_t failed, uint64_t counter_value, uint8_t* reset,
                         uint32_t* counter_index) {
    Traffic& traffic = g_traffic;
    ++traffic.now;
    *counter_index = 0;
    switch (traffic.phase) {
        case Phase::kIdle:
            if (!traffic.pending) break;
            traffic.pending = false;
            traffic.step = 0;
            traffic.phase = Phase::kReset;
            break;
        case Phase::kReset:
            if (++traffic.step < kResetCycles) break;
            traffic.now = traffic.first = traffic.last = 0;
            traffic.phase = Phase::kRun;
            break;
        case Phase::kRun:
            if (failed || !traffic.violation.empty()) {
                end_run(kViolation);
            } else if (all_finished()) {
                traffic.step = 0;
                traffic.phase = Phase::kSettle;
            } else if (traffic.now > traffic.job.max_cycles) {
                end_run(kTooLong);
            } else if (traffic.now % 1024 == 0) {
                check_patience();
            }
            break;
        case Phase::kSettle:
            if (++traffic.step < traffic.job.settle) break;
            compare_memory();
            traffic.step = 0;
            traffic.phase = Phase::kCounters;
            break;
        case Phase::kCounters:
            // The answer to an index comes in the cycle after it.
            *counter_index = ++traffic.step % kVipCounters;
            if (traffic.step >= 2 && traffic.step - 2 < traffic.job.counters) {
                traffic.result.counters[traffic.step - 2] = counter_value;
            }
            if (traffic.step < traffic.job.counters + 2) break;
            end_run(failed || !traffic.violation.empty() ? kViolation : kDone);
            break;
    }
    *reset = traffic.phase == Phase::kReset;
    return traffic.phase == Phase::kIdle && !traffic.pending;
}

void vip_traffic_cycle(int32_t index, uint8_t reset, uint32_t tags, uint8_t request_ready,
                       uint8_t response_valid, uint32_t response_tag, uint64_t response_data,
                       uint8_t response_last, uint8_t response_error, uint8_t* request_valid,
                       uint64_t* address, uint32_t* tag, uint8_t* write, uint32_t* words,
                       uint64_t* data, uint32_t* strobe, uint8_t* last, uint8_t* response_ready) {
    *request_valid = *response_ready = 0;
    *address = *data = 0;
    *tag = *words = *strobe = 0;
    *write = *last = 0;
    const bool runs = g_traffic.phase != Phase::kIdle && g_traffic.phase != Phase::kReset;
    if (reset || !runs || static_cast<size_t>(index) >= g_traffic.requesters.size()) return;
    Requester& requester = g_traffic.requesters[static_cast<size_t>(index)];
    if (requester.by_tag.empty()) {
        requester.by_tag.resize(tags);
        for (uint32_t i = 0; i < tags; ++i) requester.free_tags.push_back(i);
    }
    if (g_traffic.violation.empty()) {
        cycle(requester, index, request_ready, response_valid, response_tag, response_data,
              response_last, response_error);
    }
    const Access& current = requester.current;
    *request_valid = requester.valid;
    *response_ready = requester.ready;
    if (!requester.valid) return;
    const uint32_t beat = requester.beat;
    *address = current.address + beat * kWordBytes;
    *tag = current.tag;
    *write = current.write;
    *words = current.words - 1 - beat;
    *data = current.write ? current.data[beat] : 0;
    *strobe = current.strobe[beat];
    *last = !current.write || beat + 1 == current.words;
}

}  // extern "C"
