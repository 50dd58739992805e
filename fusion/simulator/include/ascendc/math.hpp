// Library functions made of several Vector instructions; here each is one operation with the function's own rounding.
#pragma once
#include "gather.hpp"

namespace sim {

template <class T, class Tmp, class F>
inline void with_scratch(Op op, const Local<T>& dst, const Local<T>& src, const Local<Tmp>& tmp, uint32_t count, F f) {
  static_assert(is_one_of<T, half, float>, "math functions: dtypes are half, float");
  const Access r = src.access(count), w = dst.access(count), scratch = scratch_of(tmp);
  Instruction in{PIPE_V, op, {&r}, 1, &w, vector_cost<T>(Lanes::plain(count))};
  in.scratch = &scratch;
  issue(in, [=, d = dst.data(), s = src.data()] {
    for (uint32_t i = 0; i < count; ++i) d[i] = T(f(float(s[i])));
  });
}

}  // namespace sim

namespace AscendC {

#define SIM_MATH(NAME, EXPR)                                                                                                \
  template <class T, bool isReuseSource = false, class Tmp>                                                                 \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<Tmp>& tmp, uint32_t count) {     \
    sim::with_scratch(sim::Op::NAME, dst, src, tmp, count, [](float x) { return EXPR; });                                   \
  }                                                                                                                         \
  template <class T, bool isReuseSource = false>                                                                            \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint32_t count) {                                  \
    NAME(dst, src, LocalTensor<uint8_t>{}, count);                                                                          \
  }
SIM_MATH(Sin, std::sin(x))
SIM_MATH(Cos, std::cos(x))
SIM_MATH(Sigmoid, 1.0f / (1.0f + std::exp(-x)))
SIM_MATH(Silu, x / (1.0f + std::exp(-x)))
SIM_MATH(Round, std::nearbyint(x))

template <class T, bool isReuseSource = false, class Tmp, class S>
inline void ClampMax(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<Tmp>& tmp, S scalar, uint32_t count) {
  sim::with_scratch(sim::Op::ClampMax, dst, src, tmp, count, [v = float(T(scalar))](float x) { return sim::smaller(x, v); });
}
template <class T, bool isReuseSource = false, class Tmp, class S>
inline void ClampMin(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<Tmp>& tmp, S scalar, uint32_t count) {
  sim::with_scratch(sim::Op::ClampMin, dst, src, tmp, count, [v = float(T(scalar))](float x) { return sim::larger(x, v); });
}

template <class T, class Tmp, class F>
inline void two_with_scratch(sim::Op op, const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b, const LocalTensor<Tmp>& tmp, F f) {
  const uint32_t count = std::min(dst.GetSize(), std::min(a.GetSize(), b.GetSize()));
  const sim::Access x = a.access(count), y = b.access(count), w = dst.access(count), scratch = sim::scratch_of(tmp);
  sim::Instruction in{PIPE_V, op, {&x, &y}, 2, &w, sim::vector_cost<T>(sim::Lanes::plain(count))};
  in.scratch = &scratch;
  sim::issue(in, [=, d = dst.data(), p = a.data(), q = b.data()] {
    for (uint32_t i = 0; i < count; ++i) d[i] = f(p[i], q[i]);
  });
}
template <class T, bool isReuseSource = false, class Tmp>
inline void Power(const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b, const LocalTensor<Tmp>& tmp) {
  two_with_scratch(sim::Op::Power, dst, a, b, tmp, [](T x, T y) {
    if constexpr (sim::is_floating<T>) return T(std::pow(float(x), float(y)));
    else return T(std::llround(std::pow(double(x), double(y))));
  });
}
template <class T, bool isReuseSource = false>
inline void Power(const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b) { Power(dst, a, b, LocalTensor<uint8_t>{}); }
template <class T, bool isReuseSource = false, class Tmp>
inline void Xor(const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b, const LocalTensor<Tmp>& tmp) {
  static_assert(std::is_integral_v<T>, "AscendC::Xor: dtypes are integers");
  two_with_scratch(sim::Op::Xor, dst, a, b, tmp, [](T x, T y) { return T(x ^ y); });
}
template <class T, bool isReuseSource = false>
inline void Xor(const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b) { Xor(dst, a, b, LocalTensor<uint8_t>{}); }

template <class... Ts>
inline void BilinearInterpolation(const Ts&...) { static_assert(sizeof...(Ts) == 0, "AscendC::BilinearInterpolation is not simulated"); }

}  // namespace AscendC
