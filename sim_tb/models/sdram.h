// An SDRAM of 32 MiB at its pins: 4 banks of 8,192 rows of 512 words of 16 bits (MT48LC16M16 and
// its like), which checks the rules of its data sheet and says which one is broken.

#pragma once

#include <stdint.h>
#include <stdio.h>

#include <string>
#include <vector>

// Levels of the pins in a moment.
struct SdramPins {
  bool clk, cke, cs_n, ras_n, cas_n, we_n;
  unsigned dm, ba, a, dq, drives;  // drives: the pins of dq that the other side drives
};

class Sdram {
 public:
  Sdram() : words_(kBanks << (kRowBits + kColumnBits)) {}

  // What the pins show now, in ps, in ascending order of time.
  void see(int64_t now, const SdramPins& pins) {
    if (pins.clk && !clk_) edge(now, pins);
    clk_ = pins.clk;
    if (pins.drives && driven(now)) fail(now, "both sides drive the data");
  }

  // The data that the other side sees: noise where no data are valid.
  unsigned shown(int64_t now) {
    for (const Word& word : out_) {
      if (now >= word.from && now < word.to) return word.data;
    }
    return noise_ = (noise_ * 25173 + 13849) & 0xffff;
  }

  // The first rule that was broken; empty: none.
  const std::string& broken() const { return broken_; }

 private:
  struct Bank {
    int row = -1;  // -1: closed
    int64_t activated = kLongAgo, written = kLongAgo, closed = kLongAgo;
  };
  // A word on its way out, which is driven, and valid as the other side sees it, between times.
  struct Word {
    int64_t from, to;
    unsigned data;
  };
  static constexpr int kBanks = 4, kRowBits = 13, kColumnBits = 9;
  static constexpr int64_t kLongAgo = -1'000'000'000;
  // Times in ps: of the slowest of the usual parts at 133 MHz and above.
  static constexpr int64_t kRcd = 20'000, kRp = 20'000, kRas = 44'000, kRc = 66'000, kRfc = 66'000,
                           kRrd = 15'000, kWr = 15'000, kPowerUp = 200'000'000,
                           kAccess = 5'400, kHold = 2'500, kClock2 = 10'000, kClock3 = 7'000,
                           kRefresh = 7'812'500, kMostOpen = 120'000'000;
  // The way of the clock out of the device's pin and that of the data back into it.
  static constexpr int64_t kPads = 3'000;

  void edge(int64_t now, const SdramPins& pins) {
    const int64_t period = now - last_edge_;
    last_edge_ = now;
    if (!pins.cke) return;
    if (mode_ && period < (latency_ == 2 ? kClock2 : kClock3)) fail(now, "the clock is too fast");
    if (mode_ && now - refreshed_ > 2 * kRefresh) fail(now, "a refresh is late");
    if (write_left_) write(now, pins);
    while (!out_.empty() && out_.front().to < now - 2 * period) out_.erase(out_.begin());
    period_ = period;
    if (pins.cs_n) return;
    const int command = !pins.ras_n << 2 | !pins.cas_n << 1 | !pins.we_n;
    if (command && now < kPowerUp) fail(now, "a command before 200 us have passed");
    if (command && now - mode_set_ < 2 * period) fail(now, "tMRD");
    switch (command) {
      case 0b000: return;                              // no operation
      case 0b100: return activate(now, pins.ba, pins.a);
      case 0b010: return access(now, pins, false);
      case 0b011: return access(now, pins, true);
      case 0b101:
        for (unsigned bank = 0; bank < kBanks; ++bank)
          if (pins.a >> 10 & 1 || bank == pins.ba) precharge(now, bank);
        return;
      case 0b110: return refresh(now);
      case 0b111: return set_mode(now, pins.a);
      default: return fail(now, "a command that nothing may give");
    }
  }

  void activate(int64_t now, unsigned number, unsigned row) {
    Bank& bank = banks_[number];
    if (!mode_) fail(now, "an ACTIVATE before the mode is set");
    if (bank.row >= 0) fail(now, "an ACTIVATE of a bank that is open");
    if (now - bank.closed < kRp) fail(now, "tRP before an ACTIVATE");
    if (now - bank.activated < kRc) fail(now, "tRC");
    if (now - activated_ < kRrd) fail(now, "tRRD");
    if (now - refreshed_ < kRfc) fail(now, "tRFC before an ACTIVATE");
    bank.row = row & ((1 << kRowBits) - 1);
    bank.activated = activated_ = now;
  }

  void access(int64_t now, const SdramPins& pins, bool write_it) {
    Bank& bank = banks_[pins.ba];
    if (bank.row < 0) return fail(now, "an access to a bank that is closed");
    if (now - bank.activated < kRcd) fail(now, "tRCD");
    place_ = static_cast<size_t>(pins.ba) << (kRowBits + kColumnBits) |
             static_cast<size_t>(bank.row) << kColumnBits | (pins.a & ((1 << kColumnBits) - 1));
    bank_ = pins.ba;
    const bool closes = pins.a >> 10 & 1;
    // An access ends the one before it.
    const int64_t first = now + latency_ * period_;
    while (!out_.empty() && out_.back().to > (write_it ? now : first) + kHold + kPads)
      out_.pop_back();
    if (write_it) {
      if (driven(now)) fail(now, "a WRITE while data are read");
      write_left_ = burst_;
      write(now, pins);
    } else {
      write_left_ = 0;
      for (int beat = 0; beat < burst_; ++beat) {
        const int64_t at = first + beat * period_;
        out_.push_back({at - period_ + kAccess + kPads, at + kHold + kPads, word(around(beat))});
      }
    }
    if (closes) {
      bank.row = -1;
      const int64_t end = now + (burst_ - 1) * period_ + (write_it ? kWr : period_);
      if (end - bank.activated < kRas) fail(now, "tRAS before a precharge of an access");
      bank.closed = end;
    }
  }

  // A word, with what was in it before: anything, but not 0.
  unsigned word(size_t place) const {
    return words_[place] ^ ((static_cast<uint32_t>(place) * 2654435761u) >> 16);
  }

  // Bursts wrap within their length.
  size_t around(int beat) const {
    return (place_ & ~static_cast<size_t>(burst_ - 1)) | ((place_ + beat) & (burst_ - 1));
  }

  void write(int64_t now, const SdramPins& pins) {
    if (pins.drives != 0xffff) fail(now, "data of a WRITE that nobody drives");
    const size_t place = around(burst_ - write_left_);
    const unsigned mask = (pins.dm & 1 ? 0 : 0x00ff) | (pins.dm & 2 ? 0 : 0xff00);
    words_[place] ^= (word(place) ^ pins.dq) & mask;
    banks_[bank_].written = now;
    --write_left_;
  }

  void precharge(int64_t now, unsigned number) {
    Bank& bank = banks_[number];
    // A bank that is closed may be precharged, too.
    if (bank.row < 0) {
      bank.closed = now;
      return;
    }
    if (now - bank.activated < kRas) fail(now, "tRAS");
    if (now - bank.activated > kMostOpen) fail(now, "a row that is open for too long");
    if (now - bank.written < kWr) fail(now, "tWR");
    if (write_left_ && bank_ == number) fail(now, "a precharge during a WRITE");
    bank.row = -1;
    bank.closed = now;
  }

  void refresh(int64_t now) {
    idle(now, "a REFRESH");
    if (now - refreshed_ < kRfc) fail(now, "tRFC");
    refreshed_ = now;
    ++refreshes_;
  }

  void set_mode(int64_t now, unsigned mode) {
    idle(now, "a mode");
    if (now - refreshed_ < kRfc) fail(now, "tRFC before a mode");
    if (refreshes_ < 2) fail(now, "a mode before two refreshes");
    latency_ = mode >> 4 & 7;
    burst_ = 1 << (mode & 7);
    if ((latency_ != 2 && latency_ != 3) || (mode & 7) > 3 || mode & ~0x77u)
      fail(now, "a mode that it does not have");
    mode_ = true;
    mode_set_ = now;
  }

  void idle(int64_t now, const char* what) {
    for (const Bank& bank : banks_) {
      if (bank.row >= 0) fail(now, std::string(what) + " with a bank that is open");
      if (now - bank.closed < kRp) fail(now, std::string("tRP before ") + what);
    }
  }

  // Whether it drives the data: from before they are valid until after.
  bool driven(int64_t now) const {
    for (const Word& word : out_)
      if (now >= word.from - kPads - kAccess + kHold && now < word.to - kPads) return true;
    return false;
  }

  void fail(int64_t now, const std::string& what) {
    if (broken_.empty()) broken_ = what + ", after " + std::to_string(now / 1000) + " ns";
  }

  std::vector<uint16_t> words_;
  Bank banks_[kBanks];
  std::vector<Word> out_;
  bool clk_ = true, mode_ = false;
  int latency_ = 3, burst_ = 1, write_left_ = 0, refreshes_ = 0;
  unsigned bank_ = 0, noise_ = 1;
  size_t place_ = 0;
  int64_t last_edge_ = 0, period_ = 0, activated_ = kLongAgo, refreshed_ = kLongAgo,
          mode_set_ = kLongAgo;
  std::string broken_;
};
