// The common part of RNN, GRU and LSTM: attributes, layouts, lengths, packed weights, the product with X. Their steps
// are a micro-kernel.
#pragma once

#include <array>
#include <vector>

#include "py_ort/recurrent_steps.h"
#include "kernels/shared/derived.h"
#include "kernels/matmul/activation.h"
#include "kernels/matmul/product.h"
#include "kernels/recurrent/quantized_operand.h"

namespace py_ort {

class RecurrentNet {
 public:
  // otherwise: the activations if no attribute names any.
  Status read(const KernelInfo& info, RecurrentSteps::Cell cell, std::vector<std::string> otherwise);
  Status run(KernelContext& context) const;
  // W and R are bytes, [directions, rows, gates * hidden], with scales and zero points in inputs 8 to 11.
  void quantize_weights() { quantized_weights_ = true; }

 private:
  struct Sizes { int64_t steps, batch, input; };
  // Y, Y_h, Y_c
  using Outputs = std::array<Tensor*, 3>;
  Status check(const KernelContext& context, const Sizes& s, const GateColumns& columns) const;
  // X's contribution to the gates, biases included: [steps * batch, columns], in X's order.
  Status multiply_x(KernelContext& context, const Sizes& s, const GateColumns& columns, int64_t longest,
                    Tensor& from_x) const;
  // B's two halves added, for all columns; the last gate's second half stays separate if a reset is between them.
  Status biases(const Tensor& bias, const GateColumns& columns, Tensor& out) const;
  Status run_steps(KernelContext& context, const Sizes& s, const GateColumns& columns,
                   const std::vector<int64_t>& lengths, const Tensor& from_x, const Outputs& outputs) const;

  RecurrentSteps form_;  // the values of attributes
  int64_t hidden_ = 0;
  std::vector<bool> reverse_;  // for each direction
  std::vector<Activation> activations_;
  bool batch_first_ = false;
  bool quantized_weights_ = false;
  Derived<Tensor> w_panels_, r_panels_;
  Derived<IntegerPanels> w_bytes_, r_bytes_;
};

}  // namespace py_ort
