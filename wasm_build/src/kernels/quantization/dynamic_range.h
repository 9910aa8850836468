// Quantization to 8 bits, by given scales or by the numbers' own range. Micro-kernels include this file: it needs no
// C++ library.
#pragma once

#include <stdint.h>

#include "kernels/shared/simd_math.h"

namespace py_ort {

// The range of an integer dtype of at most 16 bits.
struct IntegerRange { float low, high; };

// Four at once for the common case, float32 to 8 bits: x / scale to the nearest even, plus the zero point, saturated.
template <class T>
inline void quantize_bytes(const float* x, int64_t count, float scale, float zero, IntegerRange range, T* y) {
  constexpr bool is_signed = static_cast<T>(-1) < 0;
  const auto in_range = [&](v128_t rounded) {
    return wasm_i32x4_trunc_sat_f32x4(
        wasm_f32x4_pmin(simd::splat(range.high), wasm_f32x4_pmax(simd::splat(range.low), rounded)));
  };
  const auto four = [&](v128_t from) {
    return in_range(simd::add(wasm_f32x4_nearest(simd::div(from, simd::splat(scale))), simd::splat(zero)));
  };
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const v128_t low = wasm_i16x8_narrow_i32x4(four(simd::load(x + i)), four(simd::load(x + i + 4))),
                 high = wasm_i16x8_narrow_i32x4(four(simd::load(x + i + 8)), four(simd::load(x + i + 12)));
    wasm_v128_store(y + i, is_signed ? wasm_i8x16_narrow_i16x8(low, high) : wasm_u8x16_narrow_i16x8(low, high));
  }
  for (; i < count; ++i) y[i] = static_cast<T>(wasm_i32x4_extract_lane(four(wasm_v128_load32_zero(x + i)), 0));
}

// The same to int8 or uint8.
inline void quantize_bytes(const float* x, int64_t count, float scale, float zero, bool is_signed, void* y) {
  if (is_signed) quantize_bytes(x, count, scale, zero, {-128, 127}, static_cast<int8_t*>(y));
  else quantize_bytes(x, count, scale, zero, {0, 255}, static_cast<uint8_t*>(y));
}

// DynamicQuantizeLinear's scale and zero point of uint8. The range always includes zero, and never a NaN.
struct DynamicRange {
  float scale, zero;
  // low <= 0 <= high
  static DynamicRange of(float low, float high) {
    const float scale = high == low ? 1.0f : (high - low) / 255, zero = __builtin_nearbyintf(-low / scale);
    // onnxruntime's result for -inf / inf is the largest.
    return {scale, zero != zero || zero > 255 ? 255.0f : zero < 0 ? 0.0f : zero};
  }
};

inline DynamicRange dynamic_range_of(const float* x, int64_t count) {
  v128_t lows = simd::splat(0), highs = lows;
  // Four vectors at a time: one by one, each would wait for the previous one.
  v128_t each_low[4] = {lows, lows, lows, lows}, each_high[4] = {lows, lows, lows, lows};
  const auto see = [](v128_t& low, v128_t& high, v128_t four) {
    low = wasm_f32x4_pmin(low, four), high = wasm_f32x4_pmax(high, four);
  };
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
#pragma clang loop unroll(full)
    for (int k = 0; k < 4; ++k) see(each_low[k], each_high[k], simd::load(x + i + 4 * k));
  }
#pragma clang loop unroll(full)
  for (int k = 0; k < 4; ++k) lows = wasm_f32x4_pmin(lows, each_low[k]), highs = wasm_f32x4_pmax(highs, each_high[k]);
  for (; i + 4 <= count; i += 4) see(lows, highs, simd::load(x + i));
  for (; i < count; ++i) see(lows, highs, wasm_v128_load32_zero(x + i));  // the range includes zero anyway
  const auto least = [](float a, float b) { return b < a ? b : a; };
  const float low = least(least(wasm_f32x4_extract_lane(lows, 0), wasm_f32x4_extract_lane(lows, 1)),
                          least(wasm_f32x4_extract_lane(lows, 2), wasm_f32x4_extract_lane(lows, 3)));
  const auto most = [](float a, float b) { return a < b ? b : a; };
  const float high = most(most(wasm_f32x4_extract_lane(highs, 0), wasm_f32x4_extract_lane(highs, 1)),
                          most(wasm_f32x4_extract_lane(highs, 2), wasm_f32x4_extract_lane(highs, 3)));
  return DynamicRange::of(low, high);
}

}  // namespace py_ort
