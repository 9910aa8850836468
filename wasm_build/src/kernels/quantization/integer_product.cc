#include "kernels/quantization/integer_product.h"

#include <algorithm>
#include <cmath>

#include "kernels/shared/lanes.h"

namespace py_ort {

int32_t integer_at(const Tensor& tensor, int64_t i) {
  return tensor.dtype == DType::uint8 ? tensor.data<uint8_t>()[i] : tensor.data<int8_t>()[i];
}

void IntegerPanels::clear(int64_t rows, int64_t columns) {
  n = static_cast<int32_t>(columns), k = static_cast<int32_t>(rows);
  data.assign(static_cast<size_t>((columns + 7) / 8 * ((rows + 3) / 4) * 32), 0);
  sums.assign(static_cast<size_t>(columns + 4), 0);
}

void IntegerPanels::fill(const Tensor& tensor, int64_t first, int64_t rows, int64_t columns, int64_t row_step,
                         int64_t column_step) {
  clear(rows, columns);
  put(0, tensor, first, columns, row_step, column_step);
}

void IntegerPanels::put(int64_t at, const Tensor& tensor, int64_t first, int64_t columns, int64_t row_step,
                        int64_t column_step) {
  const int64_t quads = (k + 3) / 4;
  const uint8_t* from = tensor.data<uint8_t>() + first;
  const uint8_t flip = flip_to_signed(tensor.dtype);
  for (int64_t j = 0; j < columns; j += 8) {
    int8_t* panel = data.data() + (at + j) / 8 * quads * 32;
    const int64_t width = std::min<int64_t>(8, columns - j);
    for (int64_t i = 0; i < k; ++i) {
      const uint8_t* row = from + i * row_step + j * column_step;
      int8_t* to = panel + i / 4 * 32 + i % 4;
      for (int64_t c = 0; c < width; ++c) {
        to[c * 4] = static_cast<int8_t>(row[c * column_step] ^ flip);
        sums[static_cast<size_t>(at + j + c)] += to[c * 4];
      }
    }
  }
}

Status multiply_integers(I8Gemm& g, const IntegerPanels& b) {
  g.n = b.n, g.b = b.data.data(), g.b_sums = b.sums.data();
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
