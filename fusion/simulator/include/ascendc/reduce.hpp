// Reductions: inside a repeat, inside 32-byte blocks, along a dim of a matrix, and over a whole run.
#pragma once
#include "compare.hpp"

namespace AscendC {

namespace Pattern::Reduce {
struct AR {};  // [A, R]: reduce the inner dim
struct RA {};  // [R, A]: reduce the outer dim
}  // namespace Pattern::Reduce
enum class ReduceOrder { ORDER_VALUE_INDEX, ORDER_INDEX_VALUE, ORDER_ONLY_VALUE, ORDER_ONLY_INDEX };
struct SumParams { uint32_t outter = 0, inner = 0, n = 0; };

}  // namespace AscendC

namespace sim {

struct SumOf {
  template <class T>
  T operator()(T a, T b) const { return T(Wide<T>(a) + Wide<T>(b)); }
};
struct MaxOf {
  template <class T>
  T operator()(T a, T b) const { return larger(a, b); }
};
struct MinOf {
  template <class T>
  T operator()(T a, T b) const { return smaller(a, b); }
};

// Pairs of neighbours, then pairs of pairs: the order in which the device adds, rounding at every step.
template <class T, class F>
inline T tree(const T* from, uint32_t n, F f) {
  if (n == 1) return from[0];
  T buffer[256];
  if (n <= 256) {
    std::copy_n(from, n, buffer);
    while (n > 1) {
      const uint32_t half_n = n / 2;
      for (uint32_t i = 0; i < half_n; ++i) buffer[i] = f(buffer[2 * i], buffer[2 * i + 1]);
      if (n % 2) buffer[half_n] = buffer[n - 1];
      n = half_n + n % 2;
    }
    return buffer[0];
  }
  const uint32_t head = (n / 2 + 255) / 256 * 256;
  return f(tree(from, head, f), tree(from + head, n - head, f));
}

template <class T>
inline Access scratch_of(const Local<T>& tmp) {
  Access a = tmp.access(tmp.GetSize());
  const uint64_t room = tmp.extent().hi > tmp.off() ? tmp.extent().hi - tmp.off() : 0;
  a.few[0].len = uint32_t(std::min<uint64_t>(a.few[0].len, room));
  if (a.few[0].len == 0) a.size = 0;
  return a;
}

// dst[a] = f over r of src, for [A, R] (inner) or [R, A].
template <class T, class Pattern, class Tmp, class F>
inline void reduce_matrix(Op op, const Local<T>& dst, const Local<T>& src, const Local<Tmp>& tmp, const uint32_t shape[], F f) {
  constexpr bool inner = std::is_same_v<Pattern, AscendC::Pattern::Reduce::AR>;
  static_assert(inner || std::is_same_v<Pattern, AscendC::Pattern::Reduce::RA>, "reduce: patterns are AR and RA");
  const uint32_t rows = shape[0], cols = shape[1], out = inner ? rows : cols;
  if (rows > 1 && cols * sizeof(T) % 32)
    report(*current, "misaligned-rows", "align", "warning", src.mem(), src.extent(), "reduces rows of " + std::to_string(cols * sizeof(T)) + " bytes; whole blocks of 32 are assumed", current->line, op, PIPE_V);
  const Access r = src.access(uint64_t(rows) * cols), w = dst.access(out), scratch = scratch_of(tmp);
  Instruction in{PIPE_V, op, {&r}, 1, &w, {rows * cols, uint32_t((uint64_t(rows) * cols * sizeof(T) + 255) / 256), sizeof(T), rows, cols, inner}};
  in.scratch = &scratch;
  issue(in, [=, d = dst.data(), s = src.data()] {
    if (inner) {
      for (uint32_t i = 0; i < rows; ++i) d[i] = tree(s + uint64_t(i) * cols, cols, f);
      return;
    }
    std::vector<T> sum(s, s + cols);
    for (uint32_t i = 1; i < rows; ++i)
      for (uint32_t j = 0; j < cols; ++j) sum[j] = f(sum[j], s[uint64_t(i) * cols + j]);
    std::copy(sum.begin(), sum.end(), d);
  });
}

// One value (and its lane) per repeat, from the lanes that are on.
template <class T, class F>
inline std::pair<T, uint32_t> reduce_lanes(const T* base, const Lanes& l, uint32_t rep, Step step, F f) {
  T values[256];
  uint32_t n = 0, best = 0;
  for (uint32_t i = 0; i < l.lanes; ++i)
    if (l.on(i)) values[n++] = *lane_at(base, rep, i, step);
  const T result = n ? tree(values, n, f) : T(0);
  for (uint32_t i = 0, seen = 0; i < l.lanes && n; ++i)
    if (l.on(i) && float(values[seen++]) == float(result)) { best = i; break; }
  return {result, best};
}

template <class T>
inline T index_bits(uint32_t index) {
  if constexpr (sizeof(T) == 4) return bits<T>(index);
  else return T::of_bits(uint16_t(index));
}

template <class T, class F>
inline void whole_reduce(Op op, const Local<T>& dst, const Local<T>& src, const Lanes& l, uint32_t dst_rep, Step step, AscendC::ReduceOrder order, F f) {
  static_assert(is_one_of<T, half, float>, "AscendC::WholeReduce: dtypes are half, float");
  using AscendC::ReduceOrder;
  const bool pair = order == ReduceOrder::ORDER_VALUE_INDEX || order == ReduceOrder::ORDER_INDEX_VALUE;
  const uint32_t width = pair ? 2 : 1;
  const Access r = operand(src, l, step);
  Access w = dst.access(0, sizeof(T));
  w.add({dst.off(), uint32_t(width * sizeof(T)), l.repeat, int64_t(dst_rep * width * sizeof(T))});
  Instruction in{PIPE_V, op, {&r}, 1, &w, vector_cost<T>(l)};
  issue(in, [=, d = dst.data(), s = src.data()] {
    for (uint32_t i = 0; i < l.repeat; ++i) {
      const auto [value, lane] = reduce_lanes(s, l, i, step, f);
      T* to = d + uint64_t(i) * dst_rep * width;
      if (order == ReduceOrder::ORDER_ONLY_INDEX) to[0] = index_bits<T>(lane);
      else if (order == ReduceOrder::ORDER_INDEX_VALUE) to[0] = index_bits<T>(lane), to[1] = value;
      else to[0] = value;
      if (order == ReduceOrder::ORDER_VALUE_INDEX) to[1] = index_bits<T>(lane);
    }
  });
}

// Eight values per repeat, one from each 32-byte block.
template <class T, class F>
inline void block_reduce(Op op, const Local<T>& dst, const Local<T>& src, const Lanes& l, uint32_t dst_rep, Step step, F f) {
  static_assert(is_one_of<T, half, float>, "AscendC::BlockReduce: dtypes are half, float");
  const Access r = operand(src, l, step);
  Access w = dst.access(0, sizeof(T));
  w.add({dst.off(), uint32_t(8 * sizeof(T)), l.repeat, int64_t(dst_rep * 8 * sizeof(T))});
  Instruction in{PIPE_V, op, {&r}, 1, &w, vector_cost<T>(l)};
  issue(in, [=, d = dst.data(), s = src.data()] {
    constexpr uint32_t per_block = 32 / sizeof(T);
    for (uint32_t i = 0; i < l.repeat; ++i)
      for (uint32_t b = 0; b < 8; ++b) {
        T values[per_block];
        uint32_t n = 0;
        for (uint32_t e = 0; e < per_block; ++e)
          if (l.on(b * per_block + e)) values[n++] = *lane_at(s, i, b * per_block + e, step);
        if (n) d[uint64_t(i) * dst_rep * 8 + b] = tree(values, n, f);
      }
  });
}

template <class T, class W, class F>
inline void reduce_run(Op op, const Local<T>& dst, const Local<T>& src, const Local<W>& work, uint32_t count, bool with_index, F f) {
  const Access r = src.access(count), scratch = scratch_of(work), w = dst.access(with_index ? 2 : 1, sizeof(T));
  Instruction in{PIPE_V, op, {&r}, 1, &w, vector_cost<T>(Lanes::plain(count))};
  in.scratch = &scratch;
  issue(in, [=, d = dst.data(), s = src.data()] {
    const T result = tree(s, count, f);
    uint32_t at = 0;
    while (at + 1 < count && float(s[at]) != float(result)) ++at;
    d[0] = result;
    if (with_index) d[1] = index_bits<T>(at);
  });
}

}  // namespace sim

namespace AscendC {

template <class T, class P, bool isReuseSource = false, class Tmp>
inline void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<Tmp>& tmp, const uint32_t shape[], bool) {
  sim::reduce_matrix<T, P>(sim::Op::ReduceSum, dst, src, tmp, shape, sim::SumOf{});
}
template <class T, class P, bool isReuseSource = false, class Tmp>
inline void ReduceMax(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<Tmp>& tmp, const uint32_t shape[], bool) {
  sim::reduce_matrix<T, P>(sim::Op::ReduceMax, dst, src, tmp, shape, sim::MaxOf{});
}
template <class T, class P, bool isReuseSource = false, class Tmp>
inline void ReduceMin(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<Tmp>& tmp, const uint32_t shape[], bool) {
  sim::reduce_matrix<T, P>(sim::Op::ReduceMin, dst, src, tmp, shape, sim::MinOf{});
}

template <class T, class W>
inline void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<W>& work, int32_t count) {
  sim::reduce_run(sim::Op::ReduceSum, dst, src, work, uint32_t(count), false, sim::SumOf{});
}
template <class T, class W>
inline void ReduceMax(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<W>& work, int32_t count, bool index = false) {
  sim::reduce_run(sim::Op::ReduceMax, dst, src, work, uint32_t(count), index, sim::MaxOf{});
}
template <class T, class W>
inline void ReduceMin(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<W>& work, int32_t count, bool index = false) {
  sim::reduce_run(sim::Op::ReduceMin, dst, src, work, uint32_t(count), index, sim::MinOf{});
}
// The sum of all repeats: each repeat's lanes first, then the repeats' sums.
template <class T, class W>
inline void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<W>& work, int32_t mask, int32_t repeat, int32_t srcRepStride) {
  const auto l = sim::Lanes::first(uint64_t(mask), uint32_t(repeat), kRepeat / sizeof(T), true);
  const sim::Step step{1, uint32_t(srcRepStride)};
  const sim::Access r = sim::operand(src, l, step), scratch = sim::scratch_of(work), w = dst.access(1, sizeof(T));
  sim::Instruction in{PIPE_V, sim::Op::ReduceSum, {&r}, 1, &w, sim::vector_cost<T>(l)};
  in.scratch = &scratch;
  sim::issue(in, [=, d = dst.data(), s = src.data()] {
    std::vector<T> parts(l.repeat);
    for (uint32_t i = 0; i < l.repeat; ++i) parts[i] = sim::reduce_lanes(s, l, i, step, sim::SumOf{}).first;
    d[0] = sim::tree(parts.data(), l.repeat, sim::SumOf{});
  });
}

template <class T>
inline sim::Lanes reduce_mask(const LocalTensor<T>& src, int32_t mask, int32_t repeat, sim::Op op) {
  constexpr int32_t lanes = kRepeat / sizeof(T);
  if (mask > lanes || mask < 1 || repeat > 255)
    sim::report(*sim::current, "repeat-limits", "bounds", "error", src.mem(), src.extent(),
                "mask " + std::to_string(mask) + " and repeat " + std::to_string(repeat) + "; the limits are " + std::to_string(lanes) + " and 255", sim::current->line, op, PIPE_V);
  return sim::Lanes::first(uint64_t(std::min(mask, lanes)), uint32_t(repeat), lanes, true);
}

template <class T, bool isSetMask = true>
inline void WholeReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t mask, int32_t repeat, int32_t dstRep, int32_t srcBlk, int32_t srcRep) {
  sim::whole_reduce(sim::Op::WholeReduceSum, dst, src, reduce_mask(src, mask, repeat, sim::Op::WholeReduceSum), uint32_t(dstRep), {uint32_t(srcBlk), uint32_t(srcRep)}, ReduceOrder::ORDER_ONLY_VALUE, sim::SumOf{});
}
#define SIM_WHOLE_REDUCE(NAME, F)                                                                                                       \
  template <class T, bool isSetMask = true>                                                                                             \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t mask, int32_t repeat, int32_t dstRep, int32_t srcBlk,   \
                   int32_t srcRep, ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX) {                                                \
    sim::whole_reduce(sim::Op::NAME, dst, src, reduce_mask(src, mask, repeat, sim::Op::NAME), uint32_t(dstRep),                         \
                      {uint32_t(srcBlk), uint32_t(srcRep)}, order, F{});                                                                \
  }
SIM_WHOLE_REDUCE(WholeReduceMax, sim::MaxOf)
SIM_WHOLE_REDUCE(WholeReduceMin, sim::MinOf)
#define SIM_BLOCK_REDUCE(NAME, F)                                                                                                       \
  template <class T, bool isSetMask = true>                                                                                             \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, int32_t repeat, int32_t mask, int32_t dstRep, int32_t srcBlk,   \
                   int32_t srcRep) {                                                                                                    \
    sim::block_reduce(sim::Op::NAME, dst, src, reduce_mask(src, mask, repeat, sim::Op::NAME), uint32_t(dstRep),                         \
                      {uint32_t(srcBlk), uint32_t(srcRep)}, F{});                                                                       \
  }
SIM_BLOCK_REDUCE(BlockReduceSum, sim::SumOf)
SIM_BLOCK_REDUCE(BlockReduceMax, sim::MaxOf)
SIM_BLOCK_REDUCE(BlockReduceMin, sim::MinOf)

// dst[i] = the sum of the first n of every row of `inner` elements.
template <class T>
inline void Sum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const SumParams& p) {
  const sim::Access r = src.access(uint64_t(p.outter) * p.inner), w = dst.access(p.outter);
  sim::Instruction in{PIPE_V, sim::Op::Sum, {&r}, 1, &w, {p.outter * p.n, uint32_t((uint64_t(p.outter) * p.inner * sizeof(T) + 255) / 256), sizeof(T)}};
  sim::issue(in, [=, d = dst.data(), s = src.data()] {
    for (uint32_t i = 0; i < p.outter; ++i) d[i] = p.n ? sim::tree(s + uint64_t(i) * p.inner, p.n, sim::SumOf{}) : T(0);
  });
}

}  // namespace AscendC
