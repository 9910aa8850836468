// MatMulInteger and QLinearMatMul; com.microsoft's MatMulIntegerToFloat and QGemm.
#include "kernels/quantization/integer_stacks.h"

namespace py_ort {
namespace {

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
    return multiply_stacks(a, b, s, a_zero, b_zero, panels_, KeptPanels::constant(context.input(3)),
                           [&](int64_t at, const int32_t* sums, int64_t, int64_t) {
      std::copy_n(sums, s.m * s.n, y->mutable_data<int32_t>() + at);
    });
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
    return multiply_stacks(a, b, s, a_zero, b_zero, panels_, KeptPanels::constant(context.input(5)),
                           [&](int64_t at, const int32_t* sums, int64_t at_a, int64_t at_b) {
      for (int64_t i = 0; i < s.m; ++i)
        for (int64_t j = 0; j < s.n; ++j, ++at, ++sums)
          store_quantized(*y, at, static_cast<float>(*sums) * (a_scale.at(at_a, i) * b_scale.at(at_b, j) / y_scale[0]),
                          y_zero.integer(0));
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
    return multiply_stacks(a, b, s, a_zero, b_zero, panels_, KeptPanels::constant(context.input(5)),
                           [&](int64_t at, const int32_t* sums, int64_t at_a, int64_t at_b) {
      float* to = y->mutable_data<float>() + at;
      for (int64_t i = 0; i < s.m; ++i)
        for (int64_t j = 0; j < s.n; ++j)
          *to++ = static_cast<float>(*sums++) * a_scale.at(at_a, i) * b_scale.at(at_b, j) +
                  (bias ? bias->data<float>()[j] : 0.0f);
    });
  }

 private:
  KeptPanels panels_;
};

// Inputs: a, its scale and zero point, b, its scale and zero point, an int32 c, the result's scale and zero point
// (without them it is float). Its transposes are nodes of their own by now.
class QGemm {
 public:
  explicit QGemm(const KernelInfo& info) : alpha_(info.attributes.number("alpha", 1.0f)) {}
  Status operator()(KernelContext& context) const {
    const Tensor &a = *context.input(0), &b = *context.input(3), *c = context.input(6),
                 *y_scale_given = context.input(7);
    PY_ORT_ENSURE(a.rank() == 2 && b.rank() == 2, "QGemm multiplies matrices, not ", a.dims, " by ", b.dims);
    Shapes s;
    PY_ORT_TRY(Shapes::of(a, b, s));
    Factor a_zero, b_zero;
    PerAxis a_scale, b_scale, y_scale, y_zero;
    PY_ORT_TRY(PerAxis::read(context.input(1), 1, "a_scale", a_scale));
    PY_ORT_TRY(Factor::read(context.input(2), 1, 1, "a_zero_point", a_zero));
    PY_ORT_TRY(PerAxis::read(context.input(4), s.n, "b_scale", b_scale));
    PY_ORT_TRY(Factor::read(context.input(5), s.n, 1, "b_zero_point", b_zero));
    PY_ORT_TRY(PerAxis::read(y_scale_given, 1, "y_scale", y_scale));
    PY_ORT_TRY(PerAxis::read(context.input(8), 1, "y_zero_point", y_zero));
    Tensor plus;  // [m, n]
    if (c) {
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
    PY_ORT_TRY(
        context.output(0, y_scale_given ? (y_zero_given ? y_zero_given->dtype : a.dtype) : DType::float32, s.dims, y));
    return multiply_stacks(a, b, s, a_zero, b_zero, panels_, KeptPanels::constant(context.input(5)),
                           [&](int64_t, const int32_t* sums, int64_t, int64_t) {
      for (int64_t at = 0; at < s.m * s.n; ++at) {
        const float sum = static_cast<float>(sums[at] + (c ? plus.data<int32_t>()[at] : 0));
        const float scale = alpha_ * a_scale[0] * b_scale[at % s.n];
        if (y_scale_given) store_quantized(*y, at, sum * (scale / y_scale[0]), y_zero.integer(0));
        else y->mutable_data<float>()[at] = sum * scale;
      }
    });
  }

 private:
  float alpha_;
  KeptPanels panels_;
};

PY_ORT_KERNEL("", "MatMulInteger", "int8,uint8", MatMulInteger);
PY_ORT_KERNEL("", "QLinearMatMul",
              "int8,uint8;float32,float16,bfloat16;int8,uint8;int8,uint8;float32,float16,bfloat16;int8,uint8;float32,"
              "float16,bfloat16;int8,uint8",
              QLinearMatMul);
PY_ORT_KERNEL(kMicrosoftDomain, "MatMulIntegerToFloat",
              "int8,uint8;int8,uint8;float32;float32;int8,uint8;int8,uint8;float32", MatMulIntegerToFloat);
PY_ORT_KERNEL(kMicrosoftDomain, "QGemm",
              "int8,uint8;float32;int8,uint8;int8,uint8;float32;int8,uint8;int32;float32;int8,uint8", QGemm);

}  // namespace
}  // namespace py_ort
