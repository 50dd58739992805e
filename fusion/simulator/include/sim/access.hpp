// What an instruction touches: strided byte ranges in one memory, with the buffer they are meant to stay in.
#pragma once
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "machine.hpp"

namespace sim {

// n2 x n1 runs of `len` bytes; a contiguous block has n1 == n2 == 1.
struct Range {
  uint64_t off;
  uint32_t len;
  uint32_t n1 = 1;
  int64_t s1 = 0;
  uint32_t n2 = 1;
  int64_t s2 = 0;
};

// A named piece of a memory: [lo, hi) in bytes. For local memories it comes from the address map, for GM from the launch.
struct Extent {
  uint64_t lo = 0, hi = 0;
  uint16_t id = 0;
};

struct Access {
  Mem mem = Mem::UB;
  Extent extent;
  uint64_t start = 0;       // address of the operand, which must be a multiple of `align`
  uint32_t align = 1;
  bool check_init = true;   // false for moves that carry padding along, and for operands that are only partly used
  mutable bool outside = false;  // leaves its buffer: reported once, so its bytes are not also called unset
  uint32_t size = 0;        // ranges in use
  std::array<Range, 3> few;
  std::vector<Range> many;  // irregular masks only

  void add(const Range& range) {
    if (size == 0 && start == 0) start = range.off;
    if (range.len == 0 || range.n1 == 0 || range.n2 == 0) return;
    Range r = range;
    if (r.n1 > 1 && r.s1 == r.len) r.len *= r.n1, r.n1 = 1, r.s1 = 0;
    if (r.n1 == 1 && r.n2 > 1 && r.s2 == r.len) r.len *= r.n2, r.n2 = 1, r.s2 = 0;
    if (size < few.size()) few[size] = r;
    else many.push_back(r);
    ++size;
  }
  const Range& at(uint32_t i) const { return i < few.size() ? few[i] : many[i - few.size()]; }

  template <class F>  // f(offset, length) for every contiguous run
  void each_run(F&& f) const {
    for (uint32_t i = 0; i < size; ++i) {
      const Range& r = at(i);
      for (uint32_t b = 0; b < r.n2; ++b)
        for (uint32_t a = 0; a < r.n1; ++a) f(r.off + int64_t(a) * r.s1 + int64_t(b) * r.s2, r.len);
    }
  }
  uint64_t bytes() const {
    uint64_t total = 0;
    for (uint32_t i = 0; i < size; ++i) total += uint64_t(at(i).len) * at(i).n1 * at(i).n2;
    return total;
  }
  // Lowest and one past the highest byte, as signed numbers so that a negative stride shows.
  std::pair<int64_t, int64_t> span() const {
    int64_t lo = INT64_MAX, hi = INT64_MIN;
    for (uint32_t i = 0; i < size; ++i) {
      const Range& r = at(i);
      const int64_t d1 = int64_t(r.n1 - 1) * r.s1, d2 = int64_t(r.n2 - 1) * r.s2, off = int64_t(r.off);
      lo = std::min(lo, off + std::min<int64_t>(d1, 0) + std::min<int64_t>(d2, 0));
      hi = std::max(hi, off + std::max<int64_t>(d1, 0) + std::max<int64_t>(d2, 0) + r.len);
    }
    return {lo, hi};
  }
};

}  // namespace sim
