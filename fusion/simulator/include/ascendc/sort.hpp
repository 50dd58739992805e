// Sorting: blocks of 32 into (value, index) records of 8 bytes, in descending order, and merges of up to four such lists.
#pragma once
#include "shape.hpp"

namespace AscendC {

struct MrgSort4Info {
  uint16_t elementLengths[4] = {0, 0, 0, 0};
  bool ifExhaustedSuspension = false;
  uint16_t validBit = 0;
  uint16_t repeatTimes = 1;
};
template <class T>
struct MrgSortSrcList {
  LocalTensor<T> src1, src2, src3, src4;
};

}  // namespace AscendC

namespace sim {

// The device's record: the value first (a half leaves two bytes unused), the index in the upper four bytes.
template <class T>
struct Record {
  T value;
  uint8_t gap[4 - sizeof(T) == 0 ? 4 : 4 - sizeof(T)];
  uint32_t index;
};
template <>
struct Record<float> {
  float value;
  uint32_t index;
};
static_assert(sizeof(Record<float>) == 8 && sizeof(Record<half>) == 8);

template <class T>
inline bool before(const Record<T>& a, const Record<T>& b) { return float(a.value) > float(b.value); }

}  // namespace sim

namespace AscendC {

template <class T>
inline void Sort32(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& index, int32_t repeat) {
  static_assert(sim::is_one_of<T, half, float>, "AscendC::Sort32: dtypes are half, float");
  const uint32_t n = uint32_t(repeat) * 32;
  const sim::Access r = src.access(n), i = index.access(n), w = dst.access(n * 8 / sizeof(T));
  sim::Instruction in{PIPE_V, sim::Op::Sort32, {&r, &i}, 2, &w, {n, uint32_t(repeat), sizeof(T)}};
  sim::issue(in, [=, d = reinterpret_cast<sim::Record<T>*>(dst.data()), s = src.data(), x = index.data()] {
    for (uint32_t b = 0; b < n; b += 32) {
      sim::Record<T> block[32] = {};
      for (uint32_t k = 0; k < 32; ++k) block[k].value = s[b + k], block[k].index = x[b + k];
      std::stable_sort(block, block + 32, sim::before<T>);
      std::copy_n(block, 32, d + b);
    }
  });
}

// Merges the lists that validBit names. With ifExhaustedSuspension it stops when the first list runs out.
template <class T, bool isExhaustedSuspension = false>
inline void MrgSort(const LocalTensor<T>& dst, const MrgSortSrcList<T>& list, const MrgSort4Info& p) {
  static_assert(sim::is_one_of<T, half, float>, "AscendC::MrgSort: dtypes are half, float");
  const LocalTensor<T>* sources[4] = {&list.src1, &list.src2, &list.src3, &list.src4};
  constexpr uint32_t per_record = 8 / sizeof(T);
  sim::Access reads[4];
  std::array<const sim::Record<T>*, 4> from{};
  std::array<uint32_t, 4> left{};
  uint32_t total = 0;
  sim::Instruction in{PIPE_V, sim::Op::MrgSort};
  for (int i = 0; i < 4; ++i) {
    if (!(p.validBit >> i & 1)) continue;
    left[i] = p.elementLengths[i], from[i] = reinterpret_cast<const sim::Record<T>*>(sources[i]->data());
    total += left[i];
    reads[i] = sources[i]->access(left[i] * per_record, 8);
    in.reads[in.read_count++] = &reads[i];
  }
  const sim::Access w = dst.access(total * per_record, 8);
  in.write = &w, in.cost = {total, (total + 31) / 32, sizeof(T)};
  sim::issue(in, [=, d = reinterpret_cast<sim::Record<T>*>(dst.data()), stop = p.ifExhaustedSuspension]() mutable {
    for (uint32_t n = 0; n < total; ++n) {
      int best = -1;
      for (int i = 0; i < 4; ++i)
        if (left[i] && (best < 0 || sim::before(*from[i], *from[best]))) best = i;
      d[n] = *from[best]++;
      if (--left[best] == 0 && stop) break;
    }
  });
}

}  // namespace AscendC
