// softmax(scale Q K^T + bias) V for each head: what all the attention operators end in.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "py_ort/kernel.h"
#include "py_ort/microkernels.h"

namespace py_ort {

inline constexpr float kMasked = -std::numeric_limits<float>::infinity();

// From a tensor that broadcasts to [batch, heads, rows, columns] but for its last axis, which may be shorter; bool:
// false is masked. With `columns`, its last axis broadcasts to that many as well.
Status read_score_bias(const Tensor& mask, int64_t batch, int64_t heads, int64_t rows, ScoreBias& out, Tensor& keep,
                       std::optional<int64_t> columns = {});

// With the lists that its arguments point to.
struct AttentionProblem : F32Attention {
  std::vector<ScoreBias> biases;
  std::vector<int64_t> offsets, lengths;  // per batch, or empty
  std::vector<float> sinks;               // per head, or empty
};
Status attend(AttentionProblem& problem);

// [batch, rows, heads * columns] or a view of such -> [batch, heads, rows, columns], behind `past` ([batch, heads, past
// rows, columns]) if there is one; with `used` behind so many rows of it, and as long as it is.
Status concatenate_heads(const Tensor* past, const Heads& now, int64_t batch, int64_t heads, int64_t rows,
                         int64_t columns, Tensor& out, int64_t used = -1);

}  // namespace py_ort
