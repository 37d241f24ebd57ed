// Simulates a mapped netlist cycle by cycle with recorded inputs and counts its cells' activity.
// A net is a byte, 0 or 1. gate_sim.py documents the structures.
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

#include "gate_sim.inc"

constexpr int MAX_INPUTS = 6;
constexpr int kShape = 6;  // numbers of a memory's shape
constexpr uint64_t WHOLE = 60;  // divisible by every number of inputs

class Simulation {
 public:
  Simulation(const Cells &cells, const Macros &macros, const Stimulus &stimulus, Counts &counts)
      : cells_(cells), macros_(macros), stimulus_(stimulus), counts_(counts), now_(stimulus.values),
        before_(now_, now_ + stimulus.nets) {
    for (int m = 0; m < macros.count; m++) {
      const int32_t *shape = macros.shape + kShape * m;
      words_.emplace_back(static_cast<size_t>(shape[0]) * shape[1], 0);
    }
  }

  // cycle * outputs + output of the first output that differs from the recording, or -1.
  int64_t run() {
    // Settling to the first inputs does not count as activity.
    apply(0);
    settle();
    std::memcpy(before_.data(), now_, before_.size());
    for (int cycle = 0; cycle < stimulus_.cycles; cycle++) {
      const size_t row = static_cast<size_t>(cycle);
      apply(row);
      settle();
      const bool counted = cycle >= stimulus_.counted_from;
      if (counted) {
        const uint8_t *wanted = stimulus_.output_values + row * stimulus_.outputs;
        for (int i = 0; i < stimulus_.outputs; i++)
          if (now_[stimulus_.output_nets[i]] != wanted[i])
            return static_cast<int64_t>(row) * stimulus_.outputs + i;
        count();
      }
      std::memcpy(before_.data(), now_, before_.size());
      clock(counted);
    }
    return -1;
  }

 private:
  void apply(size_t cycle) {
    const uint8_t *given = stimulus_.input_values + cycle * stimulus_.inputs;
    for (int i = 0; i < stimulus_.inputs; i++) now_[stimulus_.input_nets[i]] = given[i];
  }

  unsigned row(int cell, const uint8_t *values) const {
    unsigned found = 0;
    const int32_t start = cells_.input_start[cell];
    const int32_t number = cells_.input_start[cell + 1] - start;
    for (int i = 0; i < number; i++)
      found |= static_cast<unsigned>(values[cells_.inputs[start + i]]) << i;
    return found;
  }

  void settle() {
    for (int c = 0; c < cells_.count; c++) {
      const unsigned place = row(c, now_);
      for (int o = cells_.output_start[c]; o < cells_.output_start[c + 1]; o++)
        now_[cells_.outputs[o]] = cells_.truth[o] >> place & 1;
    }
  }

  void count() {
    for (int n = 0; n < stimulus_.nets; n++) counts_.toggles[n] += now_[n] ^ before_[n];
    for (int c = 0; c < cells_.count; c++) {
      const unsigned place = row(c, now_);
      counts_.states[cells_.bins[c] + place]++;
      const unsigned changed = place ^ row(c, before_.data());
      if (!changed) continue;
      for (int o = cells_.output_start[c]; o < cells_.output_start[c + 1]; o++) {
        const int32_t net = cells_.outputs[o];
        if (now_[net] == before_[net]) continue;
        const unsigned causes = changed & static_cast<unsigned>(cells_.needed[o]);
        const uint64_t share = WHOLE / static_cast<unsigned>(__builtin_popcount(causes));
        for (int i = 0; i < MAX_INPUTS; i++)
          if (causes >> i & 1) counts_.causes[MAX_INPUTS * o + i] += share;
      }
    }
  }

  void clock(bool counted) {
    // Everything sees the values before the edge.
    latched_.clear();
    for (int c = 0; c < cells_.count; c++) {
      const int32_t net = cells_.state[c];
      if (net < 0) continue;
      if (cells_.enable[c] >= 0 && !now_[cells_.enable[c]]) continue;
      latched_.push_back({net, static_cast<uint8_t>(cells_.next[c] >> row(c, now_) & 1)});
    }
    // All reads come before writes, so they see the old word.
    for (const bool write : {false, true}) access(write, counted);
    for (const Latched &bit : latched_) now_[bit.net] = bit.value;
  }

  // The accesses to macros that write, or those that read.
  void access(bool write, bool counted) {
    const int32_t *pins = macros_.pins;
    uint64_t *accesses = counts_.accesses;
    for (int m = 0; m < macros_.count; m++) {
      const int32_t *shape = macros_.shape + kShape * m;
      const int bits = shape[1], single = shape[2] + shape[3], address_bits = shape[4];
      for (int p = 0; p < single + shape[5]; p++, accesses++) {
        // Pins: enable, `write` of a shared port, address, word to write, word read.
        const bool shared = p >= single;
        const int32_t *address = pins + 1 + shared, *data = address + address_bits;
        const bool enable = now_[pins[0]], writes = shared ? now_[pins[1]] : p >= shape[2];
        pins = data + bits * (1 + shared);
        if (!enable || writes != write) continue;
        if (counted) ++*accesses;
        size_t word = 0;
        for (int a = 0; a < address_bits; a++)
          word |= static_cast<size_t>(now_[address[a]]) << a;
        uint8_t *stored = words_[m].data() + word * bits;
        for (int b = 0; b < bits; b++) {
          if (write)
            stored[b] = now_[data[b]];
          else
            latched_.push_back({data[b + shared * bits], stored[b]});
        }
      }
    }
  }

  struct Latched {
    int32_t net;
    uint8_t value;
  };

  const Cells &cells_;
  const Macros &macros_;
  const Stimulus &stimulus_;
  Counts &counts_;
  uint8_t *now_;
  std::vector<uint8_t> before_;
  std::vector<std::vector<uint8_t>> words_;
  std::vector<Latched> latched_;
};

}  // namespace

extern "C" int64_t vip_gate_sim(const Cells *cells, const Macros *macros, const Stimulus *stimulus,
                                Counts *counts) {
  return Simulation(*cells, *macros, *stimulus, *counts).run();
}
