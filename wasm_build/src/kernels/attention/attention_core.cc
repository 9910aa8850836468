#include "kernels/attention/attention_core.h"

#include <algorithm>

#include "kernels/shared/lanes.h"
#include "kernels/matmul/product.h"

namespace py_ort {

Status read_score_bias(const Tensor& mask, int64_t batch, int64_t heads, int64_t rows, ScoreBias& out, Tensor& keep,
                       std::optional<int64_t> columns) {
  PY_ORT_TRY(cast(mask, DType::float32, keep));
  if (mask.dtype == DType::bool_) {
    float* value = keep.mutable_data<float>();  // a new tensor: bool is no float32
    for (int64_t i = 0; i < keep.count(); ++i) value[i] = value[i] != 0 ? 0.0f : kMasked;
  }
  const int64_t rank = mask.rank();
  PY_ORT_ENSURE(rank >= 1 && rank <= 4, "an attention mask has one to four axes, not the shape ", mask.dims);
  out.columns = mask.dims.back();
  PY_ORT_ENSURE(!columns || out.columns == 1 || out.columns == *columns, "the attention mask of shape ", mask.dims,
                " does not broadcast to ", *columns, " keys");
  out.one_column = columns && out.columns == 1;
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

// Floats of keys and values packed at a time: for as many heads as fit.
constexpr int64_t kPackedFloats = 1 << 20;
// Up to this many rows read keys and values unpacked.
constexpr int64_t kFewRows = 3;

// The keys (or values) of all heads as matrices to pack.
F32Pack matrices_of(const Heads& heads, const AttentionProblem& p, int64_t k, int64_t n, float* panels) {
  F32Pack pack;
  pack.k = static_cast<int32_t>(k), pack.n = static_cast<int32_t>(n);
  pack.b = heads.data;
  pack.inner = static_cast<int32_t>(p.kv_heads);
  pack.inner_step = static_cast<ptrdiff_t>(heads.head_step), pack.outer_step = static_cast<ptrdiff_t>(heads.batch_step);
  pack.panels = panels;
  return pack;
}

Status run_attention(const F32Attention& problem) {
  if (!run_microkernel(microkernels().f32_attention, problem))
    return out_of_memory("no memory for the scratch space of an attention");
  return {};
}

}  // namespace

Status attend(AttentionProblem& p) {
  if (p.batch * p.heads * p.rows == 0) return {};
  PY_ORT_ENSURE(p.kv_heads > 0 && p.heads % p.kv_heads == 0, p.heads, " heads of queries do not fit ", p.kv_heads,
                " of keys");
  p.bias = p.biases.data(), p.bias_count = static_cast<int32_t>(p.biases.size());
  p.offset = p.offsets.empty() ? nullptr : p.offsets.data(), p.length = p.lengths.empty() ? nullptr : p.lengths.data();
  p.sink = p.sinks.empty() ? nullptr : p.sinks.data();
  if (p.rows <= kFewRows || p.columns == 0) {
    p.head_count = p.batch * p.heads;
    return run_attention(p);
  }
  const auto k_size = static_cast<int64_t>(panels_size(p.qk_size, p.columns)),
             v_size = static_cast<int64_t>(panels_size(p.columns, p.v_size)), all = p.batch * p.kv_heads,
             together = std::clamp<int64_t>(kPackedFloats / std::max<int64_t>(k_size + v_size, 1), 1, all);
  Tensor packed_k, packed_v;
  PY_ORT_TRY(Tensor::make(DType::float32, {together, k_size}, packed_k));
  PY_ORT_TRY(Tensor::make(DType::float32, {together, v_size}, packed_v));
  F32Pack k = matrices_of(p.k, p, p.qk_size, p.columns, packed_k.mutable_data<float>()),
          v = matrices_of(p.v, p, p.columns, p.v_size, packed_v.mutable_data<float>());
  k.column_step = static_cast<ptrdiff_t>(p.k.row_step), k.row_step = 1, k.scale = p.scale;
  v.row_step = static_cast<ptrdiff_t>(p.v.row_step);
  p.packed_k = k.panels, p.packed_v = v.panels;
  const int64_t sharing = p.heads / p.kv_heads;
  for (int64_t first = 0; first < all; first += together) {
    k.first = v.first = static_cast<int32_t>(first);
    k.matrices = v.matrices = static_cast<int32_t>(std::min(together, all - first));
    run_microkernel(microkernels().f32_pack, k);
    run_microkernel(microkernels().f32_pack, v);
    p.first_head = first * sharing, p.head_count = k.matrices * sharing;
    PY_ORT_TRY(run_attention(p));
  }
  return {};
}

Status concatenate_heads(const Tensor* past, const Heads& now, int64_t batch, int64_t heads, int64_t rows,
                         int64_t columns, Tensor& out, int64_t used) {
  const int64_t known = past ? past->dim(2) : 0, before = used < 0 ? known : used,
                total = used < 0 ? known + rows : known;
  // As in Concat, from which this may be fused: a past without rows may also have no batches.
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
