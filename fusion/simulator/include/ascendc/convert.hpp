// Cast with its rounding modes, Duplicate, and number sequences.
#pragma once
#include "elementwise.hpp"

namespace AscendC {

enum class RoundMode { CAST_NONE = 0, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC, CAST_ODD };

constexpr sim::Round rounding(RoundMode mode) {
  switch (mode) {
    case RoundMode::CAST_FLOOR: return sim::Round::Floor;
    case RoundMode::CAST_CEIL: return sim::Round::Ceil;
    case RoundMode::CAST_ROUND: return sim::Round::Away;
    case RoundMode::CAST_TRUNC: return sim::Round::Zero;
    case RoundMode::CAST_ODD: return sim::Round::Odd;
    default: return sim::Round::Even;
  }
}

inline void SetDeqScale(half scale) { sim::current->deq_scale = float(scale); }

template <class D, class S>
struct CastRule {
  sim::Round round;
  float scale;
  D operator()(S x) const {
    if constexpr (std::is_same_v<D, S>) return sim::is_floating<D> ? D(sim::round_to<float>(float(x), round)) : x;
    else if constexpr (std::is_integral_v<S> && std::is_integral_v<D>) {
      if (double(x) > double(std::numeric_limits<D>::max())) return std::numeric_limits<D>::max();
      if (double(x) < double(std::numeric_limits<D>::lowest())) return std::numeric_limits<D>::lowest();
      return D(x);
    } else if constexpr (std::is_same_v<S, int32_t> && std::is_same_v<D, half>) return sim::round_to<D>(float(double(x) * scale), round);
    else if constexpr (std::is_same_v<D, float>) return std::is_integral_v<S> && sizeof(S) > 2 ? from_wide(x) : float(x);
    else return sim::round_to<D>(float(x), round);
  }
  float from_wide(S x) const {  // int32/int64 -> float keeps 24 bits, rounded as asked
    if constexpr (std::is_integral_v<S>) {
      const float near = float(x);
      const double exact = double(x);
      if (round == sim::Round::Floor && double(near) > exact) return std::nextafterf(near, -INFINITY);
      if (round == sim::Round::Ceil && double(near) < exact) return std::nextafterf(near, INFINITY);
      if (round == sim::Round::Zero && std::abs(double(near)) > std::abs(exact)) return std::nextafterf(near, 0.0f);
      return near;
    } else return float(x);
  }
};

template <class D, class S>
inline void Cast(const LocalTensor<D>& dst, const LocalTensor<S>& src, RoundMode mode, uint32_t count) {
  sim::unary(sim::Op::Cast, dst, src, sim::Lanes::plain(count), {}, {}, CastRule<D, S>{rounding(mode), sim::current->deq_scale});
}
template <class D, class S, bool isSetMask = true>
inline void Cast(const LocalTensor<D>& dst, const LocalTensor<S>& src, RoundMode mode, uint64_t mask, uint8_t repeat, const UnaryRepeatParams& p) {
  const uint32_t lanes = kRepeat / std::max(sizeof(D), sizeof(S));
  sim::unary(sim::Op::Cast, dst, src, sim::Lanes::first(mask, repeat, lanes, isSetMask), {p.dstBlkStride, p.dstRepStride},
             {p.srcBlkStride, p.srcRepStride}, CastRule<D, S>{rounding(mode), sim::current->deq_scale});
}

}  // namespace AscendC

namespace sim {

template <class T, class F>  // f(index) makes element `index`
inline void fill(Op op, const Local<T>& dst, const Lanes& l, Step ds, F f) {
  const Access w = operand(dst, l, ds);
  Instruction in{PIPE_V, op, {}, 0, &w, vector_cost<T>(l)};
  issue(in, [l, ds, f, d = dst.data()] {
    if (l.flat) for (uint32_t i = 0; i < l.count; ++i) d[i] = f(i);
    else each_lane(l, [&](uint32_t r, uint32_t i) { *lane_at(d, r, i, ds) = f(r * l.lanes + i); });
  });
}

}  // namespace sim

namespace AscendC {

template <class T, class U>
inline void Duplicate(const LocalTensor<T>& dst, U value, int32_t count) {
  static_assert(sim::is_one_of<T, half, bfloat16_t, float, int16_t, uint16_t, int32_t, uint32_t>, "AscendC::Duplicate: dtypes are 16 and 32 bits wide");
  sim::fill(sim::Op::Duplicate, dst, sim::Lanes::plain(count), {}, [v = T(value)](uint32_t) { return v; });
}
template <class T, bool isSetMask = true, class U>
inline void Duplicate(const LocalTensor<T>& dst, U value, uint64_t mask, uint8_t repeat, uint16_t dstBlk, uint8_t dstRep) {
  sim::fill(sim::Op::Duplicate, dst, sim::Lanes::first(mask, repeat, kRepeat / sizeof(T), isSetMask), {dstBlk, dstRep}, [v = T(value)](uint32_t) { return v; });
}
template <class T, bool isSetMask = true, class U>
inline void Duplicate(const LocalTensor<T>& dst, U value, const uint64_t mask[], uint8_t repeat, uint16_t dstBlk, uint8_t dstRep) {
  sim::fill(sim::Op::Duplicate, dst, sim::Lanes::bits(mask, repeat, kRepeat / sizeof(T), isSetMask), {dstBlk, dstRep}, [v = T(value)](uint32_t) { return v; });
}

template <class T>
inline void ArithProgression(const LocalTensor<T>& dst, T first, T step, int32_t count) {
  sim::fill(sim::Op::ArithProgression, dst, sim::Lanes::plain(count), {}, [first, step](uint32_t i) {
    if constexpr (sim::is_floating<T>) return T(float(first) + float(step) * float(i));
    else return T(first + step * T(i));
  });
}
template <class T, class U>
inline void CreateVecIndex(const LocalTensor<T>& dst, U first, uint32_t count) {
  sim::fill(sim::Op::CreateVecIndex, dst, sim::Lanes::plain(count), {}, [v = T(first)](uint32_t i) { return T(sim::Wide<T>(v) + sim::Wide<T>(i)); });
}

}  // namespace AscendC
