// com.microsoft's GroupQueryAttention: attention of decoders with a cache of keys and values, rotation included.
#include <algorithm>
#include <cmath>

#include "kernels/shared/axes.h"
#include "kernels/shared/half_precision.h"
#include "kernels/attention/rotary_embedding.h"

namespace py_ort {
namespace {

// Inputs: query (all three packed in it if there is no key), key, value, past key, past value, seqlens_k (per batch:
// the number of keys, minus one), total_sequence_length, cosines, sines, positions, a bias of the scores, per head a
// score without a value.
class GroupQueryAttention {
 public:
  static Status make(const KernelInfo& info, GroupQueryAttention& out) {
    if (info.attributes.integer("sliding_window_cache", 0) != 0)
      return not_implemented("GroupQueryAttention with sliding_window_cache, of a form that onnxruntime refuses");
    out.read(info.attributes);
    return {};
  }

  void read(const Attributes& a) {
    heads_ = a.integer("num_heads", 0), kv_heads_ = a.integer("kv_num_heads", 0);
    scale_ = a.number("scale", 0), softcap_ = a.number("softcap", 0);
    window_ = a.integer("local_window_size", -1);
    rotary_ = a.integer("do_rotary", 0) != 0, interleaved_ = a.integer("rotary_interleaved", 0) != 0;
    smooth_ = a.integer("smooth_softmax", 0) == 1, causal_ = a.integer("causal", 1) != 0;
    shown_ = a.integer("qk_output", 0);
  }

  Status operator()(KernelContext& context) const {
    const Tensor &query = *context.input(0), *key = context.input(1), *value = context.input(2),
                 *past_key = context.input(3), *past_value = context.input(4);
    for (size_t i : {12, 13, 14, 15})
      if (context.input(i))
        return not_implemented("GroupQueryAttention with ",
                               i < 14 ? "quantized caches" : "normalized queries and keys");
    PY_ORT_ENSURE(heads_ > 0 && kv_heads_ > 0 && query.rank() == 3,
                  "GroupQueryAttention needs num_heads, kv_num_heads and a query with three axes, not the shape ",
                  query.dims);
    AttentionProblem p;
    p.heads = heads_, p.kv_heads = kv_heads_;
    p.batch = query.dims[0], p.rows = query.dims[1];
    const int64_t hidden = query.dims[2], size = hidden / (key ? heads_ : heads_ + 2 * kv_heads_);
    p.qk_size = p.v_size = size;
    PY_ORT_ENSURE(!key || (value && key->dims == (Dims{p.batch, p.rows, kv_heads_ * size}) && value->dims == key->dims),
                  "the key and value of GroupQueryAttention do not fit the query of shape ", query.dims);
    Heads q{query.data<float>(), p.rows * hidden, size, hidden};
    Heads k = key ? Heads::by_row(key->data<float>(), kv_heads_, p.rows, size)
                  : Heads{q.data + heads_ * size, q.batch_step, size, hidden};
    p.v = key ? Heads::by_row(value->data<float>(), kv_heads_, p.rows, size)
              : Heads{k.data + kv_heads_ * size, q.batch_step, size, hidden};

    std::vector<int64_t> last;  // per batch, the last key's place
    PY_ORT_TRY(read_integers(*context.input(5), last));
    PY_ORT_ENSURE(static_cast<int64_t>(last.size()) == p.batch, "seqlens_k of shape ", context.input(5)->dims,
                  " does not fit ", p.batch, " batches");
    int64_t total;
    PY_ORT_TRY(read_integer(*context.input(6), "total_sequence_length", total));
    const int64_t past_columns = past_key ? past_key->dim(2) : 0, capacity = std::max(total, past_columns);
    const bool prompt = total == p.rows;  // no tokens precede
    for (int64_t b = 0; b < p.batch; ++b) {
      const int64_t length = last[static_cast<size_t>(b)] + 1;
      p.lengths.push_back(length);
      p.offsets.push_back(prompt ? 0 : length - p.rows);
      PY_ORT_ENSURE(length <= capacity && p.offsets.back() >= 0, "seqlens_k says ", length, " keys, which do not fit ",
                    p.rows, " rows of a cache of ", capacity);
    }
    p.columns = context.wants(3) ? total : *std::max_element(p.lengths.begin(), p.lengths.end());
    Tensor rotated_q, rotated_k;
    if (rotary_) PY_ORT_TRY(rotate(context, p, total, q, k, rotated_q, rotated_k));
    p.q = q;
    Tensor *present_key, *present_value, *y;
    PY_ORT_TRY(context.output(1, DType::float32, {p.batch, kv_heads_, capacity, size}, present_key));
    PY_ORT_TRY(context.output(2, DType::float32, {p.batch, kv_heads_, capacity, size}, present_value));
    PY_ORT_TRY(append(past_key, k, p, *present_key));
    PY_ORT_TRY(append(past_value, p.v, p, *present_value));
    p.k = Heads::by_head(present_key->data<float>(), kv_heads_, capacity, size),
    p.v = Heads::by_head(present_value->data<float>(), kv_heads_, capacity, size);
    PY_ORT_TRY(context.output(0, DType::float32, {p.batch, p.rows, heads_ * size}, y));
    p.y = Heads::by_row(y->data<float>(), heads_, p.rows, size);
    Tensor bias_values;
    if (const Tensor* bias = context.input(10))
      PY_ORT_TRY(read_score_bias(*bias, p.batch, heads_, p.rows, p.biases.emplace_back(), bias_values));
    p.scale = scale_ != 0 ? scale_ : 1 / std::sqrt(static_cast<float>(size));
    p.softcap = softcap_, p.causal = causal_;
    if (window_ > 0) p.left_window = window_ - 1;
    if (const Tensor* sinks = context.input(11)) {
      PY_ORT_ENSURE(sinks->count() == heads_, "head_sink of shape ", sinks->dims, " does not fit ", heads_, " heads");
      p.sinks.assign(sinks->data<float>(), sinks->data<float>() + heads_);
    } else if (smooth_) {
      p.sinks.assign(static_cast<size_t>(heads_), 0.0f);
    }
    if (context.wants(3)) {
      Tensor* scores;
      PY_ORT_TRY(context.output(3, DType::float32, {p.batch, heads_, p.rows, total}, scores));
      p.scores = scores->mutable_data<float>(),
      p.stage = shown_ == 1 ? AttentionProblem::biased : AttentionProblem::softmax;
    }
    return attend(p);
  }

 private:
  Status rotate(KernelContext& context, const AttentionProblem& p, int64_t total, Heads& q, Heads& k, Tensor& rotated_q,
                Tensor& rotated_k) const {
    const Tensor *cos = context.input(7), *sin = context.input(8), *positions = context.input(9);
    PY_ORT_ENSURE(cos && sin, "GroupQueryAttention with do_rotary needs the caches of cosines and sines");
    PY_ORT_ENSURE(cos->dims[0] >= total, "total_sequence_length is ", total, ", beyond the ", cos->dims[0],
                  " positions of the caches of cosines and sines");
    RotaryTable table;
    table.half = cos->dims.back();
    table.interleaved = interleaved_;
    if (positions) {
      PY_ORT_TRY(read_integers(*positions, table.positions));
      PY_ORT_ENSURE(static_cast<int64_t>(table.positions.size()) == p.batch * p.rows, "position_ids of shape ",
                    positions->dims, " do not fit ", p.batch, " batches of ", p.rows, " rows");
      // If no tokens precede, onnxruntime reads the first position only.
      for (size_t i = 0; total == p.rows && i < table.positions.size(); ++i)
        table.positions[i] = i == 0 ? table.positions[0] : table.positions[0] + static_cast<int64_t>(i) % p.rows;
    } else {
      for (int64_t b = 0; b < p.batch; ++b)
        for (int64_t row = 0; row < p.rows; ++row) table.positions.push_back(p.offsets[static_cast<size_t>(b)] + row);
    }
    PY_ORT_TRY(check_rotary_caches(*cos, *sin, table));
    const auto turn = [&](Heads& heads, int64_t count, Tensor& out) -> Status {
      PY_ORT_TRY(Tensor::make(DType::float32, {p.batch, p.rows, count * p.qk_size}, out));
      const Heads to = Heads::by_row(out.data<float>(), count, p.rows, p.qk_size);
      rotate_heads(table, heads, to, p.batch, count, p.rows, p.qk_size);
      heads = to;
      return {};
    };
    PY_ORT_TRY(turn(q, heads_, rotated_q));
    return turn(k, kv_heads_, rotated_k);
  }

  // The cache, with the new rows after each batch's old ones.
  Status append(const Tensor* past, const Heads& now, const AttentionProblem& p, Tensor& present) const {
    const int64_t size = p.qk_size, past_columns = past ? past->dim(2) : 0, capacity = present.dims[2];
    PY_ORT_ENSURE(!past || past->dims == (Dims{p.batch, kv_heads_, past_columns, size}),
                  "past keys or values of shape ", past->dims, " do not fit ", p.batch, " batches, ", kv_heads_,
                  " heads of size ", size);
    float* to = present.mutable_data<float>();
    for (int64_t b = 0; b < p.batch; ++b) {
      const int64_t before = p.offsets[static_cast<size_t>(b)], kept = std::min(before, past_columns);
      for (int64_t h = 0; h < kv_heads_; ++h) {
        if (past) to = std::copy_n(past->data<float>() + (b * kv_heads_ + h) * past_columns * size, kept * size, to);
        to = std::fill_n(to, (before - kept) * size, 0.0f);
        for (int64_t row = 0; row < p.rows; ++row) to = std::copy_n(now.at(b, h) + row * now.row_step, size, to);
        to = std::fill_n(to, (capacity - before - p.rows) * size, 0.0f);
      }
    }
    return {};
  }

  int64_t heads_ = 0, kv_heads_ = 0, window_ = -1, shown_ = 0;
  float scale_ = 0, softcap_ = 0;
  bool rotary_ = false, interleaved_ = false, smooth_ = false, causal_ = true;
};

#define PY_ORT_ATTENTION_FLOATS "float32,float16,bfloat16"
PY_ORT_KERNEL(kMicrosoftDomain, "GroupQueryAttention",
              PY_ORT_ATTENTION_FLOATS ";" PY_ORT_ATTENTION_FLOATS ";" PY_ORT_ATTENTION_FLOATS
                                      ";" PY_ORT_ATTENTION_FLOATS ";" PY_ORT_ATTENTION_FLOATS
                                      ";int32;int32;" PY_ORT_ATTENTION_FLOATS ";" PY_ORT_ATTENTION_FLOATS
                                      ";int64;" PY_ORT_ATTENTION_FLOATS,
              WithHalf<GroupQueryAttention>);

}  // namespace
}  // namespace py_ort
