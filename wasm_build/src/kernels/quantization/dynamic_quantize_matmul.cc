// com.microsoft's DynamicQuantizeMatMul: A is quantized to uint8 by its own range, the product made of integers, the
// result is float.
#include <algorithm>
#include <cmath>

#include "kernels/quantization/integer_stacks.h"
#include "kernels/quantization/quantization.h"

namespace py_ort {
namespace {

class DynamicQuantizeMatMul {
 public:
  // Inputs: A, B, B's scale and zero point, a bias.
  Status operator()(KernelContext& context) const {
    const Tensor &a = *context.input(0), &b = *context.input(1), *bias = context.input(4);
    Shapes s;
    PY_ORT_TRY(Shapes::of(a, b, s));
    Tensor quantized;
    float scale;
    int32_t zero;
    PY_ORT_TRY(quantize(a, quantized, scale, zero));
    Tensor zero_point;
    PY_ORT_TRY(Tensor::make(DType::uint8, {1}, zero_point));
    *zero_point.mutable_data<uint8_t>() = static_cast<uint8_t>(zero);
    Factor a_zero, b_scale, b_zero;
    PY_ORT_TRY(Factor::read(&zero_point, s.m, 1, "A's zero point", a_zero));
    PY_ORT_TRY(Factor::read(context.input(2), s.n, element_count(s.b_batch), "b_scale", b_scale));
    PY_ORT_TRY(Factor::read(context.input(3), s.n, element_count(s.b_batch), "b_zero_point", b_zero));
    PY_ORT_ENSURE(!bias || bias->count() == s.n, "the bias of shape ", bias->dims, " should have ", s.n, " elements");
    Tensor* y;
    PY_ORT_TRY(context.output(0, DType::float32, s.dims, y));
    return multiply_stacks(quantized, b, s, a_zero, b_zero, panels_, KeptPanels::constant(context.input(3)),
                           [&](int64_t at, const int32_t* sums, int64_t, int64_t at_b) {
      float* to = y->mutable_data<float>() + at;
      for (int64_t i = 0; i < s.m; ++i)
        for (int64_t j = 0; j < s.n; ++j)
          *to++ = static_cast<float>(*sums++) * (scale * b_scale.at(at_b, j)) + (bias ? bias->data<float>()[j] : 0.0f);
    });
  }

 private:
  // As DynamicQuantizeLinear does.
  static Status quantize(const Tensor& a, Tensor& out, float& scale, int32_t& zero) {
    float low = 0, high = 0;
    for (float x : a.values<float>()) low = std::min(low, x), high = std::max(high, x);
    const DynamicRange range = DynamicRange::of(low, high);
    scale = range.scale, zero = static_cast<int32_t>(range.zero);
    PY_ORT_TRY(Tensor::make(DType::uint8, a.dims, out));
    for (int64_t i = 0; i < a.count(); ++i) store_quantized(out, i, a.data<float>()[i] / scale, zero);
    return {};
  }

  KeptPanels panels_;
};

PY_ORT_KERNEL(kMicrosoftDomain, "DynamicQuantizeMatMul", "float32;int8,uint8;float32;int8,uint8;float32",
              DynamicQuantizeMatMul);

}  // namespace
}  // namespace py_ort
