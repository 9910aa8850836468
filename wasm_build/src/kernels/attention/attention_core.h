// softmax(scale Q K^T + bias) V for each head: the common end of all attention operators.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "py_ort/kernel.h"
#include "py_ort/microkernels.h"

namespace py_ort {

inline constexpr float kMasked = -std::numeric_limits<float>::infinity();

// From a tensor that broadcasts to [batch, heads, rows, columns], except for its last axis, which may be shorter; bool:
// false is masked. With `columns`, the last axis broadcasts to that number as well.
Status read_score_bias(const Tensor& mask, int64_t batch, int64_t heads, int64_t rows, ScoreBias& out, Tensor& keep,
                       std::optional<int64_t> columns = {});

// Includes the lists to which its arguments point.
struct AttentionProblem : F32Attention {
  std::vector<ScoreBias> biases;
  std::vector<int64_t> offsets, lengths;  // per batch, or empty
  std::vector<float> sinks;               // per head, or empty
};
Status attend(AttentionProblem& problem);

// [batch, rows, heads * columns] or a view of it -> [batch, heads, rows, columns], after `past` ([batch, heads, past
// rows, columns]) if there is one. With `used`, after that many rows of `past`, and of the same length as `past`.
Status concatenate_heads(const Tensor* past, const Heads& now, int64_t batch, int64_t heads, int64_t rows,
                         int64_t columns, Tensor& out, int64_t used = -1);

}  // namespace py_ort
