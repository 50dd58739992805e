// Instructions that change shape: Broadcast, Brcb and the transposes.
#pragma once
#include "reduce.hpp"

namespace sim {

// A shape written in place: the rewritten source uses it for compound literals, which g++ does not let decay.
struct Shape {
  uint32_t dims[4];
  operator const uint32_t*() const { return dims; }
};

}  // namespace sim

namespace AscendC {

struct BrcbRepeatParams {
  BrcbRepeatParams() = default;
  BrcbRepeatParams(uint16_t blk, uint16_t rep) : dstBlkStride(blk), dstRepStride(rep) {}
  uint32_t dstBlkStride = 1, dstRepStride = 8;
};
struct TransDataTo5HDParams {
  bool dstHighHalf = false, srcHighHalf = false;
  uint8_t repeatTimes = 1;
  uint16_t dstRepStride = 0, srcRepStride = 0;
};

// src has size 1 along `axis`, dst repeats it.
template <class T, int32_t dim, int32_t axis, bool isReuseSource = false, class Tmp>
inline void Broadcast(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t dstShape[], const uint32_t srcShape[], const LocalTensor<Tmp>& tmp) {
  static_assert(dim == 1 || dim == 2, "AscendC::Broadcast: 1 or 2 dims");
  const uint32_t rows = dim == 1 ? 1 : dstShape[0], cols = dstShape[dim - 1];
  const uint32_t src_rows = dim == 1 ? 1 : srcShape[0], src_cols = srcShape[dim - 1];
  const sim::Access r = src.access(uint64_t(src_rows) * src_cols), w = dst.access(uint64_t(rows) * cols), scratch = sim::scratch_of(tmp);
  sim::Instruction in{PIPE_V, sim::Op::Broadcast, {&r}, 1, &w, {rows * cols, uint32_t((uint64_t(rows) * cols * sizeof(T) + 255) / 256), sizeof(T), rows, cols, uint32_t(axis)}};
  in.scratch = &scratch;
  sim::issue(in, [=, d = dst.data(), s = src.data()] {
    for (uint32_t i = 0; i < rows; ++i)
      for (uint32_t j = 0; j < cols; ++j) d[uint64_t(i) * cols + j] = s[uint64_t(src_rows == 1 ? 0 : i) * src_cols + (src_cols == 1 ? 0 : j)];
  });
}
template <class T, int32_t dim, int32_t axis, bool isReuseSource = false>
inline void Broadcast(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t dstShape[], const uint32_t srcShape[]) {
  Broadcast<T, dim, axis, isReuseSource>(dst, src, dstShape, srcShape, LocalTensor<uint8_t>{});
}

// Every element fills one 32-byte block; eight elements a repeat.
template <class T>
inline void Brcb(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint8_t repeat, const BrcbRepeatParams& p) {
  constexpr uint32_t per_block = 32 / sizeof(T);
  const sim::Access r = src.access(repeat * 8u);
  const sim::Access w = sim::local_access(dst, {dst.off(), 32, 8, p.dstBlkStride * 32, repeat, p.dstRepStride * 32});
  sim::Instruction in{PIPE_V, sim::Op::Brcb, {&r}, 1, &w, {repeat * 8u * per_block, repeat, sizeof(T)}};
  sim::issue(in, [=, d = dst.data(), s = src.data()] {
    for (uint32_t i = 0; i < repeat * 8u; ++i) std::fill_n(d + (uint64_t(i / 8) * p.dstRepStride + uint64_t(i % 8) * p.dstBlkStride) * per_block, per_block, s[i]);
  });
}

// A 16 x 16 matrix of 16-bit elements.
template <class T>
inline void Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src) {
  static_assert(sizeof(T) == 2, "AscendC::Transpose: 16-bit dtypes");
  const sim::Access r = src.access(256), w = dst.access(256);
  sim::Instruction in{PIPE_V, sim::Op::Transpose, {&r}, 1, &w, {256, 2, sizeof(T)}};
  sim::issue(in, [d = dst.data(), s = src.data()] {
    T whole[256];
    std::copy_n(s, 256, whole);
    sim::transpose_square(d, whole, 16, 16);
  });
}

// Sixteen rows in, sixteen rows out, each given by its address; 32-bit elements use two rows of eight per column.
template <class T>
inline void TransDataTo5HDImpl(T* const dst[16], T* const src[16], const TransDataTo5HDParams& p) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4, "AscendC::TransDataTo5HD: 16 and 32-bit dtypes");
  sim::Stream& s = *sim::current;
  auto& memory = s.mem[int(sim::Mem::UB)].data;
  if (memory.empty()) return;
  constexpr uint32_t width = 32 / sizeof(T);
  const auto rows = [&](T* const list[16], uint32_t step) {
    sim::Access a;
    a.align = 32, a.extent = {0, memory.size(), 0};
    for (int i = 0; i < 16; ++i) a.add({uint64_t(reinterpret_cast<uint8_t*>(list[i]) - memory.data()), 32, 1, 0, p.repeatTimes, int64_t(step) * 32});
    return a;
  };
  const sim::Access r = rows(src, p.srcRepStride), w = rows(dst, p.dstRepStride);
  std::array<T*, 16> to, from;
  std::copy_n(dst, 16, to.begin()), std::copy_n(src, 16, from.begin());
  sim::Instruction in{PIPE_V, sim::Op::TransDataTo5HD, {&r}, 1, &w, {16u * width * p.repeatTimes, p.repeatTimes, sizeof(T)}};
  sim::issue(in, [=] {
    for (uint32_t k = 0; k < p.repeatTimes; ++k) {
      T in_rows[16][width];
      for (int i = 0; i < 16; ++i) std::copy_n(from[i] + uint64_t(k) * p.srcRepStride * width, width, in_rows[i]);
      for (uint32_t i = 0; i < 16; ++i)
        for (uint32_t j = 0; j < width; ++j) {
          T* row = to[i] + uint64_t(k) * p.dstRepStride * width;
          if constexpr (sizeof(T) == 2) row[j] = in_rows[j][i];
          else row[j] = in_rows[(i % 2) * width + j][i / 2];
        }
    }
  });
}

}  // namespace AscendC
