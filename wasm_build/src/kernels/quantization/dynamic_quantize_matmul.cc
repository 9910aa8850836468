// com.microsoft's DynamicQuantizeMatMul: A is quantized to uint8 by its own range, and multiplied as integers; the
// result is float.
#include "kernels/quantization/integer_stacks.h"
#include "kernels/quantization/quantization.h"

namespace py_ort {
namespace {

class DynamicQuantizeMatMul {
 public:
  explicit DynamicQuantizeMatMul(const KernelInfo& info) { right_.read(info); }
  // Inputs: A, B, B's scale and zero point, a bias.
  Status operator()(KernelContext& context) const {
    const Tensor &a = *context.input(0), &b = *context.input(1), *bias = context.input(4);
    Shapes s;
    PY_ORT_TRY(right_.shapes(a, b, s));
    Tensor quantized;
    PY_ORT_TRY(Tensor::make(DType::uint8, a.dims, quantized));
    const auto [scale, zero] = quantize_dynamically(a.data<float>(), a.count(), quantized.mutable_data<uint8_t>());
    Tensor scale_of_a, zero_of_a;
    PY_ORT_TRY(Tensor::make(DType::float32, {1}, scale_of_a));
    PY_ORT_TRY(Tensor::make(DType::uint8, {1}, zero_of_a));
    *scale_of_a.mutable_data<float>() = scale;
    *zero_of_a.mutable_data<uint8_t>() = static_cast<uint8_t>(zero);
    StackFactors f;
    PY_ORT_TRY(Factor::read(&scale_of_a, s.m, 1, "A's scale", f.a_scale));
    PY_ORT_TRY(Factor::read(&zero_of_a, s.m, 1, "A's zero point", f.a_zero));
    PY_ORT_TRY(Factor::read(context.input(2), s.n, element_count(s.b_batch), "b_scale", f.b_scale));
    PY_ORT_TRY(Factor::read(context.input(3), s.n, element_count(s.b_batch), "b_zero_point", f.b_zero));
    PY_ORT_ENSURE(!bias || bias->count() == s.n, "the bias of shape ", bias->dims, " should have ", s.n, " elements");
    Tensor* y;
    PY_ORT_TRY(context.output(0, DType::float32, s.dims, y));
    IntegerEnd end;
    end.form = I8End::floats;
    end.float_bias = bias ? bias->data<float>() : nullptr;
    f.scaled = true;
    return multiply_stacks(quantized, b, s, f, end, right_, *y);
  }

 private:
  RightStack right_;
};

PY_ORT_KERNEL(kMicrosoftDomain, "DynamicQuantizeMatMul", "float32;int8,uint8;float32;int8,uint8;float32",
              DynamicQuantizeMatMul);

}  // namespace
}  // namespace py_ort
