#include "kernels/shared/float_bits.h"

namespace py_ort {

const SmallFloat* small_float(DType dtype) {
  static constexpr SmallFloat e4m3fn{4, 3, 7, false, 0x7f, true, 0x7e};
  static constexpr SmallFloat e4m3fnuz{4, 3, 8, false, 0x80, false, 0x7f};
  static constexpr SmallFloat e5m2{5, 2, 15, true, 0x7f, true, 0x7b};
  static constexpr SmallFloat e5m2fnuz{5, 2, 16, false, 0x80, false, 0x7f};
  static constexpr SmallFloat e2m1{2, 1, 1, false, 0, true, 0x7};
  switch (dtype) {
    case DType::float8e4m3fn: return &e4m3fn;
    case DType::float8e4m3fnuz: return &e4m3fnuz;
    case DType::float8e5m2: return &e5m2;
    case DType::float8e5m2fnuz: return &e5m2fnuz;
    case DType::float4e2m1: return &e2m1;
    default: return nullptr;
  }
}

float decode_small_float(const SmallFloat& format, uint8_t bits) {
  const int sign_bit = format.exponent_bits + format.mantissa_bits;
  const int magnitude = bits & ((1 << sign_bit) - 1);
  const bool negative = bits >> sign_bit & 1;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  if (!format.negative_zero && negative && magnitude == 0) return nan;
  if (format.infinity && magnitude > format.max) {
    const float inf = std::numeric_limits<float>::infinity();
    return magnitude == format.max + 1 ? (negative ? -inf : inf) : nan;
  }
  if (format.nan == magnitude && format.nan) return negative ? -nan : nan;
  const int exponent = magnitude >> format.mantissa_bits;
  const int mantissa = magnitude & ((1 << format.mantissa_bits) - 1);
  const float value = exponent ? std::ldexp(static_cast<float>(mantissa + (1 << format.mantissa_bits)),
                                            exponent - format.bias - format.mantissa_bits)
                               : std::ldexp(static_cast<float>(mantissa), 1 - format.bias - format.mantissa_bits);
  return negative ? -value : value;
}

uint8_t encode_small_float(const SmallFloat& format, float x, bool saturate) {
  const int sign_bit = format.exponent_bits + format.mantissa_bits;
  const auto sign = static_cast<uint8_t>(std::signbit(x) << sign_bit);
  const auto with_sign = [&](int magnitude) {
    return static_cast<uint8_t>(magnitude || format.negative_zero ? sign | magnitude : 0);
  };
  if (x != x)
    return format.nan ? static_cast<uint8_t>(format.negative_zero ? sign | format.nan : format.nan)
                      : static_cast<uint8_t>(1 << sign_bit);
  const auto too_large = [&] {
    if (saturate || !format.nan) return with_sign(format.max);
    if (format.infinity) return with_sign(format.max + 1);
    return static_cast<uint8_t>(format.negative_zero ? sign | format.nan : format.nan);
  };
  const float magnitude = std::fabs(x);
  if (std::isinf(magnitude)) return too_large();
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = 0.5..1 * 2^exponent
  const int unit = std::max(exponent - 1, 1 - format.bias) - format.mantissa_bits;
  const auto units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, -unit)));  // below 2^(mantissa_bits + 1) + 1
  // Adding the exponent to a mantissa with its leading one carries correctly, from subnormals to normals too.
  const int step = unit + format.mantissa_bits + format.bias - 1;
  const int code = units + (step << format.mantissa_bits);
  if (magnitude > 0 && (step > 1 << format.exponent_bits || code > format.max)) return too_large();
  return with_sign(magnitude > 0 ? code : 0);
}

uint8_t encode_e8m0(float x, bool saturate, E8M0Round round) {
  if (x != x) return 255;
  const float magnitude = std::fabs(x);
  if (std::isinf(magnitude)) return saturate ? 254 : 255;
  if (magnitude == 0) return saturate ? 0 : 255;
  int exponent = 0;
  const float fraction = std::frexp(magnitude, &exponent) * 2;  // 1..2
  int code = exponent - 1 + 127;
  if (round == E8M0Round::up ? fraction > 1 : round == E8M0Round::nearest && fraction >= 1.5f) ++code;
  if (code < 0) return saturate ? 0 : 255;
  return static_cast<uint8_t>(code > 254 ? (saturate ? 254 : 255) : code);
}

}  // namespace py_ort
