// The start and end of sums of products of 8-bit integers.
#pragma once

#include "microkernels/activation.h"
#include "py_ort/integer_products.h"

namespace py_ort::PY_ORT_TARGET {

// The contribution of the left operand's zero point to all sums, and the bias.
inline v128_t first_sums(const I8End& g, const int32_t* sums, int32_t zero, int32_t column) {
  const v128_t moved = wasm_i32x4_mul(wasm_v128_load(sums + column), wasm_i32x4_splat(zero));
  return g.bias ? wasm_i32x4_sub(wasm_v128_load(g.bias + column), moved) : wasm_i32x4_neg(moved);
}

inline void finish_bytes(const I8End& g, const v128_t* values, int rows, size_t first, int32_t column) {
  const int32_t columns = g.n - column;
  const v128_t scale = wasm_v128_load(g.scale + column);
  const v128_t zero = wasm_i16x8_splat(static_cast<int16_t>(g.c_zero));
  uint8_t* to = static_cast<uint8_t*>(g.c) + first;
  for (int r = 0; r < rows; ++r, to += g.c_stride) {
    // Adding 1.5 * 2^23 rounds a number to the nearest even, and leaves the integer in its last bits.
    const v128_t scaled = simd::mul(wasm_f32x4_convert_i32x4(values[r]), scale);
    const v128_t near = wasm_f32x4_pmin(wasm_f32x4_pmax(scaled, simd::splat(-1024.0f)), simd::splat(1024.0f));
    const v128_t steps = wasm_i32x4_sub(simd::add(near, simd::splat(12582912.0f)), wasm_i32x4_splat(0x4b400000));
    const v128_t words = wasm_i16x8_add_sat(wasm_i16x8_narrow_i32x4(steps, steps), zero);
    const v128_t bytes =
        g.form == I8End::bytes ? wasm_u8x16_narrow_i16x8(words, words) : wasm_i8x16_narrow_i16x8(words, words);
    uint32_t four = wasm_i32x4_extract_lane(bytes, 0);
    if (columns >= 4) __builtin_memcpy(to, &four, 4);
    else
      for (int32_t i = 0; i < columns; ++i, four >>= 8) to[i] = static_cast<uint8_t>(four);
  }
}

// Ends some rows of 4 columns. Out of line: it costs little beside the product, and would swell each form of it.
[[gnu::noinline]] inline void finish(const I8End& g, v128_t* values, int rows, int32_t row, int32_t column) {
  const int32_t columns = g.n - column;
  const size_t first = static_cast<size_t>(row) * g.c_stride + column;
  if (g.form != I8End::sums && g.form != I8End::floats) return finish_bytes(g, values, rows, first, column);
  if (g.form == I8End::floats) {
    const v128_t scale = wasm_v128_load(g.scale + column);
    const v128_t bias = g.float_bias ? wasm_v128_load(g.float_bias + column) : simd::splat(-0.0f);
    for (int r = 0; r < rows; ++r) values[r] = mul_add(wasm_f32x4_convert_i32x4(values[r]), scale, bias);
    apply(g.epilogue, values, rows);
  }
  float* to = static_cast<float*>(g.c) + first;
  for (int r = 0; r < rows; ++r, to += g.c_stride) store_some(to, values[r], columns);
}

}  // namespace py_ort::PY_ORT_TARGET
