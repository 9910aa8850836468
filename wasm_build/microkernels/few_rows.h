// One row times an unpacked matrix, for few rows, where packing would cost more than it saves.
#pragma once

#include "microkernels/target.h"

namespace py_ort::PY_ORT_TARGET {

// c[0, n) = a b, b's k rows contiguous, `step` apart.
inline void row_times_rows(const float* a, const float* b, int64_t step, int64_t k, int64_t n, float* c) {
  int64_t j = 0;
  for (; j + 16 <= n; j += 16) {
    v128_t sums[4] = {simd::splat(0), simd::splat(0), simd::splat(0), simd::splat(0)};
    const float* row = b + j;
    for (int64_t i = 0; i < k; ++i, row += step) {
      const v128_t x = load_splat(a + i);
#pragma clang loop unroll(full)
      for (int v = 0; v < 4; ++v) sums[v] = mul_add(x, simd::load(row + v * 4), sums[v]);
    }
#pragma clang loop unroll(full)
    for (int v = 0; v < 4; ++v) simd::store(c + j + v * 4, sums[v]);
  }
  for (; j < n; j += 4) {
    const auto left = static_cast<int32_t>(n - j);
    v128_t sum = simd::splat(0);
    for (int64_t i = 0; i < k; ++i) sum = mul_add(load_splat(a + i), load_some(b + i * step + j, left), sum);
    store_some(c + j, sum, left);
  }
}

// c[0, n) = a b, b's n columns contiguous, `step` apart.
inline void row_times_columns(const float* a, const float* b, int64_t step, int64_t k, int64_t n, float* c) {
  for (int64_t j = 0; j < n; ++j, b += step) {
    v128_t sums[2] = {simd::splat(0), simd::splat(0)};
    int64_t i = 0;
    for (; i + 8 <= k; i += 8) {
      sums[0] = mul_add(simd::load(a + i), simd::load(b + i), sums[0]);
      sums[1] = mul_add(simd::load(a + i + 4), simd::load(b + i + 4), sums[1]);
    }
    float sum = simd::sum_lanes(simd::add(sums[0], sums[1]));
    for (; i < k; ++i) sum += a[i] * b[i];
    c[j] = sum;
  }
}

}  // namespace py_ort::PY_ORT_TARGET
