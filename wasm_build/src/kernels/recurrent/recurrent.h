// What RNN, GRU and LSTM share: directions, layouts, lengths, the product with X, and activations. A Cell does one
// step.
#pragma once

#include <vector>

#include "kernels/shared/derived.h"
#include "kernels/matmul/activation.h"
#include "kernels/matmul/product.h"
#include "kernels/recurrent/quantized_operand.h"

namespace py_ort {

// The weights of one direction. `gates`: 1 for RNN, 3 for GRU, 4 for LSTM.
struct RecurrentWeights {
  int64_t gates = 1, hidden = 0;
  const Tensor* r = nullptr;                      // the right operands of H R^T, one for each of RecurrentNet's splits
  const QuantizedOperand* quantized_r = nullptr;  // DynamicQuantizeLSTM: the one of H R
  const float* bias_r = nullptr;                  // [gates * hidden], or null
  const float* peepholes = nullptr;               // LSTM: [3 * hidden], or null
};

// gates[b, column + j] += H[b] R^T[j] for j in [0, columns)
Status add_recurrent(const float* h, const Tensor& panels, int64_t batch, int64_t hidden, int64_t columns, float* gates,
                     int64_t stride);

// What [batch, hidden] states are once quantized to uint8 by their own range; rows that are not active count as zeros.
void quantize_states(const float* h, const std::vector<bool>& active, int64_t hidden, float* out);

// x = activation(clip(x))
void activate_row(const Activation& activation, float clip, float* x, int64_t count);

// One direction of one run.
class Cell {
 public:
  virtual ~Cell() = default;
  // One step. gates: [batch, gates * hidden], what X (and its bias) contributes; overwritten. h, c: [batch, hidden];
  // rows that are not active stay.
  virtual Status step(float* gates, const std::vector<bool>& active, float* h, float* c) = 0;
};

class RecurrentNet {
 public:
  static constexpr int64_t kForward = 0, kReverse = 1;
  // splits: how many gates each product with H is for; otherwise: the activations, unless attributes name others.
  Status read(const KernelInfo& info, std::vector<int64_t> splits, std::vector<std::string> otherwise);

  using MakeCell = std::unique_ptr<Cell> (*)(const RecurrentNet& net, const RecurrentWeights& weights,
                                             int64_t direction, int64_t batch);
  Status run(KernelContext& context, MakeCell make_cell) const;
  // W and R are bytes, [directions, rows, gates * hidden], with scales and zero points in inputs 8 to 11.
  void quantize_weights() { quantized_weights_ = true; }

  const Activation& activation(int64_t direction, size_t i) const {
    return activations_[static_cast<size_t>(direction) * per_direction_ + i];
  }
  float clip() const { return clip_; }
  bool input_forget() const { return input_forget_; }
  bool linear_before_reset() const { return linear_before_reset_; }
  // Of LSTM: whether products see the old state as quantized.
  bool quantized_state() const { return quantized_state_; }

 private:
  struct Sizes { int64_t steps, batch, input, hidden, directions; };
  // from_x: [steps, batch, gates * hidden], in X's order
  Status run_direction(const RecurrentWeights& weights, const Tensor& from_x, const Sizes& s, int64_t direction,
                       const std::vector<int64_t>& lengths, Cell& cell, float* y, float* h, float* c) const;

  int64_t gates_ = 1, hidden_ = 0;
  std::vector<int64_t> splits_;
  std::vector<int64_t> directions_;  // kForward, kReverse or both
  std::vector<Activation> activations_;
  size_t per_direction_ = 1;
  float clip_ = 0;
  bool batch_first_ = false, input_forget_ = false, linear_before_reset_ = false, quantized_state_ = false;
  bool quantized_weights_ = false;
  Derived<std::vector<Tensor>> w_panels_, r_panels_;       // per direction; per direction and split
  Derived<std::vector<IntegerPanels>> w_bytes_, r_bytes_;  // per direction
};

}  // namespace py_ort
