// Reads through an index: Gather by byte offset, Gatherb by 32-byte block, GatherMask by bit pattern.
#pragma once
#include "sort.hpp"

namespace AscendC {

struct GatherRepeatParams {
  uint32_t dstBlkStride = 1, dstRepStride = 8;
};
struct GatherMaskParams {
  GatherMaskParams() = default;
  GatherMaskParams(uint8_t blk, uint16_t repeat, uint16_t rep0, uint8_t rep1) : src0BlockStride(blk), repeatTimes(repeat), src0RepeatStride(rep0), src1RepeatStride(rep1) {}
  uint32_t src0BlockStride = 1, repeatTimes = 0, src0RepeatStride = 0, src1RepeatStride = 0;
};

template <class A, class B>
constexpr auto Ceil(A a, B b) { return (a + b - 1) / b; }

// The span that the offsets reach. In a random schedule they are not known yet when the instruction is issued.
template <class T>
inline sim::Access reached(const LocalTensor<T>& src, const uint32_t* offset, uint32_t count, uint64_t base, uint32_t width) {
  sim::Access a;
  a.mem = src.mem(), a.extent = src.extent(), a.check_init = false;
  uint64_t lo = 0, hi = 0;
  if (!sim::engine.options.deferred && count && src.data()) {
    const auto [low, high] = std::minmax_element(offset, offset + count);
    lo = base + *low, hi = base + *high + width;
  }
  const uint64_t room = sim::kMemBytes[int(src.mem())];
  a.add({src.off() + lo, uint32_t(std::min(hi - lo, 2 * room))});
  return a;
}

template <class T>
inline void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& offset, uint32_t base, uint32_t count) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4, "AscendC::Gather: dtypes are 16 and 32 bits wide");
  if (!src.data() || sim::current->id == 0) return;
  const sim::Access r = reached(src, offset.data(), count, base, sizeof(T)), o = offset.access(count), w = dst.access(count);
  sim::Instruction in{PIPE_V, sim::Op::Gather, {&o, &r}, 2, &w, {count, uint32_t((count * sizeof(T) + 255) / 256), sizeof(T)}};
  sim::issue(in, [=, d = dst.data(), s = reinterpret_cast<const uint8_t*>(src.data()), x = offset.data(), room = sim::kMemBytes[int(src.mem())] - src.off()] {
    for (uint32_t i = 0; i < count; ++i)
      if (uint64_t(base) + x[i] + sizeof(T) <= room) std::memcpy(static_cast<void*>(d + i), s + base + x[i], sizeof(T));
  });
}

template <class T>
inline void Gatherb(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& offset, uint8_t repeat, const GatherRepeatParams& p) {
  if (!src.data() || sim::current->id == 0) return;
  const uint32_t count = repeat * 8u;
  const sim::Access r = reached(src, offset.data(), count, 0, 32), o = offset.access(count);
  const sim::Access w = sim::local_access(dst, {dst.off(), 32, 8, p.dstBlkStride * 32, repeat, p.dstRepStride * 32});
  sim::Instruction in{PIPE_V, sim::Op::Gatherb, {&o, &r}, 2, &w, {uint32_t(count * 32 / sizeof(T)), repeat, sizeof(T)}};
  sim::issue(in, [=, d = reinterpret_cast<uint8_t*>(dst.data()), s = reinterpret_cast<const uint8_t*>(src.data()), x = offset.data(), room = sim::kMemBytes[int(src.mem())] - src.off()] {
    for (uint32_t i = 0; i < count; ++i)
      if (uint64_t(x[i]) + 32 <= room) std::memcpy(d + (uint64_t(i / 8) * p.dstRepStride + uint64_t(i % 8) * p.dstBlkStride) * 32, s + x[i], 32);
  });
}

// Packs the elements that `keep(repeat, lane)` names to the front of dst.
template <class T, class Keep>
inline void gather_mask(const LocalTensor<T>& dst, const LocalTensor<T>& src, const sim::Access* bits, bool counter, uint32_t mask, const GatherMaskParams& p, uint64_t* kept, Keep keep) {
  if (!src.data() || sim::current->id == 0) return;
  const uint32_t lanes = counter ? mask : uint32_t(kRepeat / sizeof(T)), repeat = p.repeatTimes;
  const sim::Step step{p.src0BlockStride, p.src0RepeatStride};
  sim::Access r;
  r.mem = src.mem(), r.extent = src.extent(), r.align = 32, r.check_init = false;
  const uint32_t blocks = uint32_t((lanes * sizeof(T) + 31) / 32);
  r.add({src.off(), 32, blocks, int64_t(step.blk) * 32, repeat, int64_t(step.rep) * 32});
  const uint64_t room = src.extent().hi > src.off() ? src.extent().hi - src.off() : 0;
  if (r.size == 1 && r.few[0].n1 == 1 && r.few[0].n2 == 1) r.few[0].len = uint32_t(std::min<uint64_t>(r.few[0].len, room));  // the last repeat may be partial
  uint32_t total = 0;
  if (!sim::engine.options.deferred)
    for (uint32_t k = 0; k < repeat; ++k)
      for (uint32_t i = 0; i < lanes; ++i) total += keep(k, i);
  const sim::Access w = dst.access(total);
  sim::Instruction in{PIPE_V, sim::Op::GatherMask, {&r, bits}, bits ? 2 : 1, &w, {repeat * lanes, repeat, sizeof(T)}};
  if (kept) *kept = total;
  sim::issue(in, [=, d = dst.data(), s = src.data()] {
    uint32_t n = 0;
    for (uint32_t k = 0; k < repeat; ++k)
      for (uint32_t i = 0; i < lanes; ++i)
        if (keep(k, i) && uint64_t(sim::lane_at(s, k, i, step) + 1 - s) * sizeof(T) <= room) d[n++] = *sim::lane_at(s, k, i, step);
  });
}

// Patterns 1 to 7: every second (first, second), every fourth (first to fourth), all.
template <class T>
inline void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint8_t pattern, bool counter, uint32_t mask, const GatherMaskParams& p, uint64_t& kept) {
  gather_mask(dst, src, nullptr, counter, mask, p, &kept, [pattern](uint32_t, uint32_t i) {
    if (pattern <= 2) return i % 2 == uint32_t(pattern - 1);
    return pattern == 7 || i % 4 == uint32_t(pattern - 3);
  });
}
template <class T, class U>
inline void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<U>& pattern, bool counter, uint32_t mask, const GatherMaskParams& p, uint64_t& kept) {
  const uint32_t lanes = counter ? mask : uint32_t(kRepeat / sizeof(T));
  sim::Access bits = pattern.access(1);
  bits.few[0].len = (lanes + 7) / 8;
  gather_mask(dst, src, &bits, counter, mask, p, &kept, [m = reinterpret_cast<const uint8_t*>(pattern.data()), rep = p.src1RepeatStride](uint32_t k, uint32_t i) {
    return (m[k * rep * 32 + i / 8] >> (i % 8) & 1) != 0;
  });
}

}  // namespace AscendC
