// How a Vector instruction walks its operands: a plain count, or repeats of 256 bytes with strides and a lane mask.
#pragma once
#include "sync.hpp"

namespace AscendC {

constexpr int kBlock = 32, kRepeat = 256;

struct UnaryRepeatParams {
  UnaryRepeatParams() = default;
  UnaryRepeatParams(uint16_t dstBlk, uint16_t srcBlk, uint8_t dstRep, uint8_t srcRep, bool = false)
      : dstBlkStride(dstBlk), srcBlkStride(srcBlk), dstRepStride(dstRep), srcRepStride(srcRep) {}
  uint32_t dstBlkStride = 1, srcBlkStride = 1, dstRepStride = 8, srcRepStride = 8;
};
struct BinaryRepeatParams {
  BinaryRepeatParams() = default;
  BinaryRepeatParams(uint8_t dstBlk, uint8_t src0Blk, uint8_t src1Blk, uint8_t dstRep, uint8_t src0Rep, uint8_t src1Rep)
      : dstBlkStride(dstBlk), src0BlkStride(src0Blk), src1BlkStride(src1Blk), dstRepStride(dstRep), src0RepStride(src0Rep), src1RepStride(src1Rep) {}
  uint32_t dstBlkStride = 1, src0BlkStride = 1, src1BlkStride = 1, dstRepStride = 8, src0RepStride = 8, src1RepStride = 8;
};

}  // namespace AscendC

namespace sim {

// Strides of one operand, in blocks of 32 bytes.
struct Step { uint32_t blk = 1, rep = 8; };

struct Lanes {
  bool flat = true;
  uint32_t count = 0;      // flat: elements
  uint32_t repeat = 1;     // strided: repeats, lanes per repeat, and which lanes are on
  uint32_t lanes = 0;
  uint64_t mask[2] = {0, 0};

  static Lanes plain(int64_t count) {
    current->mask[0] = current->mask[1] = ~0ull;
    Lanes l;
    l.count = count > 0 ? uint32_t(count) : 0;
    return l;
  }
  static Lanes first(uint64_t on, uint32_t repeat, uint32_t lanes, bool set_mask) {
    const uint64_t low = on >= 64 ? ~0ull : (1ull << on) - 1, high = on <= 64 ? 0 : on >= 128 ? ~0ull : (1ull << (on - 64)) - 1;
    return of_bits(low, high, repeat, lanes, set_mask);
  }
  static Lanes bits(const uint64_t* mask, uint32_t repeat, uint32_t lanes, bool set_mask) {
    return of_bits(set_mask ? mask[0] : 0, set_mask && lanes > 64 ? mask[1] : 0, repeat, lanes, set_mask);
  }
  bool on(uint32_t lane) const { return mask[lane / 64] >> (lane % 64) & 1; }
  uint32_t elements() const {
    if (flat) return count;
    return repeat * uint32_t(__builtin_popcountll(mask[0]) + (lanes > 64 ? __builtin_popcountll(mask[1]) : 0));
  }
  uint32_t repeats(uint32_t size) const { return flat ? (count * size + 255) / 256 : repeat; }

 private:
  // An instruction that does not set the mask runs with the one that is set.
  static Lanes of_bits(uint64_t low, uint64_t high, uint32_t repeat, uint32_t lanes, bool set_mask) {
    Lanes l;
    l.flat = false, l.repeat = repeat, l.lanes = lanes;
    if (set_mask) current->mask[0] = low, current->mask[1] = high;
    l.mask[0] = current->mask[0], l.mask[1] = lanes > 64 ? current->mask[1] : 0;
    if (lanes < 64) l.mask[0] &= (1ull << lanes) - 1;
    return l;
  }
};

template <class T>
inline T* lane_at(T* base, uint32_t rep, uint32_t lane, Step step) {
  constexpr uint32_t per_block = 32 / sizeof(T);
  return base + (uint64_t(rep) * step.rep + uint64_t(lane / per_block) * step.blk) * per_block + lane % per_block;
}

// The bytes of one operand. Lanes that are on are gathered into runs inside their 32-byte block.
template <class T>
inline Access operand(const AscendC::LocalTensor<T>& t, const Lanes& l, Step step, uint32_t align = 32) {
  if (l.flat) return t.access(l.count, align);
  Access a;
  a.mem = t.mem(), a.extent = t.extent(), a.start = t.off(), a.align = align;
  constexpr uint32_t per_block = 32 / sizeof(T);
  const auto full = [&](uint32_t block) {
    for (uint32_t i = 0; i < per_block; ++i)
      if (!l.on(block * per_block + i)) return false;
    return true;
  };
  const uint32_t blocks = (l.lanes + per_block - 1) / per_block;
  for (uint32_t b = 0; b < blocks;) {
    const uint64_t at = t.off() + uint64_t(b) * step.blk * 32;
    uint32_t n = 0;
    while (b + n < blocks && full(b + n)) ++n;
    if (n) {
      a.add({at, 32, n, int64_t(step.blk) * 32, l.repeat, int64_t(step.rep) * 32});
      b += n;
      continue;
    }
    for (uint32_t i = 0; i < per_block;) {
      uint32_t run = 0;
      while (i + run < per_block && l.on(b * per_block + i + run)) ++run;
      if (run) a.add({at + i * sizeof(T), uint32_t(run * sizeof(T)), 1, 0, l.repeat, int64_t(step.rep) * 32});
      i += run ? run : 1;
    }
    ++b;
  }
  return a;
}

// f(rep, lane) for every lane that is on.
template <class F>
inline void each_lane(const Lanes& l, F&& f) {
  for (uint32_t r = 0; r < l.repeat; ++r)
    for (uint32_t i = 0; i < l.lanes; ++i)
      if (l.on(i)) f(r, i);
}

template <class T>
inline Cost vector_cost(const Lanes& l) { return {l.elements(), l.repeats(sizeof(T)), uint32_t(sizeof(T))}; }

}  // namespace sim
