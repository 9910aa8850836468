#include "kernels/matmul/product.h"

#include <algorithm>

#include "microkernels/activation.h"
#include "kernels/shared/strided.h"

namespace py_ort {

using PY_ORT_TARGET::apply;
using PY_ORT_TARGET::load_some;
using PY_ORT_TARGET::load_splat;
using PY_ORT_TARGET::store_some;

namespace {

// Below this many rows, packing B costs more than it brings.
constexpr int64_t kFewRows = 4;

// A Tensor over floats that somebody else owns, for strided_copy.
Tensor borrowed_floats(const float* data, int64_t count) {
  return {DType::float32,
          {count},
          Location::cpu,
          Storage::borrowed(const_cast<float*>(data), static_cast<size_t>(count) * sizeof(float))};
}

void finish_row(const ProductEnd& end, int64_t row, int64_t n, float alpha) {
  float* c = end.c + row * end.c_stride;
  const float* z = end.z ? end.z + row * end.z_stride : nullptr;
  for (int64_t j = 0; j < n; j += 4) {
    const auto left = static_cast<int32_t>(n - j);
    v128_t x = simd::mul(load_some(c + j, left), simd::splat(alpha));
    if (end.bias) x = simd::add(x, load_some(end.bias + j, left));
    const v128_t more = z ? load_some(z + j, left) : x;
    store_some(c + j, apply(end.epilogue, x, z ? &more : nullptr), left);
  }
}

// c[0, n) = a b, b's rows contiguous.
void row_times_rows(const float* a, const Matrix<float>& b, float* c) {
  int64_t j = 0;
  for (; j + 16 <= b.columns; j += 16) {
    v128_t sums[4] = {simd::splat(0), simd::splat(0), simd::splat(0), simd::splat(0)};
    for (int64_t k = 0; k < b.rows; ++k) {
      const float* row = b.data + k * b.row_step + j;
      const v128_t x = load_splat(a + k);
      for (int v = 0; v < 4; ++v) sums[v] = simd::mul_add(x, simd::load(row + v * 4), sums[v]);
    }
    for (int v = 0; v < 4; ++v) simd::store(c + j + v * 4, sums[v]);
  }
  for (; j < b.columns; j += 4) {
    const auto left = static_cast<int32_t>(b.columns - j);
    v128_t sum = simd::splat(0);
    for (int64_t k = 0; k < b.rows; ++k)
      sum = simd::mul_add(load_splat(a + k), load_some(b.data + k * b.row_step + j, left), sum);
    store_some(c + j, sum, left);
  }
}

// c[0, n) = a b, b's columns contiguous.
void row_times_columns(const float* a, const Matrix<float>& b, float* c) {
  for (int64_t j = 0; j < b.columns; ++j) {
    const float* column = b.data + j * b.column_step;
    v128_t sums[2] = {simd::splat(0), simd::splat(0)};
    int64_t k = 0;
    for (; k + 8 <= b.rows; k += 8) {
      sums[0] = simd::mul_add(simd::load(a + k), simd::load(column + k), sums[0]);
      sums[1] = simd::mul_add(simd::load(a + k + 4), simd::load(column + k + 4), sums[1]);
    }
    float sum = simd::sum_lanes(simd::add(sums[0], sums[1]));
    for (; k < b.rows; ++k) sum += a[k] * column[k];
    c[j] = sum;
  }
}

}  // namespace

void pack_panels(const Matrix<float>& b, float scale, float* out) {
  const v128_t factor = simd::splat(scale);
  for (int64_t j = 0; j < b.columns; j += 8) {
    const auto columns = static_cast<int32_t>(std::min<int64_t>(8, b.columns - j));
    const float* from = b.data + j * b.column_step;
    int64_t k = 0;
    if (b.column_step == 1) {
      for (; k < b.rows; ++k, from += b.row_step, out += 8) {
        simd::store(out, simd::mul(load_some(from, columns), factor));
        simd::store(out + 4, columns > 4 ? simd::mul(load_some(from + 4, columns - 4), factor) : simd::splat(0));
      }
      continue;
    }
    if (b.row_step == 1 && columns == 8) {  // 4x4 transposes
      for (; k + 4 <= b.rows; k += 4, from += 4, out += 32) {
        for (int half = 0; half < 2; ++half) {
          const float* x = from + half * 4 * b.column_step;
          const v128_t r0 = simd::load(x), r1 = simd::load(x + b.column_step), r2 = simd::load(x + 2 * b.column_step),
                       r3 = simd::load(x + 3 * b.column_step);
          const v128_t low01 = wasm_i32x4_shuffle(r0, r1, 0, 4, 1, 5), high01 = wasm_i32x4_shuffle(r0, r1, 2, 6, 3, 7);
          const v128_t low23 = wasm_i32x4_shuffle(r2, r3, 0, 4, 1, 5), high23 = wasm_i32x4_shuffle(r2, r3, 2, 6, 3, 7);
          float* to = out + half * 4;
          simd::store(to, simd::mul(wasm_i64x2_shuffle(low01, low23, 0, 2), factor));
          simd::store(to + 8, simd::mul(wasm_i64x2_shuffle(low01, low23, 1, 3), factor));
          simd::store(to + 16, simd::mul(wasm_i64x2_shuffle(high01, high23, 0, 2), factor));
          simd::store(to + 24, simd::mul(wasm_i64x2_shuffle(high01, high23, 1, 3), factor));
        }
      }
    }
    for (; k < b.rows; ++k, from += b.row_step, out += 8)
      for (int32_t c = 0; c < 8; ++c) out[c] = c < columns ? from[c * b.column_step] * scale : 0.0f;
  }
}

Status run_gemm(F32Gemm g) {
  if (!run_microkernel(microkernels().f32_gemm, g))
    return out_of_memory("no memory for the scratch space of a matrix product");
  return {};
}

Status multiply_panels(const Matrix<float>& a, const float* panels, int64_t n, const ProductEnd& end) {
  Tensor copy;
  Matrix<float> rows = a;
  if (a.column_step != 1 && a.columns > 1) {
    PY_ORT_TRY(Tensor::make(DType::float32, {a.rows, a.columns}, copy));
    strided_copy(borrowed_floats(a.data, a.rows * a.columns), {0, {a.row_step, a.column_step}}, copy,
                 {0, {a.columns, 1}}, copy.dims);
    rows = row_major(copy.data<float>(), a.rows, a.columns);
  }
  F32Gemm g;
  g.rows = static_cast<int32_t>(rows.rows);
  g.n = static_cast<int32_t>(n);
  g.k = static_cast<int32_t>(rows.columns);
  g.a = rows.data;
  g.a_stride = static_cast<int32_t>(rows.row_step);
  g.b = panels;
  g.bias = end.bias;
  g.z = end.z;
  g.z_stride = static_cast<int32_t>(end.z_stride);
  g.c = end.c;
  g.c_stride = static_cast<int32_t>(end.c_stride);
  g.epilogue = end.epilogue;
  return run_gemm(g);
}

Status multiply(const Matrix<float>& a, const Matrix<float>& b, float alpha, const ProductEnd& end) {
  if (a.rows < kFewRows && (a.column_step == 1 || a.columns == 1) && (b.column_step == 1 || b.row_step == 1)) {
    for (int64_t i = 0; i < a.rows; ++i) {
      (b.column_step == 1 ? row_times_rows : row_times_columns)(a.data + i * a.row_step, b, end.c + i * end.c_stride);
      finish_row(end, i, b.columns, alpha);
    }
    return {};
  }
  Tensor packed;
  PY_ORT_TRY(Tensor::make(DType::float32, {static_cast<int64_t>(panels_size(b.rows, b.columns))}, packed));
  pack_panels(b, alpha, packed.mutable_data<float>());
  return multiply_panels(a, packed.data<float>(), b.columns, end);
}

Status zero_floats(size_t count, const float*& out) {
  static Tensor zeros;
  if (!zeros.storage || zeros.storage->size() < count * sizeof(float)) {
    PY_ORT_TRY(Tensor::make(DType::float32, {static_cast<int64_t>(count)}, zeros));
    std::fill_n(zeros.mutable_data<float>(), count, 0.0f);
  }
  out = zeros.data<float>();
  return {};
}

}  // namespace py_ort
