#include "integer_product.h"

#include <algorithm>
#include <cmath>

#include "lanes.h"

namespace py_ort {

int32_t integer_at(const Tensor& tensor, int64_t i) {
  return tensor.dtype == DType::uint8 ? tensor.data<uint8_t>()[i] : tensor.data<int8_t>()[i];
}

void IntegerRows::reset(int64_t row_count, int64_t k) {
  rows = static_cast<int32_t>(row_count), pairs = static_cast<int32_t>((k + 1) / 2);
  data.assign(static_cast<size_t>(row_count * 2 * pairs), 0);
}

Status multiply_integers(const IntegerRows& a, const IntegerPanels& b, int32_t* c) {
  I16Gemm g;
  g.rows = a.rows, g.n = b.n, g.pairs = a.pairs;
  g.a = a.data.data(), g.b = b.data.data(), g.c = c;
  if (!run_microkernel(microkernels().i16_gemm, g)) return out_of_memory("no memory for the scratch space of an integer product");
  return {};
}

Status PerAxis::read(const Tensor* tensor, int64_t size, std::string_view what, PerAxis& out) {
  if (!tensor) return {};
  PY_ORT_ENSURE(tensor->count() == 1 || tensor->count() == size, what, " of shape ", tensor->dims, " should have one element or ", size);
  Tensor wide;
  PY_ORT_TRY(cast(*tensor, DType::float32, wide));
  const auto values = wide.values<float>();
  out.values_.assign(values.begin(), values.end());
  if (out.values_.empty()) out.values_ = {0.0f};
  return {};
}

void store_quantized(Tensor& to, int64_t at, float value, int32_t zero_point) {
  const float rounded = std::nearbyintf(value) + static_cast<float>(zero_point);
  if (to.dtype == DType::uint8) to.mutable_data<uint8_t>()[at] = static_cast<uint8_t>(std::clamp(rounded, 0.0f, 255.0f));
  else to.mutable_data<int8_t>()[at] = static_cast<int8_t>(std::clamp(rounded, -128.0f, 127.0f));
}

}  // namespace py_ort
