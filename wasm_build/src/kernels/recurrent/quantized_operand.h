// The right operands of DynamicQuantizeLSTM: bytes with scales and zero points, multiplied by rows that are quantized
// by their own range.
#pragma once

#include <vector>

#include "kernels/quantization/integer_product.h"
#include "kernels/quantization/quantization.h"

namespace py_ort {

// Bytes behind a left operand that micro-kernels may read.
inline constexpr size_t kPastEnd = 16;

class QuantizedOperand {
 public:
  // That of one direction: `scale` and `zero` are [directions], or [directions, columns]; `zero` may be null.
  static Status make(const IntegerPanels& panels, DType dtype, const Tensor& scale, const Tensor* zero,
                     int64_t direction, QuantizedOperand& out);
  // c[rows, columns] = A B + bias
  Status multiply(const uint8_t* a, const DynamicRange& range, int64_t rows, const float* bias, float* c) const;

 private:
  const IntegerPanels* panels_ = nullptr;
  std::vector<float> scales_;  // of each column
  IntegerEnd end_;
};

}  // namespace py_ort
