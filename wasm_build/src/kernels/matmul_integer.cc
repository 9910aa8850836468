// MatMulInteger and QLinearMatMul; com.microsoft's MatMulIntegerToFloat.
#include "integer_stacks.h"

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
                           [&](int64_t at, const int32_t* sums, int64_t, int64_t) { std::copy_n(sums, s.m * s.n, y->mutable_data<int32_t>() + at); });
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
    return multiply_stacks(
        a, b, s, a_zero, b_zero, panels_, KeptPanels::constant(context.input(5)), [&](int64_t at, const int32_t* sums, int64_t at_a, int64_t at_b) {
          for (int64_t i = 0; i < s.m; ++i)
            for (int64_t j = 0; j < s.n; ++j, ++at, ++sums)
              store_quantized(*y, at, static_cast<float>(*sums) * (a_scale.at(at_a, i) * b_scale.at(at_b, j) / y_scale[0]), y_zero.integer(0));
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
    return multiply_stacks(
        a, b, s, a_zero, b_zero, panels_, KeptPanels::constant(context.input(5)), [&](int64_t at, const int32_t* sums, int64_t at_a, int64_t at_b) {
          float* to = y->mutable_data<float>() + at;
          for (int64_t i = 0; i < s.m; ++i)
            for (int64_t j = 0; j < s.n; ++j)
              *to++ = static_cast<float>(*sums++) * a_scale.at(at_a, i) * b_scale.at(at_b, j) + (bias ? bias->data<float>()[j] : 0.0f);
        });
  }

 private:
  KeptPanels panels_;
};

PY_ORT_KERNEL("", "MatMulInteger", "int8,uint8", MatMulInteger);
PY_ORT_KERNEL("", "QLinearMatMul",
              "int8,uint8;float32,float16,bfloat16;int8,uint8;int8,uint8;float32,float16,bfloat16;int8,uint8;float32,float16,bfloat16;int8,uint8",
              QLinearMatMul);
PY_ORT_KERNEL(kMicrosoftDomain, "MatMulIntegerToFloat", "int8,uint8;int8,uint8;float32;float32;int8,uint8;int8,uint8;float32", MatMulIntegerToFloat);

}  // namespace
}  // namespace py_ort
