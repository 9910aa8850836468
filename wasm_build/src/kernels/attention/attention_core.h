// softmax(scale Q K^T + bias) V for each head: what all the attention operators end in.
#pragma once

#include <limits>
#include <vector>

#include "py_ort/kernel.h"
#include "py_ort/microkernels.h"

namespace py_ort {

inline constexpr float kMasked = -std::numeric_limits<float>::infinity();

// Matrices [rows, columns] of every batch and head inside of a tensor; columns lie next to each other.
struct Heads {
  const float* data = nullptr;
  int64_t batch_step = 0, head_step = 0, row_step = 0;
  const float* at(int64_t batch, int64_t head) const { return data + batch * batch_step + head * head_step; }
  // [batch, heads, rows, columns], and [batch, rows, heads * columns].
  static Heads by_head(const float* data, int64_t heads, int64_t rows, int64_t columns) {
    return {data, heads * rows * columns, rows * columns, columns};
  }
  static Heads by_row(const float* data, int64_t heads, int64_t rows, int64_t columns) {
    return {data, rows * heads * columns, columns, heads * columns};
  }
  // Columns from `offset` on, `columns` to a head, of [batch, rows, width].
  static Heads within(const float* data, int64_t rows, int64_t width, int64_t offset, int64_t columns) {
    return {data + offset, rows * width, columns, width};
  }
};

// A number added to the score of every (batch, head, row, column); steps of 0 repeat.
struct ScoreBias {
  const float* data = nullptr;
  int64_t batch_step = 0, head_step = 0, row_step = 0;
  int64_t columns = 0;  // columns behind are masked
  // From a tensor that broadcasts to [batch, heads, rows, columns] but for its last axis, which may be shorter; bool:
  // false is masked.
  static Status of(const Tensor& mask, int64_t batch, int64_t heads, int64_t rows, ScoreBias& out, Tensor& keep);
};

struct AttentionProblem {
  int64_t batch = 0, heads = 0, kv_heads = 0, rows = 0, columns = 0, qk_size = 0, v_size = 0;
  Heads q, k, v, y;  // y is written
  float scale = 1, softcap = 0;
  std::vector<ScoreBias> biases;
  bool causal = false;                          // row i sees columns up to i + offset
  int64_t left_window = -1, right_window = -1;  // and only those within these distances of i + offset; -1: any
  std::vector<int64_t> offsets;                 // per batch
  std::vector<int64_t> lengths;                 // per batch: columns behind are masked; empty: none
  // Per head, a score that takes part in the softmax without a value; empty: none.
  std::vector<float> sinks;
  // Wanted scores, [batch, heads, rows, columns]: as they come, after softcap, after bias, after softmax.
  enum Stage : int32_t { product, capped, biased, softmax };
  float* scores = nullptr;
  Stage stage = product;
};
Status attend(const AttentionProblem& problem);

// [batch, rows, heads * columns] or a view of such -> [batch, heads, rows, columns], behind `past` ([batch, heads, past
// rows, columns]) if there is one; with `used` behind so many rows of it, and as long as it is.
Status concatenate_heads(const Tensor* past, const Heads& now, int64_t batch, int64_t heads, int64_t rows,
                         int64_t columns, Tensor& out, int64_t used = -1);

}  // namespace py_ort
