// Matrix products of operands with any steps in memory. The f32 ones use the micro-kernel.
#pragma once

#include "py_ort/kernel.h"
#include "py_ort/microkernels.h"

namespace py_ort {

template <class T>
struct Matrix {
  const T* data = nullptr;
  int64_t rows = 0, columns = 0, row_step = 0, column_step = 0;  // steps in elements
  Matrix transposed() const { return {data, columns, rows, column_step, row_step}; }
};
template <class T>
Matrix<T> row_major(const T* data, int64_t rows, int64_t columns) {
  return {data, rows, columns, columns, 1};
}

// Floats of a [k, n] operand in panels of 8 columns.
inline size_t panels_size(int64_t k, int64_t n) { return static_cast<size_t>((n + 7) / 8 * 8 * k); }
void pack_panels(const Matrix<float>& b, float scale, float* out);

// The destination of a product, and the steps applied before it is stored.
struct ProductEnd {
  float* c = nullptr;
  int64_t c_stride = 0;
  const float* bias = nullptr;  // per column
  const float* z = nullptr;
  int64_t z_stride = 0;
  Epilogue epilogue;
};

// C = epilogue(A B + bias, Z), B in panels ([ceil(n/8), k, 8]).
Status multiply_panels(const Matrix<float>& a, const float* panels, int64_t n, const ProductEnd& end);
// C = epilogue(alpha A B + bias, Z)
Status multiply(const Matrix<float>& a, const Matrix<float>& b, float alpha, const ProductEnd& end);
// Runs an f32 GEMM over all workers.
Status run_gemm(F32Gemm g);

// C = A B for any arithmetic type; sums in T.
template <class T>
void multiply_plainly(const Matrix<T>& a, const Matrix<T>& b, T* c) {
  for (int64_t i = 0; i < a.rows; ++i, c += b.columns) {
    for (int64_t j = 0; j < b.columns; ++j) c[j] = T{};
    for (int64_t k = 0; k < a.columns; ++k) {
      const T x = a.data[i * a.row_step + k * a.column_step];
      const T* row = b.data + k * b.row_step;
      for (int64_t j = 0; j < b.columns; ++j) c[j] += x * row[j * b.column_step];
    }
  }
}

// `count` zeros, shared by all kernels; valid until the next call.
Status zero_floats(size_t count, const float*& out);

}  // namespace py_ort
