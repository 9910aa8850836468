// The small floating-point formats, stored as bits: float16, bfloat16, the float8 family, float4e2m1 and float8e8m0.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "py_ort/tensor.h"

namespace py_ort {

// std::bit_cast, which the pinned libc++ lacks.
template <class To, class From>
constexpr To bits_as(const From& from) {
  return __builtin_bit_cast(To, from);
}

inline float to_float(float x) { return x; }
inline float to_float(double x) { return static_cast<float>(x); }

inline float to_float(BFloat16 x) { return bits_as<float>(static_cast<uint32_t>(x.bits) << 16); }

inline float to_float(Float16 x) {
  // Shift exponent and mantissa into place, then multiply by 2^112 to move the bias from 15 to 127: this is correct for
  // subnormals too.
  const uint32_t magnitude = static_cast<uint32_t>(x.bits & 0x7fff) << 13;
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000) << 16;
  const float scaled = bits_as<float>(magnitude) * 0x1p112f;
  const uint32_t infinite = magnitude >= 0x0f800000 ? 0x7f800000u : 0u;
  return bits_as<float>(bits_as<uint32_t>(scaled) | infinite | sign);
}

inline BFloat16 to_bfloat16(float x) {
  const uint32_t bits = bits_as<uint32_t>(x);
  if (x != x) return {static_cast<uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

inline Float16 to_float16(float x) {
  const uint32_t bits = bits_as<uint32_t>(x);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return {static_cast<uint16_t>(sign | 0x7e00)};
  if (magnitude >= 0x477ff000) return {static_cast<uint16_t>(sign | 0x7c00)};  // rounds to 2^16 or more
  if (magnitude < 0x38800000) {                              // below 2^-14: subnormal; the adder rounds
    const float shifted = bits_as<float>(magnitude) + 0.5f;  // the unit in the last place of 0.5 is 2^-24
    return {static_cast<uint16_t>(sign | (bits_as<uint32_t>(shifted) - 0x3f000000u))};
  }
  const uint32_t rounded = magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1);
  return {static_cast<uint16_t>(sign | rounded >> 13)};
}

// The differences between the formats of at most 8 bits.
struct SmallFloat {
  int exponent_bits, mantissa_bits, bias;
  bool infinity;       // the highest exponent is as in IEEE: infinity and NaNs
  uint8_t nan;         // the bits of a (positive) NaN; 0: the format has none
  bool negative_zero;  // false: the bits of -0 mean NaN
  uint8_t max;         // the bits of the largest finite value
};
// Null for other dtypes; float8e8m0 has functions of its own.
const SmallFloat* small_float(DType dtype);
float decode_small_float(const SmallFloat& format, uint8_t bits);
uint8_t encode_small_float(const SmallFloat& format, float x, bool saturate);
inline float decode_e8m0(uint8_t bits) {
  return bits == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, bits - 127);
}
enum class E8M0Round : uint8_t { up, down, nearest };
uint8_t encode_e8m0(float x, bool saturate, E8M0Round round);

}  // namespace py_ort
