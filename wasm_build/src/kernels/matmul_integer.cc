// MatMulInteger and QLinearMatMul; com.microsoft's MatMulIntegerToFloat.
#include "broadcast.h"
#include "derived.h"
#include "integer_product.h"
#include "lanes.h"
#include "strided.h"

namespace py_ort {
namespace {

// The shapes of a product of stacks of matrices.
struct Shapes {
  int64_t m = 1, k = 1, n = 1;
  Dims batch, a_batch, b_batch, dims;

  static Status of(const Tensor& a, const Tensor& b, Shapes& s) {
    PY_ORT_ENSURE(a.rank() > 0 && b.rank() > 0, "an integer product does not take scalars: ", a.dims, " times ", b.dims);
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

// A scale or zero point: one number, one a row (or column), or one for each row of each matrix.
struct Factor {
  PerAxis values;
  int64_t per_matrix = 0;  // 0: the same for all matrices
  static Status read(const Tensor* tensor, int64_t lines, int64_t matrices, std::string_view what, Factor& out) {
    const bool all = tensor && tensor->count() == lines * matrices && tensor->count() != lines;
    out.per_matrix = all ? lines : 0;
    return PerAxis::read(tensor, all ? lines * matrices : lines, what, out.values);
  }
  float at(int64_t matrix, int64_t line) const { return values[matrix * per_matrix + line]; }
  int32_t integer(int64_t matrix, int64_t line) const { return static_cast<int32_t>(at(matrix, line)); }
};

using KeptPanels = Derived<std::vector<IntegerPanels>>;

// Calls finish(first element of the result, its sums [m, n], matrix of a, matrix of b) for each matrix of the result.
// keep: whether b's zero points are constant.
template <class Finish>
Status multiply_stacks(const Tensor& a, const Tensor& b, const Shapes& s, const Factor& a_zero, const Factor& b_zero, const KeptPanels& kept, bool keep, Finish finish) {
  std::vector<int32_t> sums(static_cast<size_t>(s.m * s.n));
  IntegerRows left;
  const std::vector<IntegerPanels>* right;  // of each matrix of b
  PY_ORT_TRY(kept.get(b, right, [&](std::vector<IntegerPanels>& out) -> Status {
    std::vector<int16_t> zeros(static_cast<size_t>(s.n));
    out.resize(static_cast<size_t>(element_count(s.b_batch)));
    for (size_t i = 0; i < out.size(); ++i) {
      const auto matrix = static_cast<int64_t>(i);
      for (int64_t column = 0; column < s.n; ++column) zeros[static_cast<size_t>(column)] = static_cast<int16_t>(b_zero.integer(matrix, column));
      out[i].fill(b, matrix * s.k * s.n, s.k, s.n, zeros);
    }
    return {};
  }, keep));
  for (int64_t i = 0; i < element_count(s.batch); ++i) {
    const int64_t at_a = s.matrix(s.a_batch, i), at_b = s.matrix(s.b_batch, i);
    left.reset(s.m, s.k);
    for (int64_t row = 0; row < s.m; ++row) subtract_zero(a, (at_a * s.m + row) * s.k, s.k, a_zero.integer(at_a, row), left.row(row));
    PY_ORT_TRY(multiply_integers(left, (*right)[static_cast<size_t>(at_b)], sums.data()));
    finish(i * s.m * s.n, sums.data(), at_a, at_b);
  }
  return {};
}

class MatMulInteger {
 public:
  Status operator()(KernelContext& context) const {
    const Tensor &a = *context.input(0), &b = *context.input(1);
    Shapes s;
    PY_ORT_TRY(Shapes::of(a, b, s));
    Factor a_zero, b_zero;
    PY_ORT_TRY(Factor::read(context.input(2), s.m, element_count(s.a_batch), "a_zero_point", a_zero));
    PY_ORT_TRY(Factor::read(context.input(3), s.n, element_count(s.b_batch), "b_zero_point", b_zero));
    Tensor* y;
    PY_ORT_TRY(context.output(0, DType::int32, s.dims, y));
    return multiply_stacks(a, b, s, a_zero, b_zero, panels_, KeptPanels::constant(context.input(3)), [&](int64_t at, const int32_t* sums, int64_t, int64_t) { std::copy_n(sums, s.m * s.n, y->mutable_data<int32_t>() + at); });
  }

 private:
  KeptPanels panels_;
};

// Inputs: a, its scale and zero point, b, its scale and zero point, the result's scale and zero point.
class QLinearMatMul {
 public:
  Status operator()(KernelContext& context) const {
    const Tensor &a = *context.input(0), &b = *context.input(3);
    Shapes s;
    PY_ORT_TRY(Shapes::of(a, b, s));
    const int64_t a_count = element_count(s.a_batch), b_count = element_count(s.b_batch);
    Factor a_scale, a_zero, b_scale, b_zero;
    PY_ORT_TRY(Factor::read(context.input(1), s.m, a_count, "a_scale", a_scale));
    PY_ORT_TRY(Factor::read(context.input(2), s.m, a_count, "a_zero_point", a_zero));
    PY_ORT_TRY(Factor::read(context.input(4), s.n, b_count, "b_scale", b_scale));
    PY_ORT_TRY(Factor::read(context.input(5), s.n, b_count, "b_zero_point", b_zero));
    PerAxis y_scale, y_zero;
    PY_ORT_TRY(PerAxis::read(context.input(6), 1, "y_scale", y_scale));
    PY_ORT_TRY(PerAxis::read(context.input(7), 1, "y_zero_point", y_zero));
    Tensor* y;
    PY_ORT_TRY(context.output(0, context.input(7)->dtype, s.dims, y));
    return multiply_stacks(a, b, s, a_zero, b_zero, panels_, KeptPanels::constant(context.input(5)), [&](int64_t at, const int32_t* sums, int64_t at_a, int64_t at_b) {
      for (int64_t i = 0; i < s.m; ++i)
        for (int64_t j = 0; j < s.n; ++j, ++at, ++sums) store_quantized(*y, at, static_cast<float>(*sums) * (a_scale.at(at_a, i) * b_scale.at(at_b, j) / y_scale[0]), y_zero.integer(0));
    });
  }

 private:
  KeptPanels panels_;
};

// Inputs: a, b, their scales, their zero points, a bias.
class MatMulIntegerToFloat {
 public:
  Status operator()(KernelContext& context) const {
    const Tensor &a = *context.input(0), &b = *context.input(1), *bias = context.input(6);
    Shapes s;
    PY_ORT_TRY(Shapes::of(a, b, s));
    const int64_t a_count = element_count(s.a_batch), b_count = element_count(s.b_batch);
    Factor a_scale, a_zero, b_scale, b_zero;
    PY_ORT_TRY(Factor::read(context.input(2), s.m, a_count, "a_scale", a_scale));
    PY_ORT_TRY(Factor::read(context.input(3), s.n, b_count, "b_scale", b_scale));
    PY_ORT_TRY(Factor::read(context.input(4), s.m, a_count, "a_zero_point", a_zero));
    PY_ORT_TRY(Factor::read(context.input(5), s.n, b_count, "b_zero_point", b_zero));
    PY_ORT_ENSURE(!bias || bias->count() == s.n, "the bias of shape ", bias->dims, " should have ", s.n, " elements");
    Tensor* y;
    PY_ORT_TRY(context.output(0, DType::float32, s.dims, y));
    return multiply_stacks(a, b, s, a_zero, b_zero, panels_, KeptPanels::constant(context.input(5)), [&](int64_t at, const int32_t* sums, int64_t at_a, int64_t at_b) {
      float* to = y->mutable_data<float>() + at;
      for (int64_t i = 0; i < s.m; ++i)
        for (int64_t j = 0; j < s.n; ++j) *to++ = static_cast<float>(*sums++) * a_scale.at(at_a, i) * b_scale.at(at_b, j) + (bias ? bias->data<float>()[j] : 0.0f);
    });
  }

 private:
  KeptPanels panels_;
};

PY_ORT_KERNEL("", "MatMulInteger", "int8,uint8", MatMulInteger);
PY_ORT_KERNEL("", "QLinearMatMul", "int8,uint8;float32,float16,bfloat16;int8,uint8;int8,uint8;float32,float16,bfloat16;int8,uint8;float32,float16,bfloat16;int8,uint8", QLinearMatMul);
PY_ORT_KERNEL(kMicrosoftDomain, "MatMulIntegerToFloat", "int8,uint8;int8,uint8;float32;float32;int8,uint8;int8,uint8;float32", MatMulIntegerToFloat);

}  // namespace
}  // namespace py_ort
