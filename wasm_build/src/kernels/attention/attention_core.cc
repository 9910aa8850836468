#include "kernels/attention/attention_core.h"

#include <algorithm>
#include <cmath>

#include "kernels/shared/lanes.h"
#include "kernels/matmul/product.h"
#include "kernels/shared/simd_math.h"

namespace py_ort {

namespace {

// The bias of one row of scores; false when all of it is masked.
bool make_bias(const AttentionProblem& p, int64_t batch, int64_t head, int64_t row, std::vector<float>& bias) {
  std::fill(bias.begin(), bias.end(), 0.0f);
  for (const ScoreBias& b : p.biases) {
    const float* from = b.data + batch * b.batch_step + head * b.head_step + row * b.row_step;
    const int64_t known = std::min(b.columns, p.columns);
    for (int64_t j = 0; j < known; ++j) bias[static_cast<size_t>(j)] += from[j];
    for (int64_t j = known; j < p.columns; ++j) bias[static_cast<size_t>(j)] = kMasked;
  }
  int64_t first = 0, last = p.columns;  // of what is seen
  const int64_t at = row + (p.offsets.empty() ? 0 : p.offsets[static_cast<size_t>(batch)]);
  if (p.causal) last = std::min(last, at + 1);
  if (p.right_window >= 0) last = std::min(last, at + p.right_window + 1);
  if (p.left_window >= 0) first = std::max(first, at - p.left_window);
  if (!p.lengths.empty()) last = std::min(last, p.lengths[static_cast<size_t>(batch)]);
  first = std::clamp<int64_t>(first, 0, p.columns), last = std::clamp<int64_t>(last, 0, p.columns);
  std::fill(bias.begin(), bias.begin() + static_cast<ptrdiff_t>(first), kMasked);
  if (last < p.columns) std::fill(bias.begin() + static_cast<ptrdiff_t>(last), bias.end(), kMasked);
  return std::any_of(bias.begin(), bias.end(), [](float b) { return b != kMasked; });
}

void add_bias(const std::vector<float>& bias, float* scores, int64_t columns) {
  const v128_t masked = simd::splat(kMasked);
  int64_t j = 0;
  for (; j + 4 <= columns; j += 4) {
    const v128_t b = simd::load(bias.data() + j);
    // What is masked stays so whatever the score is, infinity and NaN too.
    simd::store(scores + j, simd::select(wasm_f32x4_eq(b, masked), masked, simd::add(simd::load(scores + j), b)));
  }
  for (; j < columns; ++j)
    scores[j] = bias[static_cast<size_t>(j)] == kMasked ? kMasked : scores[j] + bias[static_cast<size_t>(j)];
}

void cap(float limit, float* scores, int64_t count) {
  const v128_t factor = simd::splat(limit);
  int64_t i = 0;
  for (; i + 4 <= count; i += 4)
    simd::store(scores + i, simd::mul(simd::tanh(simd::div(simd::load(scores + i), factor)), factor));
  for (; i < count; ++i) scores[i] = std::tanh(scores[i] / limit) * limit;
}

}  // namespace

Status ScoreBias::of(const Tensor& mask, int64_t batch, int64_t heads, int64_t rows, ScoreBias& out, Tensor& keep) {
  PY_ORT_TRY(cast(mask, DType::float32, keep));
  if (mask.dtype == DType::bool_) {
    float* value = keep.mutable_data<float>();  // a fresh tensor: bool is no float32
    for (int64_t i = 0; i < keep.count(); ++i) value[i] = value[i] != 0 ? 0.0f : kMasked;
  }
  const int64_t rank = mask.rank();
  PY_ORT_ENSURE(rank >= 1 && rank <= 4, "an attention mask has one to four axes, not the shape ", mask.dims);
  out.columns = mask.dims.back();
  out.data = keep.data<float>();
  const int64_t wanted[] = {batch, heads, rows};
  int64_t* steps[] = {&out.batch_step, &out.head_step, &out.row_step};
  int64_t step = out.columns;
  for (int64_t axis = rank - 2, i = 2; axis >= 0; --axis, --i) {
    const int64_t size = mask.dims[static_cast<size_t>(axis)];
    PY_ORT_ENSURE(size == 1 || size == wanted[i], "the attention mask of shape ", mask.dims, " does not broadcast to ",
                  batch, " batches, ", heads, " heads and ", rows, " rows");
    *steps[i] = size == 1 ? 0 : step;
    step *= size;
  }
  return {};
}

namespace {

// Rows of scores at a time, so that they stay in the cache: a multiple of the rows that products take at once.
constexpr int64_t kBlockScores = 16384, kBlockRows = 24;

int64_t rows_at_once(const AttentionProblem& p) {
  return std::min(p.rows,
                  std::max(kBlockRows, kBlockScores / std::max<int64_t>(p.columns, 1) / kBlockRows * kBlockRows));
}

// Whether all rows of a head have one bias, and all heads of a batch.
bool same_for_rows(const AttentionProblem& p) {
  return !p.causal && p.left_window < 0 && p.right_window < 0 &&
         std::all_of(p.biases.begin(), p.biases.end(), [](const ScoreBias& b) { return b.row_step == 0; });
}
bool same_for_heads(const AttentionProblem& p) {
  return std::all_of(p.biases.begin(), p.biases.end(), [](const ScoreBias& b) { return b.head_step == 0; });
}

}  // namespace

Status attend(const AttentionProblem& p) {
  if (p.batch * p.heads * p.rows == 0) return {};
  PY_ORT_ENSURE(p.kv_heads > 0 && p.heads % p.kv_heads == 0, p.heads, " heads of queries do not fit ", p.kv_heads,
                " of keys");
  const int64_t sharing = p.heads / p.kv_heads, block = rows_at_once(p);
  const bool plain = p.biases.empty() && !p.causal && p.left_window < 0 && p.right_window < 0 && p.lengths.empty();
  const bool by_row = !same_for_rows(p), by_head = !same_for_heads(p);
  const bool pack = p.rows > 3 && p.columns > 0;  // the keys and values of a group of heads once
  Tensor scratch, packed_k, packed_v;
  const int64_t width = p.columns + (p.sinks.empty() ? 0 : 1);  // of a row of scores: the sink comes last
  PY_ORT_TRY(Tensor::make(DType::float32, {block, width}, scratch));
  if (pack) {
    PY_ORT_TRY(Tensor::make(DType::float32, {static_cast<int64_t>(panels_size(p.qk_size, p.columns))}, packed_k));
    PY_ORT_TRY(Tensor::make(DType::float32, {static_cast<int64_t>(panels_size(p.columns, p.v_size))}, packed_v));
  }
  std::vector<float> bias(static_cast<size_t>(p.columns));
  std::vector<int64_t> empty_rows;
  float* const scores = scratch.mutable_data<float>();
  bool seen = true;  // whether the bias leaves anything
  for (int64_t batch = 0; batch < p.batch; ++batch) {
    for (int64_t head = 0; head < p.heads; ++head) {
      const Matrix<float> q{p.q.at(batch, head), p.rows, p.qk_size, p.q.row_step, 1};
      const Matrix<float> k =
          Matrix<float>{p.k.at(batch, head / sharing), p.columns, p.qk_size, p.k.row_step, 1}.transposed();
      const Matrix<float> v{p.v.at(batch, head / sharing), p.columns, p.v_size, p.v.row_step, 1};
      if (pack && head % sharing == 0) {
        pack_panels(k, p.scale, packed_k.mutable_data<float>());
        pack_panels(v, 1, packed_v.mutable_data<float>());
      }
      if (!plain && !by_row && (by_head || head == 0)) seen = make_bias(p, batch, head, 0, bias);
      for (int64_t first = 0; first < p.rows; first += block) {
        const int64_t rows = std::min(block, p.rows - first);
        const auto show = [&](AttentionProblem::Stage stage) {
          if (!p.scores || p.stage != stage) return;
          float* to = p.scores + ((batch * p.heads + head) * p.rows + first) * p.columns;
          for (int64_t row = 0; row < rows; ++row) to = std::copy_n(scores + row * width, p.columns, to);
        };
        const Matrix<float> part{q.data + first * q.row_step, rows, p.qk_size, q.row_step, 1};
        ProductEnd end;
        end.c = scores, end.c_stride = width;
        PY_ORT_TRY(pack ? multiply_panels(part, packed_k.data<float>(), p.columns, end)
                        : multiply(part, k, p.scale, end));
        show(AttentionProblem::product);
        for (int64_t row = 0; row < rows && !p.sinks.empty(); ++row) scores[row * width + p.columns] = 0;
        if (p.softcap > 0) cap(p.softcap, scores, rows * width);
        show(AttentionProblem::capped);
        empty_rows.clear();
        for (int64_t row = 0; row < rows && !plain; ++row) {
          if (by_row) seen = make_bias(p, batch, head, first + row, bias);
          if (!seen) empty_rows.push_back(row);
          add_bias(bias, scores + row * width, p.columns);
        }
        for (int64_t row = 0; row < rows && !p.sinks.empty(); ++row)
          scores[row * width + p.columns] = p.sinks[static_cast<size_t>(head)];
        show(AttentionProblem::biased);
        F32Softmax softmax;
        softmax.outer = static_cast<int32_t>(rows), softmax.n = static_cast<int32_t>(width);
        softmax.x = scores, softmax.y = scores;
        if (!run_microkernel(microkernels().f32_softmax, softmax))
          return out_of_memory("no memory for the scratch space of a softmax");
        for (int64_t row : empty_rows) std::fill_n(scores + row * width, p.columns, 0.0f);  // nothing to attend to
        show(AttentionProblem::softmax);
        end.c = const_cast<float*>(p.y.at(batch, head)) + first * p.y.row_step, end.c_stride = p.y.row_step;
        const Matrix<float> weights{scores, rows, p.columns, width, 1};
        PY_ORT_TRY(pack ? multiply_panels(weights, packed_v.data<float>(), p.v_size, end)
                        : multiply(weights, v, 1, end));
      }
    }
  }
  return {};
}

Status concatenate_heads(const Tensor* past, const Heads& now, int64_t batch, int64_t heads, int64_t rows,
                         int64_t columns, Tensor& out, int64_t used) {
  const int64_t known = past ? past->dim(2) : 0, before = used < 0 ? known : used,
                total = used < 0 ? known + rows : known;
  // As in Concat, which this may have been: a past of no rows may be of no batches as well.
  const bool nothing = !past || (past->count() == 0 && known == 0);
  PY_ORT_ENSURE(nothing || past->dims == (Dims{batch, heads, known, columns}), "past keys or values of shape ",
                past->dims, " do not fit ", batch, " batches, ", heads, " heads of size ", columns);
  PY_ORT_ENSURE(before + rows <= total, rows, " rows behind ", before, " do not fit a cache of ", total);
  PY_ORT_TRY(Tensor::make(DType::float32, {batch, heads, total, columns}, out));
  float* to = out.mutable_data<float>();
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      const float* old = past ? past->data<float>() + (b * heads + h) * known * columns : nullptr;
      if (past) to = std::copy_n(old, before * columns, to);
      for (int64_t row = 0; row < rows; ++row) to = std::copy_n(now.at(b, h) + row * now.row_step, columns, to);
      if (past && before + rows < total)
        to = std::copy_n(old + (before + rows) * columns, (total - before - rows) * columns, to);
    }
  }
  return {};
}

}  // namespace py_ort
