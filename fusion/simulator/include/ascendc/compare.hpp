// Compare writes one bit per element, lowest bit first; Select reads such bits.
#pragma once
#include "copy.hpp"

namespace AscendC {

enum class CMPMODE { LT, GT, EQ, LE, GE, NE };
enum class SELMODE { VSEL_CMPMASK_SPR, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };

template <class T>
inline bool compared(T a, T b, CMPMODE mode) {
  switch (mode) {
    case CMPMODE::LT: return a < b;
    case CMPMODE::GT: return a > b;
    case CMPMODE::EQ: return a == b;
    case CMPMODE::LE: return a <= b;
    case CMPMODE::GE: return a >= b;
    default: return a != b;
  }
}

template <class U, class T, class Second>
inline void compare_bits(sim::Op op, const LocalTensor<U>& dst, const LocalTensor<T>& src, const sim::Access* other, uint32_t count, CMPMODE mode, Second second) {
  static_assert(sizeof(U) == 1, "AscendC::Compare: the result is int8_t or uint8_t");
  static_assert(sim::is_one_of<T, half, float, int32_t>, "AscendC::Compare: dtypes are half, float, int32_t");
  if (uint64_t(count) * sizeof(T) % kRepeat)
    sim::report(*sim::current, "misaligned-length", "align", "error", src.mem(), src.extent(), "compares " + std::to_string(count) + " elements; whole repeats of 256 bytes only", sim::current->line, op, PIPE_V);
  const sim::Access r = src.access(count), w = dst.access((count + 7) / 8);
  sim::Instruction in{PIPE_V, op, {&r, other}, other ? 2 : 1, &w, sim::vector_cost<T>(sim::Lanes::plain(count))};
  sim::issue(in, [=, d = reinterpret_cast<uint8_t*>(dst.data()), s = src.data()] {
    for (uint32_t i = 0; i < count; i += 8) {
      uint8_t byte = 0;
      for (uint32_t b = 0; b < 8 && i + b < count; ++b) byte |= uint8_t(compared(sim::Wide<T>(s[i + b]), sim::Wide<T>(second(i + b)), mode)) << b;
      d[i / 8] = byte;
    }
  });
}

template <class T, class U>
inline void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, CMPMODE mode, uint32_t count) {
  const sim::Access other = src1.access(count);
  compare_bits(sim::Op::Compare, dst, src0, &other, count, mode, [s = src1.data()](uint32_t i) { return s[i]; });
}
template <class T, class U, class S>
inline void CompareScalar(const LocalTensor<U>& dst, const LocalTensor<T>& src0, S scalar, CMPMODE mode, uint32_t count) {
  compare_bits(sim::Op::CompareScalar, dst, src0, nullptr, count, mode, [v = T(scalar)](uint32_t) { return v; });
}

// In VSEL_CMPMASK_SPR mode the bits of the first repeat serve every repeat.
template <class T, class U, class Second>
inline void select_bits(const LocalTensor<T>& dst, const LocalTensor<U>& mask, const LocalTensor<T>& src, const sim::Access* other, uint32_t count, SELMODE mode, Second second) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4, "AscendC::Select: dtypes are 16 and 32 bits wide");
  const uint32_t period = mode == SELMODE::VSEL_CMPMASK_SPR ? uint32_t(kRepeat / sizeof(T)) : count;
  const sim::Access r = src.access(count), w = dst.access(count);
  sim::Access bits = mask.access(1);
  bits.few[0].len = (std::min(period, count) + 7) / 8;
  sim::Instruction in{PIPE_V, sim::Op::Select, {&bits, &r, other}, other ? 3 : 2, &w, sim::vector_cost<T>(sim::Lanes::plain(count))};
  sim::issue(in, [=, d = dst.data(), s = src.data(), m = reinterpret_cast<const uint8_t*>(mask.data())] {
    for (uint32_t i = 0; i < count; ++i) d[i] = (m[i % period / 8] >> (i % period % 8) & 1) ? s[i] : second(i);
  });
}

template <class T, class U>
inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& mask, const LocalTensor<T>& src0, const LocalTensor<T>& src1, SELMODE mode, uint32_t count) {
  const sim::Access other = src1.access(count);
  select_bits(dst, mask, src0, &other, count, mode, [s = src1.data()](uint32_t i) { return s[i]; });
}
template <class T, class U, class S, class = std::enable_if_t<std::is_arithmetic_v<S> || std::is_same_v<S, half>>>
inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& mask, const LocalTensor<T>& src0, S scalar, SELMODE mode, uint32_t count) {
  select_bits(dst, mask, src0, nullptr, count, mode, [v = T(scalar)](uint32_t) { return v; });
}

}  // namespace AscendC
