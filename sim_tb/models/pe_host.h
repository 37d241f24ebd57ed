// Hosts of the engines in a simulation: see pe_host.cpp.
#pragma once

#include <cstdint>

// One run. The layout is shared with Python (sim_tb/harness/engine_serve.py).
struct VipHostJob {
    const uint32_t* words;  // program; kept by the caller until the run has ended
    uint32_t word_count;
    uint32_t reset;  // 1: reset the engine first
    uint64_t parameters;
    uint64_t max_cycles;   // then the engine is told to stop
    uint64_t stop_after;   // the host stops the engine so many cycles after the launch
    uint64_t stop_cycles;  // it has so many more to complete what it issued before
    uint16_t pe_index;
    uint16_t vault;
    uint16_t slot;
    uint16_t pe_count;
};

// What became of it.
struct VipHostResult {
    uint64_t cycles;  // from the launch to the end of the program
    uint64_t counters[16];
    int32_t pc;
    uint32_t state;
    uint32_t cause;
    uint32_t memory_error;  // 1: memory answered an access with an error
    uint32_t outcome;  // 0: ended, 1: stopped at max_cycles, 2: did not even stop, 3: memory port's
                       // rules broken, 4: ended with requests in flight
};

extern "C" {
// Starts a run of an engine; it begins at the next clock edge. The engine must not be running.
// Runs that begin together keep in step as long as their programs have the same length.
void vip_host_start(int32_t engine, const VipHostJob* job);
// Cycles since the launch of the engine's run.
uint64_t vip_host_cycles(int32_t engine);
// The result of the engine's run that ended last.
void vip_host_result(int32_t engine, VipHostResult* result);
// One clock cycle; the arguments are those of pe_host.sv. Returns 1 while there is nothing to do.
int32_t vip_host_cycle(int32_t engine, uint8_t load_ready, uint8_t launch_ready, uint32_t state,
                       uint32_t cause, int32_t pc, uint8_t memory_error, uint64_t counter_value,
                       uint8_t failed, uint8_t* reset, uint8_t* load_valid, uint32_t* load_address,
                       uint32_t* load_word, uint8_t* launch_valid, uint32_t* launch_words,
                       uint64_t* launch_parameters, uint8_t* stop, uint32_t* counter_index,
                       uint32_t* pe_index, uint32_t* vault, uint32_t* slot, uint32_t* pe_count);
// The public arrays of the design, one a line: scope, name, bits of an element, elements.
const char* vip_host_arrays();
// Address of the elements of such an array (1, 2, 4 or 8 bytes each), or null.
void* vip_host_array(const char* scope, const char* name);
}
