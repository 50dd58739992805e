// Elementwise Vector instructions with one, two or a scalar operand; every result is rounded to the tensor's own format.
#pragma once
#include "lanes.hpp"

namespace sim {

template <class T>
using Local = AscendC::LocalTensor<T>;

// What a 16-bit float computes in: float, then one rounding (exact for + - * / sqrt).
template <class T>
using Wide = std::conditional_t<is_short_float<T>, float, T>;

template <class D, class S, class F>
inline void unary(Op op, const Local<D>& dst, const Local<S>& src, const Lanes& l, Step ds, Step ss, F f) {
  const Access w = operand(dst, l, ds), r = operand(src, l, ss);
  Instruction in{PIPE_V, op, {&r}, 1, &w, vector_cost<std::conditional_t<(sizeof(D) > sizeof(S)), D, S>>(l)};
  in.spreads = l.flat || sizeof(D) == sizeof(S);
  issue(in, [l, ds, ss, f, d = dst.data(), s = src.data()] {
    if (l.flat) for (uint32_t i = 0; i < l.count; ++i) d[i] = f(s[i]);
    else each_lane(l, [&](uint32_t r, uint32_t i) { *lane_at(d, r, i, ds) = f(*lane_at(s, r, i, ss)); });
  });
}

// Operands with block stride 0 repeat a block, so their bytes do not line up with the result's.
template <class D, class A, class B>
inline bool lines_up(const Lanes& l, const AscendC::BinaryRepeatParams& p) {
  return sizeof(D) == sizeof(A) && sizeof(A) == sizeof(B) && (l.flat || (p.src0BlkStride && p.src1BlkStride));
}

// `keeps` is true when the old value of dst takes part (Axpy, MulAddDst).
template <class D, class A, class B, class F>
inline void binary(Op op, const Local<D>& dst, const Local<A>& a, const Local<B>& b, const Lanes& l, const AscendC::BinaryRepeatParams& p, F f, bool keeps = false) {
  const Step ds{p.dstBlkStride, p.dstRepStride}, as{p.src0BlkStride, p.src0RepStride}, bs{p.src1BlkStride, p.src1RepStride};
  const Access w = operand(dst, l, ds), ra = operand(a, l, as), rb = operand(b, l, bs);
  Instruction in{PIPE_V, op, {&ra, &rb, &w}, keeps ? 3 : 2, &w, vector_cost<D>(l)};
  in.spreads = lines_up<D, A, B>(l, p);
  issue(in, [l, ds, as, bs, f, d = dst.data(), x = a.data(), y = b.data()] {
    if (l.flat) for (uint32_t i = 0; i < l.count; ++i) d[i] = f(x[i], y[i], d[i]);
    else each_lane(l, [&](uint32_t r, uint32_t i) {
      D& to = *lane_at(d, r, i, ds);
      to = f(*lane_at(x, r, i, as), *lane_at(y, r, i, bs), to);
    });
  });
}

// NaN wins, so that a value that was never set shows in the result.
template <class T>
inline T larger(T a, T b) { return a > b ? a : b >= a ? b : (a != a ? a : b); }
template <class T>
inline T smaller(T a, T b) { return a < b ? a : b <= a ? b : (a != a ? a : b); }

template <class T>
constexpr bool is_arithmetic_lane = is_one_of<T, half, float, int16_t, int32_t>;

}  // namespace sim

namespace AscendC {

// Which dtypes an instruction takes; anything else stops the build with the name and the line.
enum Takes { kLanes, kFloats, kIntegers, kFloatsAndInt32 };
template <class T>
constexpr bool takes(Takes which) {
  if (which == kIntegers) return std::is_integral_v<T>;
  if (which == kLanes) return sim::is_arithmetic_lane<T>;
  return sim::is_one_of<T, half, float> || (which == kFloatsAndInt32 && std::is_same_v<T, int32_t>);
}
#define SIM_CHECK_DTYPE(NAME, WHICH) static_assert(takes<T>(WHICH), "AscendC::" #NAME " does not take this dtype")

#define SIM_BINARY(NAME, WHICH, EXPR)                                                                                                                  \
  template <class T>                                                                                                                                   \
  struct NAME##Rule {                                                                                                                                  \
    SIM_CHECK_DTYPE(NAME, WHICH);                                                                                                                      \
    using W = sim::Wide<T>;                                                                                                                            \
    T operator()(T x, T y, T) const { const W a = W(x), b = W(y); return T(EXPR); }                                                                    \
  };                                                                                                                                                   \
  template <class T, bool isSetMask = true>                                                                                                            \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, int32_t count) {                                 \
    sim::binary(sim::Op::NAME, dst, src0, src1, sim::Lanes::plain(count), {}, NAME##Rule<T>{});                                                        \
  }                                                                                                                                                    \
  template <class T, bool isSetMask = true>                                                                                                            \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, uint64_t mask,                                   \
                   uint8_t repeat, const BinaryRepeatParams& p) {                                                                                      \
    sim::binary(sim::Op::NAME, dst, src0, src1, sim::Lanes::first(mask, repeat, kRepeat / sizeof(T), isSetMask), p, NAME##Rule<T>{});                  \
  }                                                                                                                                                    \
  template <class T, bool isSetMask = true>                                                                                                            \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, const uint64_t mask[],                           \
                   uint8_t repeat, const BinaryRepeatParams& p) {                                                                                      \
    sim::binary(sim::Op::NAME, dst, src0, src1, sim::Lanes::bits(mask, repeat, kRepeat / sizeof(T), isSetMask), p, NAME##Rule<T>{});                   \
  }

SIM_BINARY(Add, kLanes, a + b)
SIM_BINARY(Sub, kLanes, a - b)
SIM_BINARY(Mul, kLanes, a * b)
SIM_BINARY(Div, kFloats, a / b)
SIM_BINARY(Max, kLanes, sim::larger(a, b))
SIM_BINARY(Min, kLanes, sim::smaller(a, b))
SIM_BINARY(And, kIntegers, a & b)
SIM_BINARY(Or, kIntegers, a | b)

#define SIM_UNARY(NAME, WHICH, EXPR)                                                                                                                   \
  template <class T>                                                                                                                                   \
  struct NAME##Rule {                                                                                                                                  \
    SIM_CHECK_DTYPE(NAME, WHICH);                                                                                                                      \
    using W = sim::Wide<T>;                                                                                                                            \
    T operator()(T x) const { const W a = W(x); return T(EXPR); }                                                                                      \
  };                                                                                                                                                   \
  template <class T, bool isSetMask = true>                                                                                                            \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t count) {                                                              \
    sim::unary(sim::Op::NAME, dst, src, sim::Lanes::plain(count), {}, {}, NAME##Rule<T>{});                                                            \
  }                                                                                                                                                    \
  template <class T, bool isSetMask = true>                                                                                                            \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask, uint8_t repeat, const UnaryRepeatParams& p) {                  \
    sim::unary(sim::Op::NAME, dst, src, sim::Lanes::first(mask, repeat, kRepeat / sizeof(T), isSetMask),                                               \
               {p.dstBlkStride, p.dstRepStride}, {p.srcBlkStride, p.srcRepStride}, NAME##Rule<T>{});                                                   \
  }                                                                                                                                                    \
  template <class T, bool isSetMask = true>                                                                                                            \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask[], uint8_t repeat, const UnaryRepeatParams& p) {          \
    sim::unary(sim::Op::NAME, dst, src, sim::Lanes::bits(mask, repeat, kRepeat / sizeof(T), isSetMask),                                                \
               {p.dstBlkStride, p.dstRepStride}, {p.srcBlkStride, p.srcRepStride}, NAME##Rule<T>{});                                                   \
  }
SIM_UNARY(Exp, kFloats, std::exp(a))
SIM_UNARY(Ln, kFloats, std::log(a))
SIM_UNARY(Abs, kLanes, std::abs(a))
SIM_UNARY(Reciprocal, kFloats, 1.0f / a)
SIM_UNARY(Sqrt, kFloats, std::sqrt(a))
SIM_UNARY(Rsqrt, kFloats, 1.0f / std::sqrt(a))
SIM_UNARY(Relu, kFloatsAndInt32, a != a ? a : a > W(0) ? a : W(0))
SIM_UNARY(Not, kIntegers, ~a)

// A scalar is converted to the tensor's dtype before it takes part.
#define SIM_SCALAR(NAME, WHICH, EXPR)                                                                                                                  \
  template <class T>                                                                                                                                   \
  struct NAME##Rule {                                                                                                                                  \
    SIM_CHECK_DTYPE(NAME, WHICH);                                                                                                                      \
    using W = sim::Wide<T>;                                                                                                                            \
    T scalar;                                                                                                                                          \
    T operator()(T x) const { const W a = W(x), b = W(scalar); return T(EXPR); }                                                                       \
  };                                                                                                                                                   \
  template <class T, class U, bool isSetMask = true>                                                                                                   \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, U scalar, int32_t count) {                                                    \
    sim::unary(sim::Op::NAME, dst, src, sim::Lanes::plain(count), {}, {}, NAME##Rule<T>{T(scalar)});                                                   \
  }                                                                                                                                                    \
  template <class T, class U, bool isSetMask = true>                                                                                                   \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, U scalar, uint64_t mask, uint8_t repeat, const UnaryRepeatParams& p) {        \
    sim::unary(sim::Op::NAME, dst, src, sim::Lanes::first(mask, repeat, kRepeat / sizeof(T), isSetMask),                                               \
               {p.dstBlkStride, p.dstRepStride}, {p.srcBlkStride, p.srcRepStride}, NAME##Rule<T>{T(scalar)});                                          \
  }
SIM_SCALAR(Adds, kLanes, a + b)
SIM_SCALAR(Subs, kLanes, a - b)
SIM_SCALAR(Muls, kLanes, a * b)
SIM_SCALAR(Divs, kFloats, a / b)
SIM_SCALAR(Maxs, kLanes, sim::larger(a, b))
SIM_SCALAR(Mins, kLanes, sim::smaller(a, b))
SIM_SCALAR(LeakyRelu, kFloats, a >= W(0) ? a : a * b)
SIM_SCALAR(ShiftLeft, kIntegers, std::make_unsigned_t<T>(a) << unsigned(b))
SIM_SCALAR(ShiftRight, kIntegers, a >> unsigned(b))

// dst += src * scalar, rounded once per step; fp16 into fp32 is allowed.
template <class T, class U, class S>
inline void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, S scalar, int32_t count) {
  static_assert(sim::is_one_of<T, half, float> && (std::is_same_v<T, U> || std::is_same_v<U, half>), "AscendC::Axpy: dtypes are half, float, or half into float");
  const float factor = float(U(scalar));
  sim::binary(sim::Op::Axpy, dst, src, src, sim::Lanes::plain(count), {}, [factor](U x, U, T old) { return T(float(x) * factor + float(old)); }, true);
}
// dst += src0 * src1.
template <class T, class U>
inline void MulAddDst(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1, int32_t count) {
  static_assert(sim::is_one_of<T, half, float> && (std::is_same_v<T, U> || std::is_same_v<U, half>), "AscendC::MulAddDst: dtypes are half, float, or half into float");
  sim::binary(sim::Op::MulAddDst, dst, src0, src1, sim::Lanes::plain(count), {}, [](U x, U y, T old) { return T(float(x) * float(y) + float(old)); }, true);
}

}  // namespace AscendC
