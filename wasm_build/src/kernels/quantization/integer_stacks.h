// Products of stacks of 8-bit matrices: shapes, scales and zero points per row, column or tensor, packed right
// operands.
#pragma once

#include "kernels/shared/broadcast.h"
#include "kernels/shared/derived.h"
#include "kernels/quantization/integer_product.h"

namespace py_ort {

// The shapes of a product of stacks of matrices.
struct Shapes {
  int64_t m = 1, k = 1, n = 1;
  Dims batch, a_batch, b_batch, dims;

  static Status of(const Tensor& a, const Tensor& b, Shapes& s) {
    PY_ORT_ENSURE(a.rank() > 0 && b.rank() > 0, "an integer product does not take scalars: ", a.dims, " times ",
                  b.dims);
    s.k = a.dims.back();
    const int64_t rows = b.rank() > 1 ? b.dim(-2) : b.dims[0];
    PY_ORT_ENSURE(rows == s.k, "cannot multiply ", a.dims, " by ", b.dims, ": ", s.k, " columns meet ", rows, " rows");
    if (a.rank() > 1) s.m = a.dim(-2), s.a_batch.assign(a.dims.begin(), a.dims.end() - 2);
    if (b.rank() > 1) s.n = b.dim(-1), s.b_batch.assign(b.dims.begin(), b.dims.end() - 2);
    PY_ORT_TRY(broadcast_dims(s.a_batch, s.b_batch, s.batch));
    s.dims = s.batch;
    if (a.rank() > 1) s.dims.push_back(s.m);
    if (b.rank() > 1) s.dims.push_back(s.n);
    return {};
  }
  // Where the operand's matrix for result `i` begins, counted in matrices.
  int64_t matrix(const Dims& own, int64_t i) const {
    int64_t at = 0, step = 1;
    for (size_t axis = batch.size(); axis-- > 0; i /= batch[axis]) {
      const size_t missing = batch.size() - own.size();
      if (axis < missing) continue;
      at += own[axis - missing] == 1 ? 0 : i % batch[axis] * step;
      step *= own[axis - missing];
    }
    return at;
  }
};

// A scale or zero point: one number, one a row (or column), one a matrix, or one for each row of each matrix.
struct Factor {
  PerAxis values;
  int64_t matrix_step = 0, line_step = 0;
  static Status read(const Tensor* tensor, int64_t lines, int64_t matrices, std::string_view what, Factor& out) {
    const int64_t count = tensor ? tensor->count() : 1;
    const bool each_matrix =
        tensor && tensor->rank() > 2 && tensor->dim(-1) * tensor->dim(-2) == 1 && count == matrices;
    const bool all = !each_matrix && count == lines * matrices && count != lines;
    out.line_step = each_matrix ? 0 : 1;
    out.matrix_step = each_matrix ? 1 : all ? lines : 0;
    return PerAxis::read(tensor, each_matrix || all ? count : lines, what, out.values);
  }
  float at(int64_t matrix, int64_t line) const { return values[matrix * matrix_step + line * line_step]; }
  int32_t integer(int64_t matrix, int64_t line) const { return static_cast<int32_t>(at(matrix, line)); }
};

using KeptPanels = Derived<std::vector<IntegerPanels>>;

// Calls finish(first element of the result, its sums [m, n], matrix of a, matrix of b) for each matrix of the result.
// keep: whether b's zero points are constant.
template <class Finish>
Status multiply_stacks(const Tensor& a, const Tensor& b, const Shapes& s, const Factor& a_zero, const Factor& b_zero,
                       const KeptPanels& kept, bool keep, Finish finish) {
  std::vector<int32_t> sums(static_cast<size_t>(s.m * s.n));
  IntegerRows left;
  const std::vector<IntegerPanels>* right;  // of each matrix of b
  PY_ORT_TRY(kept.get(b, right, [&](std::vector<IntegerPanels>& out) -> Status {
    std::vector<int16_t> zeros(static_cast<size_t>(s.n));
    out.resize(static_cast<size_t>(element_count(s.b_batch)));
    for (size_t i = 0; i < out.size(); ++i) {
      const auto matrix = static_cast<int64_t>(i);
      for (int64_t column = 0; column < s.n; ++column)
        zeros[static_cast<size_t>(column)] = static_cast<int16_t>(b_zero.integer(matrix, column));
      out[i].fill(b, matrix * s.k * s.n, s.k, s.n, zeros);
    }
    return {};
  }, keep));
  for (int64_t i = 0; i < element_count(s.batch); ++i) {
    const int64_t at_a = s.matrix(s.a_batch, i), at_b = s.matrix(s.b_batch, i);
    left.reset(s.m, s.k);
    for (int64_t row = 0; row < s.m; ++row)
      subtract_zero(a, (at_a * s.m + row) * s.k, s.k, a_zero.integer(at_a, row), left.row(row));
    PY_ORT_TRY(multiply_integers(left, (*right)[static_cast<size_t>(at_b)], sums.data()));
    finish(i * s.m * s.n, sums.data(), at_a, at_b);
  }
  return {};
}

}  // namespace py_ort
