// MatMulInteger and QLinearMatMul; com.microsoft's MatMulIntegerToFloat and QGemm.
#include "kernels/matmul/epilogue.h"
#include "kernels/quantization/integer_stacks.h"
#include "py_ort/kernel_features.h"

namespace py_ort {
namespace {

class MatMulInteger {
 public:
  explicit MatMulInteger(const KernelInfo& info) { right_.read(info); }
  Status operator()(KernelContext& context) const {
    const Tensor &a = *context.input(0), &b = *context.input(1);
    Shapes s;
    PY_ORT_TRY(right_.shapes(a, b, s));
    StackFactors f;
    PY_ORT_TRY(Factor::read(context.input(2), s.m, element_count(s.a_batch), "a_zero_point", f.a_zero));
    PY_ORT_TRY(Factor::read(context.input(3), s.n, element_count(s.b_batch), "b_zero_point", f.b_zero));
    Tensor* y;
    PY_ORT_TRY(context.output(0, DType::int32, s.dims, y));
    return multiply_stacks(a, b, s, f, {}, right_, *y);
  }

 private:
  RightStack right_;
};

// Inputs: a, its scale and zero point, b, its scale and zero point, the result's scale and zero point.
class QLinearMatMul {
 public:
  explicit QLinearMatMul(const KernelInfo& info) { right_.read(info); }
  Status operator()(KernelContext& context) const {
    const Tensor &a = *context.input(0), &b = *context.input(3);
    Shapes s;
    PY_ORT_TRY(right_.shapes(a, b, s));
    const int64_t a_count = element_count(s.a_batch), b_count = element_count(s.b_batch);
    StackFactors f;
    PY_ORT_TRY(Factor::read(context.input(1), s.m, a_count, "a_scale", f.a_scale));
    PY_ORT_TRY(Factor::read(context.input(2), s.m, a_count, "a_zero_point", f.a_zero));
    PY_ORT_TRY(Factor::read(context.input(4), s.n, b_count, "b_scale", f.b_scale));
    PY_ORT_TRY(Factor::read(context.input(5), s.n, b_count, "b_zero_point", f.b_zero));
    PerAxis y_scale, y_zero;
    PY_ORT_TRY(PerAxis::read(context.input(6), 1, "y_scale", y_scale));
    PY_ORT_TRY(PerAxis::read(context.input(7), 1, "y_zero_point", y_zero));
    Tensor* y;
    PY_ORT_TRY(context.output(0, context.input(7)->dtype, s.dims, y));
    IntegerEnd end;
    end.quantize(y->dtype, y_zero.integer(0));
    f.scaled = true, f.divisor = y_scale[0];
    return multiply_stacks(a, b, s, f, end, right_, *y);
  }

 private:
  RightStack right_;
};

// Inputs: a, b, their scales, their zero points, a bias.
class MatMulIntegerToFloat {
 public:
  static Status make(const KernelInfo& info, MatMulIntegerToFloat& out) {
    out.right_.read(info);
    return ProductEpilogue::read(info, out.epilogue_);
  }
  Status operator()(KernelContext& context) const {
    const Tensor &a = *context.input(0), &b = *context.input(1), *bias = context.input(6);
    Shapes s;
    PY_ORT_TRY(right_.shapes(a, b, s));
    const int64_t a_count = element_count(s.a_batch), b_count = element_count(s.b_batch);
    StackFactors f;
    PY_ORT_TRY(Factor::read(context.input(2), s.m, a_count, "a_scale", f.a_scale));
    PY_ORT_TRY(Factor::read(context.input(3), s.n, b_count, "b_scale", f.b_scale));
    PY_ORT_TRY(Factor::read(context.input(4), s.m, a_count, "a_zero_point", f.a_zero));
    PY_ORT_TRY(Factor::read(context.input(5), s.n, b_count, "b_zero_point", f.b_zero));
    PY_ORT_ENSURE(!bias || bias->count() == s.n, "the bias of shape ", bias->dims, " should have ", s.n, " elements");
    Tensor* y;
    PY_ORT_TRY(context.output(0, DType::float32, s.dims, y));
    IntegerEnd end;
    end.form = I8End::floats;
    end.float_bias = bias ? bias->data<float>() : nullptr;
    end.epilogue = epilogue_.form();
    f.scaled = true;
    return multiply_stacks(a, b, s, f, end, right_, *y);
  }

 private:
  ProductEpilogue epilogue_;
  RightStack right_;
};

// Inputs: a, its scale and zero point, b, its scale and zero point, an int32 c, the result's scale, by which it is
// divided, and zero point (without them it stays float). Its transposes are separate nodes by now.
class QGemm {
 public:
  explicit QGemm(const KernelInfo& info) : alpha_(info.attributes.number("alpha", 1.0f)) { right_.read(info); }
  Status operator()(KernelContext& context) const {
    const Tensor &a = *context.input(0), &b = *context.input(3), *c = context.input(6),
                 *y_scale_given = context.input(7);
    Shapes s;
    PY_ORT_TRY(right_.shapes(a, b, s));
    PY_ORT_ENSURE(a.rank() == 2 && s.dims.size() == 2, "QGemm multiplies matrices, not ", a.dims, " by ", b.dims);
    StackFactors f;
    PerAxis y_scale, y_zero;
    PY_ORT_TRY(Factor::read(context.input(1), 1, 1, "a_scale", f.a_scale));
    PY_ORT_TRY(Factor::read(context.input(2), 1, 1, "a_zero_point", f.a_zero));
    PY_ORT_TRY(Factor::read(context.input(4), s.n, 1, "b_scale", f.b_scale));
    PY_ORT_TRY(Factor::read(context.input(5), s.n, 1, "b_zero_point", f.b_zero));
    PY_ORT_TRY(PerAxis::read(y_scale_given, 1, "y_scale", y_scale));
    PY_ORT_TRY(PerAxis::read(context.input(8), 1, "y_zero_point", y_zero));
    IntegerEnd end;
    const bool one_row = c && c->rank() > 0 && c->count() == s.n && c->dims.back() == s.n;
    if (one_row) end.bias = c->data<int32_t>();
    Tensor plus;  // [m, n]
    if (c && !one_row) {
      Broadcast broadcast;
      PY_ORT_TRY(Broadcast::make({&c->dims, &s.dims}, broadcast));
      PY_ORT_ENSURE(broadcast.dims == s.dims, "C of shape ", c->dims, " does not broadcast to ", s.dims);
      PY_ORT_TRY(Tensor::make(DType::int32, s.dims, plus));
      broadcast.for_each_row([&](const Broadcast::Offsets& offsets, int64_t at) {
        for (int64_t i = 0; i < broadcast.inner; ++i)
          plus.mutable_data<int32_t>()[at + i] = c->data<int32_t>()[offsets[0] + i * broadcast.steps[0]];
      });
    }
    const Tensor* y_zero_given = context.input(8);
    Tensor* y;
    PY_ORT_TRY(context.output(0, y_zero_given ? y_zero_given->dtype : DType::float32, s.dims, y));
    if (y_zero_given) end.quantize(y->dtype, y_zero.integer(0));
    else end.form = I8End::floats;
    f.scaled = true, f.factor = alpha_;
    if (y_scale_given) f.divisor = y_scale[0];
    if (c && !one_row) f.row_bias = plus.data<int32_t>();
    return multiply_stacks(a, b, s, f, end, right_, *y);
  }

 private:
  float alpha_;
  RightStack right_;
};

PY_ORT_KERNEL("", "MatMulInteger", "int8,uint8", MatMulInteger);
PY_ORT_KERNEL("", "QLinearMatMul",
              "int8,uint8;float32,float16,bfloat16;int8,uint8;int8,uint8;float32,float16,bfloat16;int8,uint8;float32,"
              "float16,bfloat16;int8,uint8",
              QLinearMatMul);
PY_ORT_KERNEL(kMicrosoftDomain, "MatMulIntegerToFloat",
              "int8,uint8;int8,uint8;float32;float32;int8,uint8;int8,uint8;float32", MatMulIntegerToFloat);
PY_ORT_FEATURES(kMicrosoftDomain, "MatMulIntegerToFloat", "epilogue");
PY_ORT_KERNEL(kMicrosoftDomain, "QGemm",
              "int8,uint8;float32;int8,uint8;int8,uint8;float32;int8,uint8;int32;float32;int8,uint8", QGemm);

}  // namespace
}  // namespace py_ort
