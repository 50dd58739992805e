// The arithmetic of Mmad: unpack the fractals, multiply with one fused step per k in ascending order.
#pragma once
#include <algorithm>
#include <cstring>
#include <vector>

#include "../sim/dtype.hpp"

namespace sim {

// Sixteen accumulators: one row of a fractal of C. The runtime is compiled so that x * y + c is one fused step.
template <class Acc>
struct Row16 {
  typedef Acc type __attribute__((vector_size(16 * sizeof(Acc))));
};

// `Rows` rows of C, all sixteen columns of one strip, over k in ascending order; B is packed as [k][16].
template <int Rows, class Acc>
static inline void strip_rows(Acc* c, const Acc* a, const Acc* b, uint32_t k, bool init) {
  using V = typename Row16<Acc>::type;
  V sum[Rows], y;
  for (int r = 0; r < Rows; ++r) {
    if (init) sum[r] = V{};
    else std::memcpy(&sum[r], c + r * 16, sizeof(V));
  }
  for (uint32_t p = 0; p < k; ++p) {
    std::memcpy(&y, b + uint64_t(p) * 16, sizeof(V));
    for (int r = 0; r < Rows; ++r) sum[r] += a[uint64_t(r) * k + p] * y;
  }
  for (int r = 0; r < Rows; ++r) std::memcpy(c + r * 16, &sum[r], sizeof(V));
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

// L0B: fractals of 16 columns by c0 values of k, those of one k step side by side. Out: per strip of 16 columns, [k][16].
template <class T, class Acc>
static void unpack_b(std::vector<Acc>& y, const T* b, uint32_t n, uint32_t k) {
  constexpr uint32_t c0 = 32 / sizeof(T);
  const uint32_t kf = (k + c0 - 1) / c0, nf = (n + 15) / 16;
  y.resize(uint64_t(nf) * k * 16);
  Acc wide[16 * c0];
  for (uint32_t f = 0; f < kf; ++f)
    for (uint32_t g = 0; g < nf; ++g) {
      widen(wide, b + (uint64_t(f) * nf + g) * (16 * c0), 16 * c0);
      Acc* to = y.data() + (uint64_t(g) * k + f * c0) * 16;
      for (uint32_t p = 0; p < std::min(c0, k - f * c0); ++p)
        for (uint32_t j = 0; j < 16; ++j) to[p * 16 + j] = wide[j * c0 + p];
    }
}

// L0C: fractals of 16 x 16, those of one strip of 16 columns below each other, so a strip is rows of 16 without a gap.
template <class T, class Acc>
void mmad(Acc* c, const T* a, const T* b, uint32_t m, uint32_t n, uint32_t k, bool init) {
  static thread_local std::vector<Acc> x, y;
  unpack_a(x, a, m, k);
  unpack_b(y, b, n, k);
  const uint32_t nf = (n + 15) / 16, mf = (m + 15) / 16;
  for (uint32_t g = 0; g < nf; ++g) {
    Acc* strip = c + uint64_t(g) * mf * 256;
    const Acc* columns = y.data() + uint64_t(g) * k * 16;
    uint32_t i = 0;
    for (; i + 4 <= m; i += 4) strip_rows<4>(strip + i * 16, x.data() + uint64_t(i) * k, columns, k, init);
    for (; i < m; ++i) strip_rows<1>(strip + i * 16, x.data() + uint64_t(i) * k, columns, k, init);
  }
}

template void mmad<half, float>(float*, const half*, const half*, uint32_t, uint32_t, uint32_t, bool);
template void mmad<bfloat16_t, float>(float*, const bfloat16_t*, const bfloat16_t*, uint32_t, uint32_t, uint32_t, bool);
template void mmad<float, float>(float*, const float*, const float*, uint32_t, uint32_t, uint32_t, bool);
template void mmad<int8_t, int32_t>(int32_t*, const int8_t*, const int8_t*, uint32_t, uint32_t, uint32_t, bool);

}  // namespace sim
