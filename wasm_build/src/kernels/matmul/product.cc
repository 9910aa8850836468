#include "kernels/matmul/product.h"

#include <algorithm>

#include "microkernels/activation.h"
#include "microkernels/few_rows.h"
#include "kernels/shared/strided.h"

namespace py_ort {

using PY_ORT_TARGET::apply;
using PY_ORT_TARGET::load_some;
using PY_ORT_TARGET::row_times_columns;
using PY_ORT_TARGET::row_times_rows;
using PY_ORT_TARGET::store_some;

namespace {

// Below this many rows, packing B costs more than it saves.
constexpr int64_t kFewRows = 4;

// A Tensor over floats with another owner, for strided_copy.
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

}  // namespace

void pack_panels(const Matrix<float>& b, float scale, float* out) {
  F32Pack pack;
  pack.k = static_cast<int32_t>(b.rows), pack.n = static_cast<int32_t>(b.columns);
  pack.b = b.data;
  pack.row_step = static_cast<ptrdiff_t>(b.row_step), pack.column_step = static_cast<ptrdiff_t>(b.column_step);
  pack.scale = scale;
  pack.panels = out;
  run_microkernel(microkernels().f32_pack, pack);
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
      const bool rows = b.column_step == 1;
      (rows ? row_times_rows : row_times_columns)(a.data + i * a.row_step, b.data, rows ? b.row_step : b.column_step,
                                                  b.rows, b.columns, end.c + i * end.c_stride);
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
