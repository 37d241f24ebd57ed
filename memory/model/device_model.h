// The DRAM devices of a vault in a simulation: see dram.h.
#pragma once

#include <cstdint>

// What a device is. Times are in clocks, as in memory.timing.DramTiming. The members of this and of
// the next two structures are those of the records in memory/model/device_model.py.
struct VipDramSetup {
    uint64_t base;          // first byte of the device in the memory image
    uint32_t banks;         //
    uint32_t rows;          // of a bank
    uint32_t columns;       // of a row, 32 bytes each
    uint32_t bank_shift;    // where in a byte address the numbers of bank, row and column begin
    uint32_t row_shift;     //
    uint32_t column_shift;  //
    uint32_t tcl;           // READ to data, at least 1
    uint32_t tcwl;          // WRITE to data, at least 1
    uint32_t tccd;          // READ or WRITE to READ or WRITE of the bank
    uint32_t trcd;          // ACT to READ or WRITE
    uint32_t trp;           // PRE to ACT or REFRESH
    uint32_t tras;          // ACT to PRE
    uint32_t trc;           // ACT to ACT of the bank
    uint32_t twr;           // end of write data to PRE
    uint32_t trtp;          // READ to PRE
    uint32_t twtr;          // end of write data to READ of the bank
    uint32_t trrd;          // ACT to ACT of any bank; 0: not checked
    uint32_t tfaw;          // ACT to the fourth after it, of any banks; 0: not checked
    uint32_t trfc;          // REFRESH to ACT or REFRESH
    uint32_t trefi;         // between refreshes of a bank, on average at most; 0: not checked
    uint32_t postponed;     // refreshes that a bank may be behind
    uint32_t turnaround;    // idle clocks of the data bus between directions
    uint32_t noise;         // start of the random data on the bus when nothing is read
};

// Commands since the last reset.
struct VipDramCounts {
    uint64_t cycles;
    uint64_t commands[5];  // by memory.controller.dram_port.DramCommand
};

// Columns moved in a window of time.
struct VipDramWindow {
    uint32_t reads;
    uint32_t writes;
};

extern "C" {
// Gives a device its memory image, the file at `path`. Returns the file's bytes, or -1 (see errno).
int64_t vip_dram_open(int32_t device, const char* path);
// Makes a device as described, fresh from reset. Returns 0, or -1 if the image is too small.
int32_t vip_dram_configure(int32_t device, const VipDramSetup* setup);
// The first rule that the controller broke, "" if none. Valid until the next call.
const char* vip_dram_violation(int32_t device);
void vip_dram_counts(int32_t device, VipDramCounts* counts);
// From this cycle on, counts the columns moved in each window of `cycles` (0: no longer), by the cycle
// of their command. Forgets what was counted before.
void vip_dram_record(int32_t device, uint32_t cycles);
// Windows recorded, the last one perhaps not over; at most `room` of them are copied to `windows`.
uint64_t vip_dram_recorded(int32_t device, VipDramWindow* windows, uint64_t room);
// One clock cycle; the arguments are those of device_model.sv, with `read_data` for the next cycle.
// Returns 1 after a violation.
int32_t vip_dram_cycle(int32_t device, uint8_t reset, uint8_t valid, uint32_t kind, uint32_t bank,
                       uint32_t row, uint32_t column, uint64_t write_data, uint32_t write_strobe,
                       uint64_t* read_data);
}
