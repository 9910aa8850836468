// The steps of RNN, GRU and LSTM, as a micro-kernel: plain data, like microkernels.h.
#pragma once

#include "py_ort/integer_products.h"

namespace py_ort {

// Computes h and c of each step from those of the step before and from X's contribution. Rows of gates and states have
// `width` columns per gate, `hidden` rounded up to whole panels: R, biases and states are zero from column `hidden` on.
//
// Units: `pieces` of the columns of each direction. With one piece a call does all steps; with more, one phase of one
// step, because each piece needs all states of the step before.
struct RecurrentSteps {
  enum Cell : int32_t { rnn, gru, lstm };
  struct Direction {
    bool reverse = false;
    Activation f, g, h;                // RNN's is f
    const float* r = nullptr;          // panels [gates, width / 8, hidden, 8]
    const float* r_bias = nullptr;     // GRU with linear_before_reset: [width], of the hidden gate's product; or null
    const I8Gemm* integers = nullptr;  // LSTM: R in bytes, all gates side by side; or null
    const float* r_scales = nullptr;   // of its columns, [gates, width]
    const float* peepholes = nullptr;  // LSTM: [3, width], or null
    const float* from_x = nullptr;     // [rows of X, gates, width], `x_stride` apart, biases included
    float *gates = nullptr, *product = nullptr;  // [batch, gates, width], [batch, width] (GRU)
    float *h_states = nullptr, *c = nullptr;     // [2, batch, width]: step s reads the half s % 2; [batch, width]
    float* y = nullptr;                          // step t and sequence b are at t * y_step + b * y_batch
  };

  Cell cell = rnn;
  int32_t steps = 0, batch = 0, hidden = 0, width = 0, directions = 0;
  const Direction* direction = nullptr;
  const int64_t* lengths = nullptr;  // [batch]; `steps` is the longest
  bool linear_before_reset = false, input_forget = false;
  bool rounded_states = false;                      // LSTM: products read the states as quantized by their own range
  float clip = 0;                                   // 0: none
  ptrdiff_t x_stride = 0, x_step = 0, x_batch = 0;  // step t and sequence b are row t * x_step + b * x_batch
  ptrdiff_t y_step = 0, y_batch = 0;
  int32_t pieces = 1;
  int32_t step = 0, phase = 0;  // with several pieces

  // A piece needs this many columns to fill a row's tile of F32Gemm.
  static constexpr int32_t kLeastColumns = 32;
  int32_t gates() const { return cell == rnn ? 1 : cell == gru ? 3 : 4; }
  // GRU's third gate needs all of the second one, unless the reset follows its product.
  int32_t phases() const { return cell == gru && !linear_before_reset ? 2 : 1; }
  // If the reset follows the third gate's product, it follows that product's bias, too.
  bool bias_behind_reset() const { return cell == gru && linear_before_reset; }
  int32_t units() const { return directions * pieces; }
  bool quantizes() const { return direction->integers || rounded_states; }
  // Scratch space: the product's own; for quantized states the dense states and their bytes; sums and scales of a
  // piece.
  size_t product_bytes() const {
    const size_t integers = direction->integers ? (direction->integers->scratch_bytes() + 15) / 16 * 16 : 0;
    return integers > F32Gemm::kScratch ? integers : F32Gemm::kScratch;
  }
  size_t state_bytes() const { return (static_cast<size_t>(batch) * hidden / 16 + 2) * 16; }
  size_t states_bytes() const { return state_bytes() * sizeof(float); }
  size_t sums_bytes() const { return (static_cast<size_t>(batch) + 1) * width * sizeof(float); }
  size_t scratch_bytes() const {
    return product_bytes() + (quantizes() ? states_bytes() + state_bytes() + sums_bytes() : 0);
  }
};

}  // namespace py_ort
