// Products of stacks of 8-bit matrices: shapes, scales and zero points per row, column or tensor, packed right
// operands.
#pragma once

#include "kernels/shared/broadcast.h"
#include "kernels/shared/derived.h"
#include "kernels/quantization/integer_product.h"
#include "py_ort/gen/dialect.h"

namespace py_ort {

// The shapes of a product of stacks of matrices.
struct Shapes {
  int64_t m = 1, k = 1, n = 1;
  Dims batch, a_batch, b_batch, dims;

  // packed_columns: those of a B in panels, [ceil(n/8), ceil(k/4), 8, 4]; or -1.
  static Status of(const Tensor& a, const Tensor& b, int64_t packed_columns, Shapes& s) {
    PY_ORT_ENSURE(a.rank() > 0 && b.rank() > 0, "an integer product does not take scalars: ", a.dims, " times ",
                  b.dims);
    s.k = a.dims.back();
    if (a.rank() > 1) s.m = a.dim(-2), s.a_batch.assign(a.dims.begin(), a.dims.end() - 2);
    if (packed_columns >= 0) {
      PY_ORT_ENSURE(b.dtype == DType::int8 && b.dims == (Dims{(packed_columns + 7) / 8, (s.k + 3) / 4, 8, 4}),
                    "packed B of ", packed_columns, " columns has the shape ", b.dims, " and A ", a.dims);
      s.n = packed_columns, s.batch = s.a_batch, s.dims = a.dims, s.dims.back() = s.n;
      return {};
    }
    const int64_t rows = b.rank() > 1 ? b.dim(-2) : b.dims[0];
    PY_ORT_ENSURE(rows == s.k, "cannot multiply ", a.dims, " by ", b.dims, ": ", s.k, " columns meet ", rows, " rows");
    if (b.rank() > 1) s.n = b.dim(-1), s.b_batch.assign(b.dims.begin(), b.dims.end() - 2);
    PY_ORT_TRY(broadcast_dims(s.a_batch, s.b_batch, s.batch));
    s.dims = s.batch;
    if (a.rank() > 1) s.dims.push_back(s.m);
    if (b.rank() > 1) s.dims.push_back(s.n);
    return {};
  }
  // The start of the operand's matrix for result `i`, counted in matrices.
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

// A scale or zero point: one number, one per row (or column), one per matrix, or one for each row of each matrix.
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
  bool one() const { return values.one(); }
  float at(int64_t matrix, int64_t line) const { return values[matrix * matrix_step + line * line_step]; }
  int32_t integer(int64_t matrix, int64_t line) const { return static_cast<int32_t>(at(matrix, line)); }
};

// The right operand; its panels are kept if it is constant.
class RightStack {
 public:
  void read(const KernelInfo& info) { packed_columns_ = info.attributes.integer(dialect::kPackedN, -1); }
  Status shapes(const Tensor& a, const Tensor& b, Shapes& s) const { return Shapes::of(a, b, packed_columns_, s); }
  // The panels of each of its matrices.
  Status panels(const Tensor& b, const Shapes& s, const std::vector<IntegerPanels>*& of_each) const {
    return kept_.get(b, of_each, [&](std::vector<IntegerPanels>& out) -> Status {
      out.resize(static_cast<size_t>(element_count(s.b_batch)));
      if (packed_columns_ >= 0) out[0].take(b.data<int8_t>(), s.k, s.n);
      else
        for (size_t i = 0; i < out.size(); ++i) out[i].fill(b, static_cast<int64_t>(i) * s.k * s.n, s.k, s.n, s.n, 1);
      return {};
    });
  }

 private:
  int64_t packed_columns_ = -1;
  Derived<std::vector<IntegerPanels>> kept_;
};

// The inputs of a product of stacks besides A and B. Rows with factors of their own are multiplied one by one.
struct StackFactors {
  Factor a_scale, a_zero, b_scale, b_zero;
  bool scaled = false;  // by factor * a_scale * b_scale / divisor
  float factor = 1, divisor = 1;
  const int32_t* row_bias = nullptr;  // [m, n], or null
  bool rowwise() const { return !a_zero.one() || (scaled && !a_scale.one()) || row_bias; }
};

inline Status multiply_stacks(const Tensor& a, const Tensor& b, const Shapes& s, const StackFactors& f, IntegerEnd end,
                              const RightStack& of_b, Tensor& c) {
  const std::vector<IntegerPanels>* right;
  PY_ORT_TRY(of_b.panels(b, s, right));
  const bool one_tall = right->size() == 1 && !f.rowwise();
  const int64_t rows = one_tall ? s.m * element_count(s.batch) : f.rowwise() ? 1 : s.m;
  const int64_t size = end.form == I8End::bytes || end.form == I8End::signed_bytes ? 1 : 4;
  I8Gemm g;
  g.k = g.a_stride = static_cast<int32_t>(s.k), g.c_stride = static_cast<int32_t>(s.n);
  g.rows = static_cast<int32_t>(rows), g.flip = flip_to_unsigned(a.dtype);
  int64_t zeros_of = -1;  // the matrix whose zero points `end` has
  for (int64_t at = 0, all = s.m * element_count(s.batch); at < all; at += rows) {
    const int64_t i = at / s.m, row = at % s.m, at_a = one_tall ? 0 : s.matrix(s.a_batch, i),
                  at_b = one_tall ? 0 : s.matrix(s.b_batch, i);
    if (zeros_of != at_b) end.zeros(s.n, b.dtype, [&](int64_t j) { return f.b_zero.integer(at_b, j); });
    zeros_of = at_b;
    if (f.scaled)
      end.scales(s.n,
                 [&](int64_t j) { return f.factor * f.a_scale.at(at_a, row) * f.b_scale.at(at_b, j) / f.divisor; });
    if (f.row_bias) end.bias = f.row_bias + row * s.n;
    end.apply(g);
    g.b_zeros = end.b_zeros();
    g.a = a.data<uint8_t>() + (at_a * s.m + row) * s.k;
    g.a_zero = zero_of_unsigned(a.dtype, f.a_zero.integer(at_a, row));
    g.c = c.mutable_data<uint8_t>() + at * s.n * size;
    PY_ORT_TRY(multiply_integers(g, (*right)[static_cast<size_t>(at_b)]));
  }
  return {};
}

}  // namespace py_ort
