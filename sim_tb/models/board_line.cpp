// A board's pins: its clock, its serial line as a pseudo-terminal, and, with WITH_SDRAM, its SDRAM.
//
//   board_line DIVISOR [STEP]
//
// writes the terminal's name, runs until the host closes it, and writes the cycles that passed. With
// an SDRAM, the clock changes each STEP ps, four times a cycle of the chip; a rule that is broken is
// written instead of the cycles, and ends the run.

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <deque>
#include <memory>
#include <vector>

#include "Vtop.h"
#include "verilated.h"
#ifdef WITH_SDRAM
#include "sdram.h"
#endif

namespace {

#ifdef WITH_SDRAM
constexpr int kSteps = 2;
#else
constexpr int kSteps = 1;
#endif

// Bits of a frame: start, eight of data, stop.
constexpr int kBits = 10;
// Cycles between two looks at the terminal: fewer than a byte takes.
constexpr int kPoll = 32;
// Cycles before the host's first byte, which the reset has ended by then, and an SDRAM is ready.
constexpr int kReset = kSteps == 1 ? 1 << 10 : 1 << 16;

class Line {
 public:
  Line(int divisor, int terminal) : divisor_(divisor), terminal_(terminal) {}

  // The next level to the chip.
  bool send() {
    if (send_left_ == 0) {
      if (to_chip_.empty()) return true;
      frame_ = to_chip_.front() << 1 | 1 << (kBits - 1);
      to_chip_.pop_front();
      send_left_ = kBits * divisor_;
    }
    const int bit = kBits - 1 - (send_left_ - 1) / divisor_;
    --send_left_;
    return frame_ >> bit & 1;
  }

  // Sample the level from the chip.
  void receive(bool level) {
    if (receive_left_ == 0) {
      if (level) return;
      receive_left_ = kBits * divisor_;
      byte_ = 0;
    }
    const int passed = kBits * divisor_ - receive_left_;
    const int bit = passed / divisor_;
    if (passed % divisor_ == divisor_ / 2) {
      if (bit >= 1 && bit <= 8) byte_ |= level << (bit - 1);
      if (bit == kBits - 1) {
        if (level) from_chip_.push_back(byte_);
        // The next start bit may come early.
        receive_left_ = 0;
        return;
      }
    }
    --receive_left_;
  }

  // Exchange bytes with the terminal; false: the host has closed it.
  bool exchange() {
    uint8_t bytes[256];
    const ssize_t count = read(terminal_, bytes, sizeof bytes);
    if (count > 0) {
      opened_ = true;
      to_chip_.insert(to_chip_.end(), bytes, bytes + count);
    } else if (count < 0 && errno == EIO && opened_) {
      return false;
    }
    if (!from_chip_.empty()) {
      const ssize_t written = write(terminal_, from_chip_.data(), from_chip_.size());
      if (written > 0) from_chip_.erase(from_chip_.begin(), from_chip_.begin() + written);
    }
    return true;
  }

  // Nothing has come from the host yet.
  bool untouched() const { return !opened_; }

 private:
  const int divisor_;
  const int terminal_;
  bool opened_ = false;
  std::deque<uint8_t> to_chip_;
  std::vector<uint8_t> from_chip_;
  unsigned frame_ = 0, byte_ = 0;
  int send_left_ = 0, receive_left_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != (kSteps == 1 ? 2 : 3)) return 2;
  int terminal, other;
  char name[256];
  termios raw;
  cfmakeraw(&raw);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  if (openpty(&terminal, &other, name, &raw, nullptr)) {
    perror("openpty");
    return 1;
  }
  fcntl(terminal, F_SETFL, O_NONBLOCK);
  printf("%s\n", name);
  fflush(stdout);

  VerilatedContext context;
  auto top = std::make_unique<Vtop>(&context);
  Line line(atoi(argv[1]), terminal);
  uint64_t cycle = 0;
#ifdef WITH_SDRAM
  Sdram sdram;
  const int64_t step = atoll(argv[2]);
  int64_t now = 0;
#endif
  const auto half = [&](bool clk) {
    top->clk = clk;
#ifdef WITH_SDRAM
    now += step;
    top->sdram_dq = sdram.shown(now);
#endif
    top->eval();
#ifdef WITH_SDRAM
    sdram.see(now, {static_cast<bool>(top->sdram_clk), static_cast<bool>(top->sdram_cke),
                    static_cast<bool>(top->sdram_cs_n), static_cast<bool>(top->sdram_ras_n),
                    static_cast<bool>(top->sdram_cas_n), static_cast<bool>(top->sdram_we_n),
                    top->sdram_dm, top->sdram_ba, top->sdram_a, top->sdram_dq__out,
                    top->sdram_dq__en});
#endif
  };
  top->rx = 1;
  for (;; ++cycle) {
    for (int part = 0; part < kSteps; ++part) {
      half(true);
      if (part == 0) {
        line.receive(top->tx);
        top->rx = line.send();
      }
      half(false);
    }
#ifdef WITH_SDRAM
    if (!sdram.broken().empty()) {
      printf("%s\n", sdram.broken().c_str());
      return 1;
    }
#endif
    if (cycle % kPoll || cycle < kReset) continue;
    if (line.untouched()) {
      // Time does not pass before the host's first byte.
      pollfd ready{terminal, POLLIN, 0};
      poll(&ready, 1, 10);
    }
    if (!line.exchange()) break;
    // The host has the terminal open now.
    if (!line.untouched() && other >= 0) {
      close(other);
      other = -1;
    }
  }
  printf("%llu\n", static_cast<unsigned long long>(cycle));
  return 0;
}
