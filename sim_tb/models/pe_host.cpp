// Hosts of the engines in a simulation, one each: loads a program through the engine's control port,
// launches it, waits for its end and reads status and counters, cycle by cycle. Python hands it a
// run and looks at the result; so no interpreter is on the path of a cycle.

#include "pe_host.h"

#include <map>
#include <string>

#include "memory_model.h"
#include "verilated.h"
#include "verilated_sym_props.h"
#include "verilated_syms.h"

// Not there where an engine's memory is another one.
#pragma weak vip_memory_in_flight

namespace {

constexpr uint32_t kResetCycles = 4;
constexpr uint32_t kCounters = 16;
constexpr uint32_t kRunning = 1;  // hdl.ports.PeState

enum class Phase { kIdle, kReset, kLoad, kLaunch, kRun, kStop, kCounters };
enum Outcome : uint32_t { kEnded = 0, kTooLong = 1, kHung = 2, kViolation = 3, kInFlight = 4 };

struct Host {
    Phase phase = Phase::kIdle;
    VipHostJob job = {};
    VipHostResult result = {};
    uint32_t step = 0;
    uint64_t cycles = 0;
    bool fresh = true;  // in an unknown state: reset it before the next run
    bool pending = false;
    bool running = false;  // the engine has been seen running in this run

    void enter(Phase next) {
        phase = next;
        step = 0;
    }

    void enter_load() { enter(job.word_count ? Phase::kLoad : Phase::kLaunch); }

    void end(uint32_t outcome) {
        result.outcome = outcome;
        // An engine that obeyed a stop can be launched again as it is.
        fresh = outcome != kEnded && outcome != kTooLong;
        enter(Phase::kIdle);
    }
};

std::map<int32_t, Host> g_hosts;
std::string g_arrays;

// Requests of the engine that the memory model has not answered.
int32_t requests_in_flight(int32_t engine) {
    return vip_memory_in_flight ? vip_memory_in_flight(engine) : 0;
}

}  // namespace

extern "C" {

void vip_host_start(int32_t engine, const VipHostJob* job) {
    Host& host = g_hosts[engine];
    host.job = *job;
    host.result = VipHostResult{};
    host.cycles = 0;
    host.running = false;
    host.pending = true;
}

uint64_t vip_host_cycles(int32_t engine) { return g_hosts[engine].cycles; }

void vip_host_result(int32_t engine, VipHostResult* result) { *result = g_hosts[engine].result; }

int32_t vip_host_cycle(int32_t engine, uint8_t load_ready, uint8_t launch_ready, uint32_t state,
                       uint32_t cause, int32_t pc, uint8_t memory_error, uint64_t counter_value,
                       uint8_t failed, uint8_t* reset, uint8_t* load_valid, uint32_t* load_address,
                       uint32_t* load_word, uint8_t* launch_valid, uint32_t* launch_words,
                       uint64_t* launch_parameters, uint8_t* stop, uint32_t* counter_index,
                       uint32_t* pe_index, uint32_t* vault, uint32_t* slot, uint32_t* pe_count) {
    Host& host = g_hosts[engine];
    if (failed && host.phase != Phase::kIdle && host.phase != Phase::kReset) host.end(kViolation);
    // What the previous call drove was seen by the engine in the cycle that ends now.
    switch (host.phase) {
        case Phase::kIdle:
            if (!host.pending) break;
            host.pending = false;
            if (host.fresh || host.job.reset) {
                host.enter(Phase::kReset);
            } else {
                host.enter_load();
            }
            host.fresh = false;
            break;
        case Phase::kReset:
            if (++host.step == kResetCycles) host.enter_load();
            break;
        case Phase::kLoad:
            if (load_ready && ++host.step == host.job.word_count) host.enter(Phase::kLaunch);
            break;
        case Phase::kLaunch:
            if (launch_ready) host.enter(Phase::kRun);
            break;
        case Phase::kRun:
        case Phase::kStop:
            if (state == kRunning) host.running = true;
            if (state != kRunning && host.running) {
                host.result.outcome = host.phase == Phase::kStop ? kTooLong : kEnded;
                host.result.cycles = host.cycles;
                host.result.state = state;
                host.result.cause = cause;
                host.result.pc = pc;
                host.result.memory_error = memory_error;
                if (requests_in_flight(engine)) host.result.outcome = kInFlight;
                host.enter(Phase::kCounters);
                break;
            }
            ++host.cycles;
            if (host.phase == Phase::kRun && host.cycles > host.job.max_cycles) {
                host.enter(Phase::kStop);
            } else if (host.phase == Phase::kStop &&
                       host.cycles - host.job.max_cycles > host.job.stop_cycles) {
                host.result.cycles = host.cycles;
                host.result.state = state;
                host.end(kHung);
            }
            break;
        case Phase::kCounters:
            // The answer to an index comes in the cycle after it.
            if (++host.step >= 2) host.result.counters[host.step - 2] = counter_value;
            if (host.step == kCounters + 1) {
                if (requests_in_flight(engine)) host.result.outcome = kInFlight;
                host.end(host.result.outcome);
            }
            break;
    }
    *reset = host.phase == Phase::kReset;
    *load_valid = host.phase == Phase::kLoad;
    *load_address = host.step;
    *load_word = host.phase == Phase::kLoad ? host.job.words[host.step] : 0;
    *launch_valid = host.phase == Phase::kLaunch;
    *launch_words = host.job.word_count;
    *launch_parameters = host.job.parameters;
    const bool stops = host.phase == Phase::kRun && host.cycles >= host.job.stop_after;
    *stop = stops || host.phase == Phase::kStop;
    *counter_index = host.step % kCounters;
    *pe_index = host.job.pe_index;
    *vault = host.job.vault;
    *slot = host.job.slot;
    *pe_count = host.job.pe_count;
    return host.phase == Phase::kIdle;
}

const char* vip_host_arrays() {
    g_arrays.clear();
    for (const auto& scope : *Verilated::scopeNameMap()) {
        const VerilatedVarNameMap* variables = scope.second->varsp();
        if (!variables) continue;
        for (const auto& variable : *variables) {
            if (variable.second.udims() != 1) continue;
            g_arrays += std::string(scope.first) + " " + variable.first + " " +
                        std::to_string(variable.second.entBits()) + " " +
                        std::to_string(variable.second.elements(1)) + "\n";
        }
    }
    return g_arrays.c_str();
}

void* vip_host_array(const char* scope_name, const char* name) {
    const VerilatedScope* scope = Verilated::scopeFind(scope_name);
    const VerilatedVar* variable = scope ? scope->varFind(name) : nullptr;
    return variable ? variable->datap() : nullptr;
}

}  // extern "C"
