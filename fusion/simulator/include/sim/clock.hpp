// Vector clocks: for every pipe of the core, how many of its instructions are known to be complete.
#pragma once
#include <algorithm>
#include <cstdint>

#include "machine.hpp"

namespace sim {

struct alignas(32) Clock {
  uint32_t t[kActors] = {};
  void join(const Clock& other) {
    for (int i = 0; i < kActors; ++i) t[i] = std::max(t[i], other.t[i]);
  }
};

}  // namespace sim
