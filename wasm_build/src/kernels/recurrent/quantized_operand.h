// The right operands of DynamicQuantizeLSTM: bytes with scales and zero points, multiplied by rows quantized by their
// own range.
#pragma once

#include <vector>

#include "kernels/quantization/integer_product.h"
#include "kernels/quantization/quantization.h"

namespace py_ort {

// Bytes past a left operand that micro-kernels may read.
inline constexpr size_t kPastEnd = 16;

// Columns of the products with X and H: those of all gates of all directions, each gate padded to whole panels.
struct GateColumns {
  int64_t directions = 1, gates = 1, hidden = 0;
  int64_t width() const { return (hidden + F32Gemm::kColumns - 1) / F32Gemm::kColumns * F32Gemm::kColumns; }
  int64_t each() const { return gates * width(); }  // in a direction
  int64_t count() const { return directions * each(); }
  // Calls f(column, gate counted through all directions).
  template <class F>
  void for_each_gate(F f) const {
    for (int64_t i = 0; i < directions * gates; ++i) f(i * width(), i);
  }
};

// The operand of all directions.
class QuantizedOperand {
 public:
  // weights: [directions, k, gates * hidden]
  static void pack(const Tensor& weights, const GateColumns& columns, IntegerPanels& out);
  // `scale` and `zero` are [directions], or [directions, gates * hidden]; `zero` may be null.
  static Status make(const IntegerPanels& panels, const GateColumns& columns, DType dtype, const Tensor& scale,
                     const Tensor* zero, QuantizedOperand& out);
  // c[rows, columns] = A B + bias
  Status multiply(const uint8_t* a, const DynamicRange& range, int64_t rows, const float* bias, float* c) const;
  // The product with the columns from `first` on, without A, C and scales.
  I8Gemm from(int64_t first) const;
  const float* scales() const { return scales_.data(); }

 private:
  const IntegerPanels* panels_ = nullptr;
  std::vector<float> scales_;  // of each column
  IntegerEnd end_;
};

}  // namespace py_ort
