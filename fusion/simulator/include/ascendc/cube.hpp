// The Cube: fractal loads from L1 to L0, matrix multiply with fp32 (int32) accumulation, and Fixpipe from L0C to GM.
#pragma once
#include "copy.hpp"

enum QuantMode_t { NoQuant = 0, F322F16, F322BF16, DEQF16, VDEQF16, QF322B8_PRE, VQF322B8_PRE, REQ8, VREQ8 };

namespace AscendC {

struct LoadData2DParams {
  uint16_t startIndex = 0;
  uint8_t repeatTimes = 0;
  uint16_t srcStride = 0;
  uint8_t sid = 0;
  uint16_t dstGap = 0;
  bool ifTranspose = false;
  uint8_t addrMode = 0;
};
struct LoadData2dTransposeParams {
  uint16_t startIndex = 0;
  uint8_t repeatTimes = 0;
  uint16_t srcStride = 0, dstGap = 0, dstFracGap = 0;
  uint8_t addrMode = 0;
};
struct MmadParams {
  uint16_t m = 0, n = 0, k = 0;
  uint8_t unitFlag = 0;
  bool cmatrixSource = false, cmatrixInitVal = true, isBias = false;
};
struct FixpipeParamsV220 {
  uint16_t nSize = 0, mSize = 0, srcStride = 0;
  uint32_t dstStride = 0;
  QuantMode_t quantPre = NoQuant;
  uint64_t deqScalar = 0;
  uint16_t ndNum = 1, srcNdStride = 0, dstNdStride = 0;
  bool reluEn = false;
  uint8_t unitFlag = 0;
  bool isChannelSplit = false;
};
struct FixpipeConfig { bool row_major; };
inline constexpr FixpipeConfig CFG_ROW_MAJOR{true}, CFG_NZ{false};

}  // namespace AscendC

namespace sim {

constexpr uint32_t kFractal = 512;

template <class T>
inline void transpose_square(T* to, const T* from, uint32_t n, uint32_t width) {
  // `from` holds n x n elements as fractals of n rows by `width` columns, `to` gets the transpose in the same form.
  const auto at = [&](uint32_t r, uint32_t c) { return (c / width) * (n * width) + r * width + c % width; };
  for (uint32_t r = 0; r < n; ++r)
    for (uint32_t c = 0; c < n; ++c) to[at(r, c)] = from[at(c, r)];
}

// Ranges of the valid m x k (or n x k) elements in L0: full fractals, and exact edges, so that padding is not "read".
inline Access matrix_access(Mem mem, uint64_t off, const Extent& extent, uint32_t size, uint32_t rows, uint32_t k, bool rows_outer) {
  const uint32_t c0 = 32 / size, kf = k / c0, kt = k % c0, rf = rows / 16, rt = rows % 16;
  const uint32_t k_all = kf + (kt > 0), r_all = rf + (rt > 0);
  const int64_t row_step = rows_outer ? int64_t(k_all) * kFractal : kFractal, k_step = rows_outer ? kFractal : int64_t(r_all) * kFractal;
  Access a;
  a.mem = mem, a.extent = extent, a.align = kFractal;
  if (rf) a.add(rows_outer ? Range{off, kf * kFractal, rf, row_step} : Range{off, rf * kFractal, kf, k_step});
  if (rt) a.add({off + rf * row_step, rt * 32, kf, k_step});
  if (kt && rf) a.add({off + kf * k_step, kt * size, 16, 32, rf, row_step});
  if (kt && rt) a.add({off + kf * k_step + rf * row_step, kt * size, rt, 32});
  return a;
}

// C = A B (+ C) on fractal operands; defined once, in mmad.inl.
template <class T, class Acc>
void mmad(Acc* c, const T* a, const T* b, uint32_t m, uint32_t n, uint32_t k, bool init);

}  // namespace sim

namespace AscendC {

template <class T>
inline void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData2DParams& p) {
  const uint32_t repeat = p.repeatTimes;
  sim::Access r = sim::local_access(src, {src.off() + uint64_t(p.startIndex) * sim::kFractal, sim::kFractal, repeat, int64_t(p.srcStride) * sim::kFractal});
  const sim::Access w = sim::local_access(dst, {dst.off(), sim::kFractal, repeat, (int64_t(p.dstGap) + 1) * sim::kFractal});
  r.check_init = false;
  if (p.ifTranspose && sizeof(T) != 2)
    sim::report(*sim::current, "load-transpose-dtype", "bounds", "error", dst.mem(), dst.extent(), "LoadData transposes 16-bit types only", sim::current->line, sim::Op::LoadData, PIPE_MTE1);
  sim::Instruction in{PIPE_MTE1, sim::Op::LoadData, {&r}, 1, &w, {uint32_t(repeat * sim::kFractal / sizeof(T)), repeat, sizeof(T)}};
  in.moves = !p.ifTranspose;
  sim::issue(in, [=, d = dst.data(), s = src.data()] {
    constexpr uint32_t n = sim::kFractal / sizeof(T);
    for (uint32_t i = 0; i < repeat; ++i) {
      T* to = d + uint64_t(i) * (p.dstGap + 1) * n;
      const T* from = s + (uint64_t(p.startIndex) + uint64_t(i) * p.srcStride) * n;
      if (p.ifTranspose && sizeof(T) == 2) sim::transpose_square(to, from, 16, 16);
      else std::memcpy(static_cast<void*>(to), from, sim::kFractal);
    }
  });
}

// Squares of 16 x 16 (32 x 32 for int8), made of one or two fractals, are transposed on the way.
template <class T>
inline void LoadDataWithTranspose(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData2dTransposeParams& p) {
  constexpr uint32_t side = sizeof(T) == 1 ? 32 : 16, width = 32 / sizeof(T), n = sim::kFractal / sizeof(T), square = side * side / n;
  const uint32_t repeat = p.repeatTimes;
  sim::Access r = sim::local_access(src, {src.off() + uint64_t(p.startIndex) * square * sim::kFractal, square * sim::kFractal, repeat, int64_t(p.srcStride) * square * sim::kFractal});
  sim::Access w = sim::local_access(dst, {dst.off(), sim::kFractal, square, (int64_t(p.dstFracGap) + 1) * sim::kFractal, repeat, (int64_t(p.dstGap) + 1) * sim::kFractal});
  r.check_init = false;
  sim::Instruction in{PIPE_MTE1, sim::Op::LoadDataWithTranspose, {&r}, 1, &w, {repeat * square * n, repeat, sizeof(T)}};
  sim::issue(in, [=, d = dst.data(), s = src.data()] {
    for (uint32_t i = 0; i < repeat; ++i) {
      const T* from = s + (uint64_t(p.startIndex) + uint64_t(i) * p.srcStride) * square * n;
      T whole[side * side], turned[side * side];
      // Two int8 fractals are 16 rows each; two float fractals are 8 columns each.
      std::memcpy(static_cast<void*>(whole), from, sizeof whole);
      if constexpr (sizeof(T) == 1) {
        for (uint32_t a = 0; a < side; ++a)
          for (uint32_t b = 0; b < side; ++b) turned[a * side + b] = whole[b * side + a];
      } else sim::transpose_square(turned, whole, side, width);
      for (uint32_t f = 0; f < square; ++f)
        std::memcpy(static_cast<void*>(d + (uint64_t(i) * (p.dstGap + 1) + uint64_t(f) * (p.dstFracGap + 1)) * n), turned + f * n, sim::kFractal);
    }
  });
}

template <class C, class A, class B>
inline void Mmad(const LocalTensor<C>& c, const LocalTensor<A>& a, const LocalTensor<B>& b, const MmadParams& p) {
  static_assert(std::is_same_v<A, B>, "AscendC::Mmad: both inputs have one dtype");
  static_assert((sim::is_one_of<A, half, bfloat16_t, float> && std::is_same_v<C, float>) || (std::is_same_v<A, int8_t> && std::is_same_v<C, int32_t>),
                "AscendC::Mmad: half, bfloat16_t and float accumulate in float, int8_t in int32_t");
  const sim::Access ra = sim::matrix_access(a.mem(), a.off(), a.extent(), sizeof(A), p.m, p.k, true);
  const sim::Access rb = sim::matrix_access(b.mem(), b.off(), b.extent(), sizeof(B), p.n, p.k, false);
  const uint32_t m16 = (p.m + 15) / 16 * 16, n16 = (p.n + 15) / 16 * 16;
  const sim::Access w = c.access(uint64_t(m16) * n16);
  const uint32_t steps = (m16 / 16) * (n16 / 16) * uint32_t((p.k * sizeof(A) + 31) / 32);
  sim::Instruction in{PIPE_M, sim::Op::Mmad, {&ra, &rb, &w}, p.cmatrixInitVal ? 2 : 3, &w, {uint32_t(p.m) * p.n, steps, sizeof(A), p.m, p.n, p.k}};
  sim::issue(in, [=, z = c.data(), x = a.data(), y = b.data()] { sim::mmad(z, x, y, p.m, p.n, p.k, p.cmatrixInitVal); });
}

template <class D, class S, const FixpipeConfig& Config = CFG_ROW_MAJOR>
inline void Fixpipe(const GlobalTensor<D>& dst, const LocalTensor<S>& src, const FixpipeParamsV220& p) {
  static_assert(Config.row_major, "AscendC::Fixpipe: only row-major output is simulated");
  sim::Stream& s = *sim::current;
  const uint32_t full = p.nSize / 16, tail = p.nSize % 16, strip = uint32_t(p.srcStride) * 16 * sizeof(S);
  sim::Access r = sim::local_access(src, {src.off(), uint32_t(p.mSize * 16 * sizeof(S)), full, strip});
  if (tail) r.add({src.off() + uint64_t(full) * strip, uint32_t(tail * sizeof(S)), p.mSize, 16 * sizeof(S)});
  const sim::Access w = sim::gm_access(dst, {dst.off(), uint32_t(p.nSize * sizeof(D)), p.mSize, int64_t(p.dstStride) * int64_t(sizeof(D))});
  sim::Instruction in{PIPE_FIX, sim::Op::Fixpipe, {&r}, 1, &w, {uint32_t(p.mSize) * p.nSize, p.mSize, sizeof(D), p.mSize, p.nSize, 0}};
  if (s.id == 0) in.flags = sim::store_flags(s, w);
  sim::issue(in, [=, &s, atomic = s.atomic, at = dst.off(), from = src.data()] {
    std::vector<D> row(p.nSize);
    for (uint32_t i = 0; i < p.mSize; ++i) {
      for (uint32_t j = 0; j < p.nSize; ++j) {
        S value = from[uint64_t(j / 16) * p.srcStride * 16 + i * 16 + j % 16];
        if (p.reluEn && value < S(0)) value = S(0);
        row[j] = D(value);
      }
      sim::store_gm(s, atomic, at + uint64_t(i) * p.dstStride * sizeof(D), reinterpret_cast<const uint8_t*>(row.data()), uint32_t(p.nSize * sizeof(D)));
    }
  });
}

}  // namespace AscendC
