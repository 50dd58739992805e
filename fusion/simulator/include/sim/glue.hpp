// Between the runtime and the kernel: the kernel's file defines sim_call, the runtime calls it once per job.
#pragma once
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace sim {

void launch(int64_t blocks, std::function<void()> body);

template <class T>
inline T scalar(const std::string& text) {
  if constexpr (std::is_floating_point_v<T>) return T(std::strtod(text.c_str(), nullptr));
  else if constexpr (std::is_integral_v<T>) return T(std::strtoll(text.c_str(), nullptr, 0));
  else return T(float(std::strtod(text.c_str(), nullptr)));
}

}  // namespace sim

void sim_call(uint8_t** buffers, const std::vector<std::string>& scalars);
