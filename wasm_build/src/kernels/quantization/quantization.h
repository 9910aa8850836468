// Scales and zero points: for a whole tensor, per axis, or per block of an axis.
#pragma once

#include "py_ort/kernel.h"
#include "kernels/quantization/dynamic_range.h"

namespace py_ort {

// Finds the scale of an element. The tensor is viewed as [outer, size, inner] around the axis.
struct Granularity {
  int64_t outer = 1, size = 1, inner = 1;
  int64_t blocks = 1;  // scales along the axis; 1 with one_scale: one for all
  int64_t block_size = 1;
  bool one_scale = true, blocked = false;

  static Status make(const Tensor& x, const Tensor& scale, const Tensor* zero_point, int64_t axis, int64_t block_size,
                     Granularity& out);
  // Calls f(first element, count, scale index, step of the scale index per element) for runs of elements.
  template <class F>
  void for_each_run(F f) const {
    if (one_scale) return f(0, outer * size * inner, 0, 0);
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t k = 0; k < size; ++k) {
        const int64_t at = (o * size + k) * inner;
        if (blocked) f(at, inner, (o * blocks + k / block_size) * inner, 1);
        else f(at, inner, k, 0);
      }
  }
};

bool quantized_range(DType dtype, IntegerRange& out);

// To uint8 or int8, by one scale.
void quantize(const float* x, int64_t count, float scale, float zero, bool is_signed, void* y);
// To uint8 by the numbers' own range.
DynamicRange quantize_dynamically(const float* x, int64_t count, uint8_t* y);

}  // namespace py_ort
