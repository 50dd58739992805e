// Printing from a kernel: accepted, and silent.
#pragma once
#include "math.hpp"

namespace AscendC {

struct ShapeInfo {
  ShapeInfo(uint8_t, const uint32_t*) {}
};
template <class... Ts>
inline void PRINTF(const char*, Ts...) {}
template <class... Ts>
inline void DumpTensor(const Ts&...) {}

}  // namespace AscendC
