#include "kernels/quantization/integer_product.h"

#include <algorithm>
#include <cmath>

#include "kernels/shared/lanes.h"

namespace py_ort {

int32_t integer_at(const Tensor& tensor, int64_t i) {
  return tensor.dtype == DType::uint8 ? tensor.data<uint8_t>()[i] : tensor.data<int8_t>()[i];
}

Status multiply_integers(I8Gemm& g, const IntegerPanels& b) {
  b.apply(g);
  if (!run_microkernel(microkernels().i8_gemm, g))
    return out_of_memory("no memory for the scratch space of an integer product");
  return {};
}

Status PerAxis::read(const Tensor* tensor, int64_t size, std::string_view what, PerAxis& out) {
  if (!tensor) return {};
  PY_ORT_ENSURE(tensor->count() == 1 || tensor->count() == size, what, " of shape ", tensor->dims,
                " should have one element or ", size);
  Tensor wide;
  PY_ORT_TRY(cast(*tensor, DType::float32, wide));
  out.constant_ = tensor->storage->constant();
  const auto values = wide.values<float>();
  out.values_.assign(values.begin(), values.end());
  if (out.values_.empty()) out.values_ = {0.0f};
  return {};
}

void store_quantized(Tensor& to, int64_t at, float value, int32_t zero_point) {
  const float rounded = std::nearbyintf(value) + static_cast<float>(zero_point);
  if (to.dtype == DType::uint8)
    to.mutable_data<uint8_t>()[at] = static_cast<uint8_t>(std::clamp(rounded, 0.0f, 255.0f));
  else to.mutable_data<int8_t>()[at] = static_cast<int8_t>(std::clamp(rounded, -128.0f, 127.0f));
}

}  // namespace py_ort
