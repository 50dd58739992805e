// Number formats of the device as plain C++ types: half and bfloat16_t hold 16 bits and convert exactly as IEEE 754 says.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace sim {

template <class To, class From>
inline To bits(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}

// Rounding of a real number to an integer or to a shorter fraction; Odd is "to odd" (sticky).
enum class Round { Even, Floor, Ceil, Away, Zero, Odd };

// Drops `shift` low bits of a magnitude, rounding as asked; `negative` gives the direction for floor and ceil.
inline uint64_t drop_bits(uint64_t magnitude, int shift, bool negative, Round round) {
  if (shift <= 0) return magnitude << -shift;
  if (shift > 62) return (magnitude != 0) && (round == Round::Odd || (round == Round::Ceil && !negative) || (round == Round::Floor && negative));
  const uint64_t kept = magnitude >> shift, rest = magnitude & ((1ull << shift) - 1), half = 1ull << (shift - 1);
  switch (round) {
    case Round::Even: return kept + (rest > half || (rest == half && (kept & 1)));
    case Round::Away: return kept + (rest >= half);
    case Round::Floor: return kept + (negative && rest);
    case Round::Ceil: return kept + (!negative && rest);
    case Round::Odd: return kept | (rest != 0);
    case Round::Zero: break;
  }
  return kept;
}

// float -> a 16-bit format with `E` exponent and `M` fraction bits; overflow follows the rounding direction.
template <int E, int M>
inline uint16_t narrow(float value, Round round) {
  const uint32_t raw = bits<uint32_t>(value);
  const uint16_t sign = (raw >> 31) << 15;
  const bool negative = sign != 0;
  const int exponent = int((raw >> 23) & 0xff) - 127, bias = (1 << (E - 1)) - 1;
  const uint16_t infinity = ((1 << E) - 1) << M;
  if (exponent == 128) return sign | infinity | ((raw & 0x7fffff) ? (1 << (M - 1)) : 0);
  if (exponent == -127 && (raw & 0x7fffff) == 0) return sign;
  const uint64_t fraction = exponent == -127 ? (raw & 0x7fffff) : (raw & 0x7fffff) | 0x800000;
  const int lowest = 1 - bias, from = exponent == -127 ? -126 : exponent;
  const int shift = 23 - M + (from < lowest ? lowest - from : 0);
  uint64_t result = drop_bits(fraction, shift, negative, round);
  if (from >= lowest) result += uint64_t(from - lowest) << M;
  if (result >= infinity) {
    const bool stays = round == Round::Zero || round == Round::Odd || (round == Round::Floor && !negative) || (round == Round::Ceil && negative);
    result = stays ? infinity - 1 : infinity;
  }
  return sign | uint16_t(result);
}

inline float half_to_float(uint16_t raw) {
#if defined(__F16C__)
  return _cvtsh_ss(raw);
#else
  const uint32_t sign = uint32_t(raw & 0x8000) << 16, rest = raw & 0x7fff;
  if (rest >= 0x7c00) return bits<float>(sign | 0x7f800000 | (rest & 0x3ff) << 13);
  return bits<float>(sign | bits<uint32_t>(bits<float>(rest << 13) * 0x1p112f));
#endif
}

inline uint16_t float_to_half(float value) {
#if defined(__F16C__)
  return _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT);
#else
  return narrow<5, 10>(value, Round::Even);
#endif
}

inline uint16_t float_to_bfloat16(float value) {
  const uint32_t raw = bits<uint32_t>(value);
  if ((raw & 0x7fffffff) > 0x7f800000) return uint16_t(raw >> 16) | 0x40;
  return uint16_t((raw + 0x7fff + ((raw >> 16) & 1)) >> 16);
}

}  // namespace sim

struct half {
  uint16_t raw;
  half() = default;
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  half(T value) : raw(sim::float_to_half(float(value))) {}
  operator float() const { return sim::half_to_float(raw); }
  static half of_bits(uint16_t raw) { half value; value.raw = raw; return value; }
};

struct bfloat16_t {
  uint16_t raw;
  bfloat16_t() = default;
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  bfloat16_t(T value) : raw(sim::float_to_bfloat16(float(value))) {}
  operator float() const { return sim::bits<float>(uint32_t(raw) << 16); }
  static bfloat16_t of_bits(uint16_t raw) { bfloat16_t value; value.raw = raw; return value; }
};

namespace sim {

template <class T>
constexpr bool is_short_float = std::is_same_v<T, half> || std::is_same_v<T, bfloat16_t>;
template <class T>
constexpr bool is_floating = is_short_float<T> || std::is_same_v<T, float>;
template <class T, class... Us>
constexpr bool is_one_of = (std::is_same_v<T, Us> || ...);

template <class T>
inline T infinity(bool negative = false) {
  if constexpr (is_floating<T>) return T(negative ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity());
  else return negative ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
}

// float -> T with an explicit rounding direction; integers saturate, NaN becomes 0.
template <class T>
inline T round_to(float value, Round round) {
  if constexpr (std::is_same_v<T, half>) return half::of_bits(round == Round::Even ? float_to_half(value) : narrow<5, 10>(value, round));
  else if constexpr (std::is_same_v<T, bfloat16_t>) return bfloat16_t::of_bits(round == Round::Even ? float_to_bfloat16(value) : narrow<8, 7>(value, round));
  else {
    if (std::isnan(value)) return T(0);
    double whole = value;
    switch (round) {
      case Round::Even: whole = std::nearbyint(whole); break;
      case Round::Floor: whole = std::floor(whole); break;
      case Round::Ceil: whole = std::ceil(whole); break;
      case Round::Away: whole = std::round(whole); break;
      default: whole = std::trunc(whole); break;
    }
    if constexpr (std::is_same_v<T, float>) return float(whole);
    else {
      if (whole >= double(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
      if (whole <= double(std::numeric_limits<T>::lowest())) return std::numeric_limits<T>::lowest();
      return T(whole);
    }
  }
}

}  // namespace sim
