// Attention of ONNX (opsets 23 to 25). With our own attributes `offsets` and `head_sizes`, Q, K and V are columns in
// the middle of wider rows. With `nan_rows`, rows that see no key are NaN; with `mask_broadcasts`, a shorter mask does
// not hide the keys after it. Where our own input 7 is false, scores are 0 before the mask is added.
#include <cmath>

#include "kernels/attention/attention_core.h"
#include "kernels/shared/axes.h"
#include "kernels/shared/half_precision.h"
#include "py_ort/gen/dialect.h"

namespace py_ort {
namespace {

class Attention {
 public:
  explicit Attention(const KernelInfo& info) {
    const Attributes& a = info.attributes;
    causal_ = a.integer("is_causal", 0) != 0, nan_rows_ = a.integer(dialect::kNanRows, 0) != 0;
    mask_broadcasts_ = a.integer(dialect::kMaskBroadcasts, 0) != 0;
    heads_ = a.integer("q_num_heads", 0), kv_heads_ = a.integer("kv_num_heads", 0);
    has_scale_ = a.has("scale"), scale_ = a.number("scale", 0);
    softcap_ = a.number("softcap", 0);
    left_window_ = a.integer("left_window_size", -1), right_window_ = a.integer("right_window_size", -1);
    offsets_ = a.integers(dialect::kOffsets), head_sizes_ = a.integers(dialect::kHeadSizes);
    stage_ = static_cast<AttentionProblem::Stage>(a.integer("qk_matmul_output_mode", 0));
  }

  Status operator()(KernelContext& context) const {
    const Tensor &q = *context.input(0), &k = *context.input(1), &v = *context.input(2);
    const Tensor *mask = context.input(dialect::kAttentionMask), *past_key = context.input(dialect::kAttentionPastKey),
                 *past_value = context.input(dialect::kAttentionPastValue),
                 *lengths = context.input(dialect::kAttentionLengths), *kept = context.input(dialect::kAttentionKept);
    const bool by_row = q.rank() == 3;
    PY_ORT_ENSURE((by_row || q.rank() == 4) && k.rank() == q.rank() && v.rank() == q.rank(),
                  "Q, K and V must all have three or four axes, not the shapes ", q.dims, ", ", k.dims, " and ",
                  v.dims);
    PY_ORT_ENSURE(!by_row || (heads_ > 0 && kv_heads_ > 0),
                  "Q, K and V with three axes need the attributes q_num_heads and kv_num_heads");
    PY_ORT_ENSURE(!past_key == !past_value, "past_key and past_value go together");
    AttentionProblem p;
    p.batch = q.dims[0];
    p.heads = by_row ? heads_ : q.dims[1], p.kv_heads = by_row ? kv_heads_ : k.dims[1];
    p.rows = q.dim(-2);
    p.qk_size = by_row ? q.dims[2] / p.heads : q.dims[3];
    p.v_size = by_row ? v.dims[2] / p.kv_heads : v.dims[3];
    const int64_t new_columns = k.dim(-2), past_columns = past_key ? past_key->dim(2) : 0;
    const bool parts = offsets_.size() == 3 && head_sizes_.size() == 2 && by_row;
    if (parts) p.qk_size = head_sizes_[0], p.v_size = head_sizes_[1];
    PY_ORT_ENSURE(k.dims[0] == p.batch && v.dims[0] == p.batch && v.dim(-2) == new_columns &&
                      (parts ? offsets_[0] + p.heads * p.qk_size <= q.dims[2] &&
                                   offsets_[1] + p.kv_heads * p.qk_size <= k.dims[2] &&
                                   offsets_[2] + p.kv_heads * p.v_size <= v.dims[2]
                             : k.count() == p.batch * p.kv_heads * new_columns * p.qk_size),
                  "Q, K and V of shapes ", q.dims, ", ", k.dims, " and ", v.dims, " do not fit");
    p.columns = past_columns + new_columns;
    const auto heads_of = [&](const Tensor& t, int64_t heads, int64_t rows, int64_t columns) {
      return (by_row ? Heads::by_row : Heads::by_head)(t.data<float>(), heads, rows, columns);
    };
    p.q = heads_of(q, p.heads, p.rows, p.qk_size);
    p.k = heads_of(k, p.kv_heads, new_columns, p.qk_size);
    p.v = heads_of(v, p.kv_heads, new_columns, p.v_size);
    if (parts) {
      p.q = Heads::within(q.data<float>(), p.rows, q.dims[2], offsets_[0], p.qk_size);
      p.k = Heads::within(k.data<float>(), new_columns, k.dims[2], offsets_[1], p.qk_size);
      p.v = Heads::within(v.data<float>(), new_columns, v.dims[2], offsets_[2], p.v_size);
    }
    // Scores of one batch or one row, broadcast to the mask as in Add and Where.
    for (const Tensor* each : {mask, kept}) {
      if (!mask_broadcasts_ || !each) continue;
      if (each->rank() == 4 && p.batch == 1 && each->dims[0] > 1)
        p.batch = each->dims[0], p.q.batch_step = p.k.batch_step = p.v.batch_step = 0;
      if (each->rank() > 1 && p.rows == 1 && each->dim(-2) > 1) p.rows = each->dim(-2), p.q.row_step = 0;
    }
    Tensor present_key, present_value;
    if (past_key || context.wants(1)) {
      PY_ORT_TRY(concatenate_heads(past_key, p.k, p.batch, p.kv_heads, new_columns, p.qk_size, present_key));
      p.k = Heads::by_head(present_key.data<float>(), p.kv_heads, p.columns, p.qk_size);
    }
    if (past_value || context.wants(2)) {
      PY_ORT_TRY(concatenate_heads(past_value, p.v, p.batch, p.kv_heads, new_columns, p.v_size, present_value));
      p.v = Heads::by_head(present_value.data<float>(), p.kv_heads, p.columns, p.v_size);
    }
    Tensor *y, *scores = nullptr;
    PY_ORT_TRY(context.output(
        0, DType::float32,
        by_row ? Dims{p.batch, p.rows, p.heads * p.v_size} : Dims{p.batch, p.heads, p.rows, p.v_size}, y));
    p.y = heads_of(*y, p.heads, p.rows, p.v_size);
    if (context.wants(3)) {
      PY_ORT_TRY(context.output(3, DType::float32, {p.batch, p.heads, p.rows, p.columns}, scores));
      p.scores = scores->mutable_data<float>();
    }
    Tensor mask_values, kept_values;
    if (mask) {
      PY_ORT_ENSURE(mask->rank() == 0 || mask->dims.back() <= p.columns, "the attention mask of shape ", mask->dims,
                    " is for more than ", p.columns, " keys");
      p.biases.resize(1);
      PY_ORT_TRY(read_score_bias(*mask, p.batch, p.heads, p.rows, p.biases[0], mask_values,
                                 mask_broadcasts_ ? std::optional(p.columns) : std::nullopt));
    }
    ScoreBias dropped;
    if (kept) {
      PY_ORT_TRY(read_score_bias(*kept, p.batch, p.heads, p.rows, dropped, kept_values, p.columns));
      p.dropped = &dropped;
    }
    p.offsets.assign(static_cast<size_t>(p.batch), past_columns);
    if (lengths) {
      PY_ORT_TRY(read_integers(*lengths, p.lengths));
      PY_ORT_ENSURE(static_cast<int64_t>(p.lengths.size()) == p.batch, "nonpad_kv_seqlen of shape ", lengths->dims,
                    " does not fit ", p.batch, " batches");
      if (!past_key)
        for (size_t b = 0; b < p.offsets.size(); ++b) p.offsets[b] = p.lengths[b] - p.rows;
    }
    p.scale = has_scale_ ? scale_ : 1 / std::sqrt(static_cast<float>(p.qk_size));
    p.softcap = softcap_, p.causal = causal_, p.nan_rows = nan_rows_, p.stage = stage_;
    p.left_window = left_window_, p.right_window = right_window_;
    PY_ORT_TRY(attend(p));
    context.output(1, std::move(present_key));
    context.output(2, std::move(present_value));
    return {};
  }

 private:
  bool causal_, nan_rows_, mask_broadcasts_, has_scale_;
  int64_t heads_, kv_heads_, left_window_, right_window_;
  float scale_, softcap_;
  Dims offsets_, head_sizes_;
  AttentionProblem::Stage stage_;
};

PY_ORT_KERNEL("", "Attention",
              "float32,float16,bfloat16;float32,float16,bfloat16;float32,float16,bfloat16;*;float32,float16,bfloat16;"
              "float32,float16,bfloat16;int64;bool",
              WithHalf<Attention>);

}  // namespace
}  // namespace py_ort
