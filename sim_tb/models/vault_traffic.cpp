// Requesters at the ports of a memory, and the host that starts and ends their runs.
//
// Each requester has the columns whose number leaves its own number when divided by the number of
// requesters; so nobody else changes what it reads, and its own order decides.

#include "vault_traffic.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "vault_requester.h"

namespace {

using vip::Requester;

constexpr uint32_t kResetCycles = 4;
constexpr uint64_t kPatienceCheck = 1024;  // cycles between two looks at who waits for how long

enum Outcome : uint32_t { kDone, kViolation, kTooLong };
enum class Phase { kIdle, kReset, kRun, kSettle, kCounters };

struct Traffic {
    vip::Run run;
    std::vector<VipTrafficPattern> patterns;
    // Made in the first cycle of a run, when the port's number of tags is known.
    std::vector<std::unique_ptr<Requester>> requesters;
    uint8_t* image = nullptr;
    uint64_t image_size = 0;
    Phase phase = Phase::kIdle;
    bool pending = false;
    uint32_t step = 0;
};

Traffic g_traffic;

void compare_memory() {
    vip::Run& run = g_traffic.run;
    for (uint64_t i = 0; i < run.copy.size(); ++i) {
        const uint64_t address = run.job.begin + i * vip::kWordBytes;
        uint64_t word;
        memcpy(&word, g_traffic.image + address, vip::kWordBytes);
        if (word == run.copy[i]) continue;
        const uint64_t column = i * vip::kWordBytes / vip::kColumnBytes;
        run.violate("MEMORY", static_cast<uint32_t>(column % run.job.requesters),
                    "0x%" PRIx64 " at 0x%" PRIx64 " in the end, expected 0x%" PRIx64, word, address,
                    run.copy[i]);
        return;
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
        [](const auto& requester) { return requester && requester->finished(); });
}

void end_run(uint32_t outcome) {
    vip::Run& run = g_traffic.run;
    run.result.outcome = outcome;
    run.result.cycles = run.last - run.first + 1;
    run.result.total_cycles = run.now;
    g_traffic.phase = Phase::kIdle;
}

}  // namespace

extern "C" {

int32_t vip_traffic_start(const VipTrafficJob* job, const VipTrafficPattern* patterns) {
    if (!map_image(job->image) || job->begin > g_traffic.image_size ||
        job->span > g_traffic.image_size - job->begin) {
        return -1;
    }
    vip::Run& run = g_traffic.run;
    run = vip::Run{};
    run.job = *job;
    g_traffic.patterns.assign(patterns, patterns + job->requesters);
    g_traffic.requesters.clear();
    g_traffic.requesters.resize(job->requesters);
    vip::Random contents;
    for (const VipTrafficPattern& pattern : g_traffic.patterns) contents.state ^= pattern.seed;
    run.copy.resize(job->span / vip::kWordBytes);
    for (uint64_t& word : run.copy) word = contents.next();
    memcpy(g_traffic.image + job->begin, run.copy.data(), job->span);
    g_traffic.pending = true;
    return 0;
}

const char* vip_traffic_violation() { return g_traffic.run.violation.c_str(); }

void vip_traffic_result(VipTrafficResult* result) { *result = g_traffic.run.result; }

uint64_t vip_traffic_cycles() { return g_traffic.run.now; }

int32_t vip_traffic_host(uint8_t failed, uint64_t counter_value, uint8_t* reset,
                         uint32_t* counter_index) {
    Traffic& traffic = g_traffic;
    vip::Run& run = traffic.run;
    ++run.now;
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
            run.now = run.first = run.last = 0;
            traffic.phase = Phase::kRun;
            break;
        case Phase::kRun:
            if (failed || !run.violation.empty()) {
                end_run(kViolation);
            } else if (all_finished()) {
                traffic.step = 0;
                traffic.phase = Phase::kSettle;
            } else if (run.now > run.job.max_cycles) {
                end_run(kTooLong);
            } else if (run.now % kPatienceCheck == 0) {
                for (const auto& requester : traffic.requesters) {
                    if (requester) requester->check_patience();
                }
            }
            break;
        case Phase::kSettle:
            if (++traffic.step < run.job.settle) break;
            compare_memory();
            traffic.step = 0;
            traffic.phase = Phase::kCounters;
            break;
        case Phase::kCounters:
            // The answer to an index comes in the cycle after it.
            *counter_index = ++traffic.step % kVipCounters;
            if (traffic.step >= 2 && traffic.step - 2 < run.job.counters) {
                run.result.counters[traffic.step - 2] = counter_value;
            }
            if (traffic.step < run.job.counters + 2) break;
            end_run(failed || !run.violation.empty() ? kViolation : kDone);
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
    const auto number = static_cast<uint32_t>(index);
    std::unique_ptr<Requester>& place = g_traffic.requesters[number];
    if (!place) {
        const VipTrafficPattern& pattern = g_traffic.patterns[number];
        place = std::make_unique<Requester>(g_traffic.run, number, pattern, tags);
    }
    Requester& requester = *place;
    if (g_traffic.run.violation.empty()) {
        requester.cycle(request_ready, {response_valid != 0, response_tag, response_data,
                                        response_last != 0, response_error != 0});
    }
    *request_valid = requester.request_valid();
    *response_ready = requester.response_ready();
    if (!requester.request_valid()) return;
    const vip::Access& request = requester.request();
    const uint32_t beat = requester.beat();
    *address = request.address + beat * vip::kWordBytes;
    *tag = request.tag;
    *write = request.write;
    *words = request.words - 1 - beat;
    *data = request.write ? request.data[beat] : 0;
    *strobe = request.strobe[beat];
    *last = !request.write || beat + 1 == request.words;
}

}  // extern "C"
