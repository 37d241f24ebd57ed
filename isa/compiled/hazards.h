// Hazards of the vector unit: the model and the log of isa/hazards.py, with the same results.
#pragma once

#include <algorithm>
#include <vector>

#include "engine.h"

namespace vip {

// What an instruction has to do with the vector unit and the scratchpad.
enum class Part : uint8_t { kNone, kVector, kLoad, kStore, kDrain };

// Elements that lie at an address: one, times VL, times MR.
struct Extent {
    bool by_vl, by_mr;
    int64_t elements(int64_t vl, int64_t mr) const { return (by_vl ? vl : 1) * (by_mr ? mr : 1); }
};

// A row of the instruction table.
struct HazardRow {
    Part part;
    uint8_t width;   // bytes of an element
    uint8_t passes;  // cycles of a word
    bool reduces;
    uint8_t operands;   // that a vector instruction reads
    Extent extents[3];  // of its result, then of those
};

constexpr HazardRow kHazardRows[] = {
#include "hazard_rows.inc"
};

// Scratchpad bytes start .. end.
struct Span {
    int64_t start, end;
};

inline Span common(const Span& a, const Span& b) {
    return {std::max(a.start, b.start), std::min(a.end, b.end)};
}

inline bool overlap(const Span& a, const Span& b) {
    const Span both = common(a, b);
    return both.start < both.end;
}

// A vector instruction with the bytes that it touches, and in which beats.
class VectorOperation {
  public:
    VectorOperation() = default;
    VectorOperation(const Engine& engine, const Operation& op, int64_t at)
        : pc(at), row_(&kHazardRows[op.row]) {
        const int64_t vl = engine.vl, mr = engine.mr;
        const uint8_t registers[] = {op.a, op.b, op.c};
        const auto span = [&](unsigned number) -> Span {
            const int64_t start = engine.registers[registers[number]];
            return {start, start + row_->width * row_->extents[number].elements(vl, mr)};
        };
        operands = row_->operands;
        result = span(0);
        for (unsigned i = 0; i < operands; ++i) operand[i] = span(i + 1);
        row_bytes_ = vl * row_->width;
        row_beats_ = (row_bytes_ + kWordBytes - 1) / kWordBytes * row_->passes;
        rows_ = row_->reduces ? mr : 1;
    }

    int64_t beats() const { return rows_ * row_beats_; }

    // The beat that first reads a byte of an operand.
    int64_t read(unsigned number, int64_t address) const {
        const int64_t byte = address - operand[number].start;
        if (!row_->reduces || number) return of_words(byte);
        return byte / row_bytes_ * row_beats_ + of_words(byte % row_bytes_);
    }

    int64_t last_read(unsigned number, int64_t address) const {
        return read(number, address) + (number ? (rows_ - 1) * row_beats_ : 0);
    }

    // The beat that completes a byte of the result.
    int64_t made(int64_t address) const {
        const int64_t byte = address - result.start;
        if (row_->reduces) return (byte / row_->width + 1) * row_beats_ - 1;
        return of_words(byte) + row_->passes - 1;
    }

    // The first byte after `address` that may be made in a later beat.
    int64_t made_later(int64_t address) const {
        const int64_t together = row_->reduces ? row_->width : kWordBytes;
        return result.start + ((address - result.start) / together + 1) * together;
    }

    bool reads_itself() const {
        for (unsigned i = 0; i < operands; ++i) {
            bool same = result.start == operand[i].start;
            same &= row_->reduces ? i == 0 : result.end == operand[i].end;
            if (!same && overlap(result, operand[i])) return true;
        }
        return false;
    }

    int64_t pc = 0;
    unsigned operands = 0;
    Span result{}, operand[2]{};

  private:
    int64_t of_words(int64_t byte) const { return byte / kWordBytes * row_->passes; }

    const HazardRow* row_ = nullptr;
    int64_t row_bytes_ = 0, row_beats_ = 0, rows_ = 0;
};

class HazardLog {
  public:
    // Those found, in the order in which they were met.
    std::vector<FoundHazard> found;

    // `op` at word `at` has been executed.
    void executed(const Engine& engine, const Operation& op, int64_t at) {
        const HazardRow& row = kHazardRows[op.row];
        if (row.part == Part::kDrain) return drained();
        if (row.part == Part::kVector) return vector(VectorOperation(engine, op, at));
        const int64_t start = engine.registers[op.a];
        const int64_t size = engine.registers[op.c] * row.width;
        if (size) transfer(row.part == Part::kLoad, {start, start + size}, at);
    }

  private:
    struct Issued : VectorOperation {
        Issued(const VectorOperation& operation, int64_t start)
            : VectorOperation(operation), base(start) {}
        int64_t last() const { return base + beats() - 1; }
        int64_t base;
    };

    void drained() {
        now_ += kVectorLatency;
        std::fill(std::begin(ends_), std::end(ends_), now_);
        results_.clear();
        held_ = 0;
    }

    void vector(const VectorOperation& operation) {
        met_.clear();
        before_vector(operation);
        add();
        if (operation.reads_itself()) {
            int64_t address = INT64_MAX;
            for (unsigned i = 0; i < operation.operands; ++i) {
                const Span both = common(operation.result, operation.operand[i]);
                if (both.start < both.end) address = std::min(address, both.start);
            }
            met_.push_back({operation.pc, kOwnOperand, address, operation.pc, 0, 0, 1});
            add();
        }
        issued(operation);
    }

    void issued(const VectorOperation& operation) {
        const Issued entry(operation, now_);
        now_ += operation.beats();
        std::copy(std::begin(ends_) + 1, std::end(ends_), std::begin(ends_));
        ends_[kVectorHeld] = now_;
        const int64_t ready = ends_[0] - kVectorLatency;
        std::erase_if(results_, [&](const Issued& earlier) { return earlier.last() <= ready; });
        // What is still held has not been erased: its last beat is not before ends_[0].
        results_.push_back(entry);
        held_ = std::min<size_t>(held_ + 1, kVectorHeld);
    }

    void before_vector(const VectorOperation& operation) {
        for (const Issued& issued : results_) {
            if (issued.last() <= now_ - kVectorLatency) continue;
            for (unsigned i = 0; i < operation.operands; ++i) {
                const Span both = common(operation.operand[i], issued.result);
                if (both.start >= both.end) continue;
                const int64_t since = now_ - issued.base;
                const auto distance = [&](int64_t read, int64_t made) {
                    return since + operation.read(i, read) - issued.made(made);
                };
                // Beats ascend, so this is a bound; it is enough for most.
                if (distance(both.start, both.end - 1) >= kVectorLatency) continue;
                // Among bytes that are made in one beat the first is the closest.
                int64_t closest = both.start, least = distance(closest, closest);
                for (int64_t byte = issued.made_later(closest); byte < both.end;
                     byte = issued.made_later(byte)) {
                    const int64_t here = distance(byte, byte);
                    if (here < least) closest = byte, least = here;
                }
                if (least < kVectorLatency)
                    meet(operation.pc, kVectorRead, closest, issued, least, kVectorLatency);
            }
        }
    }

    void transfer(bool load, const Span& span, int64_t pc) {
        met_.clear();
        if (load) {
            for (size_t at = results_.size() - held_; at < results_.size(); ++at) {
                const Issued& issued = results_[at];
                for (unsigned i = 0; i < issued.operands; ++i) {
                    const Span both = common(issued.operand[i], span);
                    if (both.start >= both.end) continue;
                    // The closest byte is the one that is read last.
                    const int64_t byte = both.end - 1;
                    const int64_t distance = ends_[0] - issued.base - issued.last_read(i, byte);
                    meet(pc, kLoadOverOperands, byte, issued, distance, 1);
                }
            }
        }
        for (const Issued& issued : results_) {
            const Span both = common(issued.result, span);
            if (both.start >= both.end) continue;
            // The closest byte is the one that is made last.
            const int64_t byte = both.end - 1;
            const int64_t distance = ends_[0] - issued.base - issued.made(byte);
            if (distance < kVectorLatency)
                meet(pc, load ? kLoadOverResults : kStore, byte, issued, distance, kVectorLatency);
        }
        add();
    }

    void meet(int64_t pc, int64_t what, int64_t byte, const Issued& issued, int64_t distance,
              int64_t needed) {
        // The furthest first, those of one distance in the order in which they were met.
        auto place = met_.begin();
        while (place != met_.end() && place->distance >= distance) ++place;
        met_.insert(place, {pc, what, byte, issued.pc, distance, needed, 1});
    }

    // Of several of a kind that one execution meets, the closest counts. Kinds follow each other
    // by the one of theirs that is least close.
    void add() {
        for (auto one = met_.begin(); one != met_.end(); ++one) {
            const auto alike = [&](const FoundHazard& each) { return each.what == one->what; };
            if (std::none_of(met_.begin(), one, alike))
                add(*std::find_if(met_.rbegin(), met_.rend(), alike));
        }
        met_.clear();
    }

    void add(const FoundHazard& hazard) {
        const size_t at = hazard.pc * kHazardKinds + hazard.what;
        if (at >= places_.size()) places_.resize(at + 1);
        size_t& place = places_[at];
        if (!place) {
            found.push_back(hazard);
            place = found.size();
            return;
        }
        FoundHazard& known = found[place - 1];
        const int64_t times = known.times + 1;
        if (hazard.distance < known.distance) known = hazard;
        known.times = times;
    }

    int64_t now_ = 0;
    // Of the last instructions; all but the first may still be in the vector unit.
    int64_t ends_[kVectorHeld + 1] = {};
    // Those whose results may be missing; the operands of the last `held_` may be unread.
    std::vector<Issued> results_;
    size_t held_ = 0;
    std::vector<FoundHazard> met_;
    // For each word and kind the place in `found`, from 1 on; 0: not met.
    std::vector<size_t> places_;
};

}  // namespace vip
