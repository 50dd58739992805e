// The arithmetic of Mmad: unpack the fractals, multiply with one fused step per k in ascending order, pack the result.
#pragma once
#include <algorithm>
#include <vector>

#include "../sim/dtype.hpp"

namespace sim {

inline float fused(float x, float y, float z) {
#if defined(__FMA__)
  return __builtin_fmaf(x, y, z);
#else
  return x * y + z;
#endif
}
inline int32_t fused(int32_t x, int32_t y, int32_t z) { return x * y + z; }

// Row-major C += A B. Four values of k at a time keep a row of C in registers; the order of the additions stays that of k.
template <class Acc>
static void multiply(Acc* c, const Acc* a, const Acc* b, uint32_t m, uint32_t n, uint32_t k) {
  for (uint32_t i = 0; i < m; ++i) {
    Acc* __restrict row = c + uint64_t(i) * n;
    const Acc* x = a + uint64_t(i) * k;
    uint32_t p = 0;
    for (; p + 4 <= k; p += 4) {
      const Acc *__restrict y0 = b + uint64_t(p) * n, *__restrict y1 = y0 + n, *__restrict y2 = y1 + n, *__restrict y3 = y2 + n;
      const Acc x0 = x[p], x1 = x[p + 1], x2 = x[p + 2], x3 = x[p + 3];
      for (uint32_t j = 0; j < n; ++j) row[j] = fused(x3, y3[j], fused(x2, y2[j], fused(x1, y1[j], fused(x0, y0[j], row[j]))));
    }
    for (; p < k; ++p) {
      const Acc* __restrict y = b + uint64_t(p) * n;
      for (uint32_t j = 0; j < n; ++j) row[j] = fused(x[p], y[j], row[j]);
    }
  }
}

// A run of c0 elements of a fractal as accumulator values.
template <class T, class Acc>
static void widen(Acc* to, const T* from, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) to[i] = Acc(from[i]);
}

// L0A: fractals of 16 rows by c0 columns, row of fractals after row of fractals.
template <class T, class Acc>
static void unpack_a(std::vector<Acc>& x, const T* a, uint32_t m, uint32_t k) {
  constexpr uint32_t c0 = 32 / sizeof(T);
  const uint32_t kf = (k + c0 - 1) / c0;
  x.resize(uint64_t(m) * k);
  for (uint32_t i = 0; i < m; ++i)
    for (uint32_t f = 0; f < kf; ++f) widen(x.data() + uint64_t(i) * k + f * c0, a + (uint64_t(i / 16) * kf + f) * (16 * c0) + (i % 16) * c0, std::min(c0, k - f * c0));
}

// L0B: fractals of 16 columns by c0 values of k, those of one k step side by side.
template <class T, class Acc>
static void unpack_b(std::vector<Acc>& y, const T* b, uint32_t n, uint32_t k) {
  constexpr uint32_t c0 = 32 / sizeof(T);
  const uint32_t kf = (k + c0 - 1) / c0, nf = (n + 15) / 16;
  y.resize(uint64_t(k) * n);
  Acc wide[16 * c0];
  for (uint32_t f = 0; f < kf; ++f)
    for (uint32_t g = 0; g < nf; ++g) {
      widen(wide, b + (uint64_t(f) * nf + g) * (16 * c0), 16 * c0);
      const uint32_t rows = std::min(c0, k - f * c0), cols = std::min(16u, n - g * 16);
      for (uint32_t p = 0; p < rows; ++p)
        for (uint32_t j = 0; j < cols; ++j) y[uint64_t(f * c0 + p) * n + g * 16 + j] = wide[j * c0 + p];
    }
}

template <class T, class Acc>
void mmad(Acc* c, const T* a, const T* b, uint32_t m, uint32_t n, uint32_t k, bool init) {
  static thread_local std::vector<Acc> x, y, z;
  unpack_a(x, a, m, k);
  unpack_b(y, b, n, k);
  z.assign(uint64_t(m) * n, Acc(0));
  const uint32_t nf = (n + 15) / 16, mf = (m + 15) / 16;
  const auto each_row = [&](auto&& move) {  // L0C: fractals of 16 x 16, those of one column strip below each other
    for (uint32_t i = 0; i < m; ++i)
      for (uint32_t f = 0; f < nf; ++f) move(c + uint64_t(f) * mf * 256 + uint64_t(i) * 16, z.data() + uint64_t(i) * n + f * 16, std::min(16u, n - f * 16));
  };
  if (!init) each_row([](const Acc* l0c, Acc* row, uint32_t len) { std::copy_n(l0c, len, row); });
  multiply(z.data(), x.data(), y.data(), m, n, k);
  each_row([](Acc* l0c, const Acc* row, uint32_t len) { std::copy_n(row, len, l0c); });
}

template void mmad<half, float>(float*, const half*, const half*, uint32_t, uint32_t, uint32_t, bool);
template void mmad<bfloat16_t, float>(float*, const bfloat16_t*, const bfloat16_t*, uint32_t, uint32_t, uint32_t, bool);
template void mmad<float, float>(float*, const float*, const float*, uint32_t, uint32_t, uint32_t, bool);
template void mmad<int8_t, int32_t>(int32_t*, const int8_t*, const int8_t*, uint32_t, uint32_t, uint32_t, bool);

}  // namespace sim
