// Arithmetic shared by instructions: adding runs of values in a given format (atomic adds to GM).
#pragma once
#include "../sim/dtype.hpp"

namespace sim {

// Codes of SetAtomicAdd; 0 means plain stores.
template <class T>
constexpr int add_code() {
  if constexpr (std::is_same_v<T, float>) return 1;
  else if constexpr (std::is_same_v<T, half>) return 2;
  else if constexpr (std::is_same_v<T, bfloat16_t>) return 3;
  else if constexpr (std::is_same_v<T, int32_t>) return 4;
  else if constexpr (std::is_same_v<T, int16_t>) return 5;
  else {
    static_assert(std::is_same_v<T, int8_t>, "SetAtomicAdd: the device adds float, half, bfloat16_t, int32_t, int16_t and int8_t");
    return 6;
  }
}

template <class T>
inline void add_run(uint8_t* to, const uint8_t* from, uint32_t bytes) {
  for (uint32_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T)) {
    T a, b;
    std::memcpy(&a, to + i, sizeof(T));
    std::memcpy(&b, from + i, sizeof(T));
    if constexpr (is_floating<T>) a = T(float(a) + float(b));
    else a = T(a + b);
    std::memcpy(to + i, &a, sizeof(T));
  }
}

inline void add_bytes(int code, uint8_t* to, const uint8_t* from, uint32_t bytes) {
  switch (code) {
    case 1: return add_run<float>(to, from, bytes);
    case 2: return add_run<half>(to, from, bytes);
    case 3: return add_run<bfloat16_t>(to, from, bytes);
    case 4: return add_run<int32_t>(to, from, bytes);
    case 5: return add_run<int16_t>(to, from, bytes);
    case 6: return add_run<int8_t>(to, from, bytes);
    default: std::memcpy(to, from, bytes);
  }
}

}  // namespace sim
