#include "kernels/quantization/integer_product.h"

#include <algorithm>
#include <cmath>

#include <wasm_simd128.h>

#include "kernels/shared/lanes.h"

namespace py_ort {

int32_t integer_at(const Tensor& tensor, int64_t i) {
  return tensor.dtype == DType::uint8 ? tensor.data<uint8_t>()[i] : tensor.data<int8_t>()[i];
}

void IntegerRows::reset(int64_t row_count, int64_t k) {
  rows = static_cast<int32_t>(row_count), pairs = static_cast<int32_t>((k + 1) / 2);
  data.assign(static_cast<size_t>(row_count * 2 * pairs), 0);
}

namespace {
template <class T>
v128_t eight(const T* from) {
  const v128_t bytes = wasm_v128_load64_zero(from);
  return std::is_signed_v<T> ? wasm_i16x8_extend_low_i8x16(bytes) : wasm_u16x8_extend_low_u8x16(bytes);
}

template <class T>
void fill_panels(IntegerPanels& panels, const T* from, int64_t k, int64_t columns, const int16_t* zeros) {
  int16_t* to = panels.data.data();
  for (int64_t j = 0; j + 8 <= columns; j += 8) {
    const v128_t zero = wasm_v128_load(zeros + j);
    for (int64_t i = 0; i < k; i += 2, to += 16) {
      const T* row = from + i * columns + j;
      const v128_t even = wasm_i16x8_sub(eight(row), zero),
                   odd = i + 1 < k ? wasm_i16x8_sub(eight(row + columns), zero) : wasm_i16x8_splat(0);
      wasm_v128_store(to, wasm_i16x8_shuffle(even, odd, 0, 8, 1, 9, 2, 10, 3, 11));
      wasm_v128_store(to + 8, wasm_i16x8_shuffle(even, odd, 4, 12, 5, 13, 6, 14, 7, 15));
    }
  }
  for (int64_t j = columns / 8 * 8; j < columns; ++j)
    for (int64_t i = 0; i < k; ++i)
      to[i / 2 * 16 + j % 8 * 2 + i % 2] = static_cast<int16_t>(from[i * columns + j] - zeros[j]);
}
}  // namespace

void subtract_zero(const Tensor& tensor, int64_t first, int64_t count, int32_t zero, int16_t* to) {
  const auto run = [&](const auto* from) {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<int16_t>(from[i] - zero);
  };
  if (tensor.dtype == DType::uint8) run(tensor.data<uint8_t>() + first);
  else run(tensor.data<int8_t>() + first);
}

void IntegerPanels::fill(const Tensor& tensor, int64_t first, int64_t k, int64_t columns,
                         const std::vector<int16_t>& zeros) {
  n = static_cast<int32_t>(columns), pairs = static_cast<int32_t>((k + 1) / 2);
  data.assign(static_cast<size_t>((columns + 7) / 8 * 8 * 2 * pairs), 0);
  if (tensor.dtype == DType::uint8) fill_panels(*this, tensor.data<uint8_t>() + first, k, columns, zeros.data());
  else fill_panels(*this, tensor.data<int8_t>() + first, k, columns, zeros.data());
}

Status multiply_integers(const IntegerRows& a, const IntegerPanels& b, int32_t* c) {
  I16Gemm g;
  g.rows = a.rows, g.n = b.n, g.pairs = a.pairs;
  g.a = a.data.data(), g.b = b.data.data(), g.c = c;
  if (!run_microkernel(microkernels().i16_gemm, g))
    return out_of_memory("no memory for the scratch space of an integer product");
  return {};
}

Status PerAxis::read(const Tensor* tensor, int64_t size, std::string_view what, PerAxis& out) {
  if (!tensor) return {};
  PY_ORT_ENSURE(tensor->count() == 1 || tensor->count() == size, what, " of shape ", tensor->dims,
                " should have one element or ", size);
  Tensor wide;
  PY_ORT_TRY(cast(*tensor, DType::float32, wide));
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
