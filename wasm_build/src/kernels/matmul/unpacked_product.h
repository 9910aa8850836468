// Products with packed weights (few bits each), unpacked a few columns at a time.
#pragma once

#include <algorithm>

#include <wasm_simd128.h>

#include "kernels/matmul/product.h"
#include "kernels/shared/simd_math.h"

namespace py_ort {

// Few rows multiply the weights while these are unpacked; more rows share a panel of 8 unpacked columns.
inline constexpr int64_t kFewRows = 4;

inline float dot_product(const float* a, const float* b, int64_t count) {
  v128_t sums[4] = {simd::splat(0), simd::splat(0), simd::splat(0), simd::splat(0)};
  int64_t i = 0;
  for (; i + 16 <= count; i += 16)
    for (int j = 0; j < 4; ++j) sums[j] = simd::mul_add(simd::load(a + i + j * 4), simd::load(b + i + j * 4), sums[j]);
  float sum = simd::sum_lanes(simd::add(simd::add(sums[0], sums[1]), simd::add(sums[2], sums[3])));
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// out [rows, n] = a [rows, k] W + bias. unpack(column, to) writes the k weights of a column, and may write up to
// `padded` floats.
template <class Unpack>
Status multiply_unpacked(const float* a, int64_t rows, int64_t k, int64_t n, int64_t padded, const Unpack& unpack,
                         const float* bias, float* out) {
  Tensor unpacked, panel;
  PY_ORT_TRY(Tensor::make(DType::float32, {8, padded}, unpacked));
  float* values = unpacked.mutable_data<float>();
  if (rows < kFewRows) {
    for (int64_t column = 0; column < n; ++column) {
      unpack(column, values);
      for (int64_t row = 0; row < rows; ++row)
        out[row * n + column] = dot_product(a + row * k, values, k) + (bias ? bias[column] : 0.0f);
    }
    return {};
  }
  PY_ORT_TRY(Tensor::make(DType::float32, {k, 8}, panel));
  for (int64_t first = 0; first < n; first += 8) {
    const int64_t columns = std::min<int64_t>(8, n - first);
    for (int64_t c = 0; c < columns; ++c) unpack(first + c, values + c * padded);
    pack_panels({values, k, columns, 1, padded}, 1, panel.mutable_data<float>());
    ProductEnd end;
    end.c = out + first, end.c_stride = n;
    end.bias = bias ? bias + first : nullptr;
    PY_ORT_TRY(multiply_panels(row_major(a, rows, k), panel.data<float>(), columns, end));
  }
  return {};
}

// (value - zero) * scale of `count` values of 2, 4 or 8 bits, the lowest bits of a byte first. Whole 16s are written.
inline void unpack_bits(const uint8_t* from, int64_t bits, int64_t count, float scale, float zero, float* to) {
  const v128_t factor = simd::splat(scale), shift = simd::splat(-zero * scale);
  const auto put = [&](v128_t bytes, float* at) {  // 16 values
    v128_t floats[4];
    simd::floats_of(bytes, floats);
    for (int i = 0; i < 4; ++i) simd::store(at + i * 4, simd::mul_add(floats[i], factor, shift));
  };
  for (int64_t i = 0; i < count; i += 16, to += 16) {
    if (bits == 8) {
      put(wasm_v128_load(from), to);
      from += 16;
    } else if (bits == 4) {
      const v128_t pairs = wasm_v128_load64_zero(from), mask = wasm_i8x16_splat(15);
      const v128_t low = wasm_v128_and(pairs, mask), high = wasm_u8x16_shr(pairs, 4);
      put(wasm_i8x16_shuffle(low, high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), to);
      from += 8;
    } else {
      for (int j = 0; j < 16; ++j) to[j] = (static_cast<float>(from[j / 4] >> (j % 4 * 2) & 3) - zero) * scale;
      from += 4;
    }
  }
}

}  // namespace py_ort
