// com.microsoft's MultiHeadAttention, Attention and QAttention.
#include <algorithm>
#include <cmath>

#include "kernels/attention/attention_core.h"
#include "kernels/shared/derived.h"
#include "kernels/shared/axes.h"
#include "kernels/shared/half_precision.h"
#include "kernels/quantization/integer_product.h"
#include "kernels/matmul/product.h"

namespace py_ort {
namespace {

struct CommonAttributes {
  CommonAttributes() = default;
  explicit CommonAttributes(const Attributes& a)
      : heads(a.integer("num_heads", 0)), mask_value(a.number("mask_filter_value", -10000)),
        scale(a.number("scale", 0)), causal(a.integer("unidirectional", 0) != 0) {}
  int64_t heads = 0;
  float mask_value = -10000, scale = 0;
  bool causal = false;

  void apply(AttentionProblem& p, int64_t past) const {
    p.scale = scale != 0 ? scale : 1 / std::sqrt(static_cast<float>(p.qk_size));
    p.causal = causal && p.rows > 1;  // as natively, one query sees all keys, however many are new
    p.offsets.assign(static_cast<size_t>(p.batch), past);
  }
};

// A mask of integers as a bias: [batch] lengths, [3 batch + 2] (lengths first), [2 batch] (ends first, then
// beginnings), [batch, columns], or [batch, rows, columns] of 0 and 1; [batch, 1] or [1, 1] means no mask.
Status mask_bias(const Tensor& mask, float value, AttentionProblem& p, Tensor& keep) {
  if (mask.rank() == 2 && mask.dims[1] == 1 && p.columns != 1) return {};
  std::vector<int64_t> values;
  PY_ORT_TRY(read_integers(mask, values));
  const bool lengths = mask.rank() == 1, by_row = mask.rank() == 3, ranges = lengths && mask.count() == 2 * p.batch;
  const int64_t rows = by_row ? p.rows : 1;
  PY_ORT_ENSURE(lengths ? mask.count() == p.batch || ranges || mask.count() == 3 * p.batch + 2
                        : mask.count() == p.batch * rows * p.columns,
                "a mask of shape ", mask.dims, " does not fit ", p.batch, " batches, ", p.rows, " rows and ", p.columns,
                " columns");
  PY_ORT_TRY(Tensor::make(DType::float32, {p.batch, rows, p.columns}, keep));
  float* to = keep.mutable_data<float>();
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t i = 0; i < rows * p.columns; ++i) {
      const bool seen =
          lengths ? i < values[static_cast<size_t>(b)] && (!ranges || i >= values[static_cast<size_t>(p.batch + b)])
                  : values[static_cast<size_t>(b * rows * p.columns + i)] != 0;
      *to++ = seen ? 0.0f : value;
    }
  p.biases.push_back({keep.data<float>(), rows * p.columns, 0, by_row ? p.columns : 0, p.columns});
  return {};
}

// Adds to Q, K or V its part of a bias, if there is one.
Status add_part(Heads& x, int64_t batch, int64_t heads, int64_t rows, int64_t size, const float* bias, Tensor& out) {
  if (!bias) return {};
  PY_ORT_TRY(Tensor::make(DType::float32, {batch, rows, heads * size}, out));
  const Heads to = Heads::by_row(out.data<float>(), heads, rows, size);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t row = 0; row < rows; ++row) {
        const float* from = x.at(b, h) + row * x.row_step;
        float* y = const_cast<float*>(to.at(b, h)) + row * to.row_step;
        for (int64_t i = 0; i < size; ++i) y[i] = from[i] + bias[h * size + i];
      }
  x = to;
  return {};
}

// [texts, beams, positions]: for each of the first `before` positions the beam of the same text that owns the row;
// later rows are the beam's own.
Status follow_beams(const Tensor& beams, int64_t before, int64_t batch, int64_t heads, int64_t columns, int64_t size,
                    Heads& rows, Tensor& out) {
  PY_ORT_ENSURE(beams.rank() == 3 && beams.dims[0] * beams.dims[1] == batch && beams.dims[2] >= before,
                "cache_indirection of shape ", beams.dims, " does not fit ", batch, " batches of ", before,
                " positions");
  const int32_t* from = beams.data<int32_t>();
  const int64_t width = beams.dims[1], positions = beams.dims[2];
  PY_ORT_TRY(Tensor::make(DType::float32, {batch, heads, columns, size}, out));
  float* to = out.mutable_data<float>();
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t beam = j < before ? from[b * positions + j] : b % width;
        PY_ORT_ENSURE(beam >= 0 && beam < width, "cache_indirection names beam ", beam, " of ", width);
        to = std::copy_n(rows.at(b / width * width + beam, h) + j * rows.row_step, size, to);
      }
  rows = Heads::by_head(out.data<float>(), heads, columns, size);
  return {};
}

class MultiHeadAttention {
 public:
  explicit MultiHeadAttention(const KernelInfo& info) : common_(info.attributes) {}

  Status operator()(KernelContext& context) const {
    const Tensor &query = *context.input(0), *key = context.input(1), *value = context.input(2),
                 *bias = context.input(3), *mask = context.input(4), *score_bias = context.input(5);
    const Tensor *past_key = context.input(6), *past_value = context.input(7), *past_rows = context.input(8);
    const Tensor* beams = context.input(9);
    PY_ORT_ENSURE(common_.heads > 0 && query.rank() >= 3,
                  "MultiHeadAttention needs num_heads and a query with three or more axes, not the shape ", query.dims);
    AttentionProblem p;
    p.heads = p.kv_heads = common_.heads;
    p.batch = query.dims[0], p.rows = query.dims[1];
    int64_t new_columns = p.rows;
    Tensor parts[3];
    const auto packed = [&](const Tensor& t, int64_t parts_in_it, int64_t part,
                            int64_t size) {  // [batch, rows, heads, parts, size]
      return Heads{t.data<float>() + part * size, t.dims[1] * p.heads * parts_in_it * size, parts_in_it * size,
                   p.heads * parts_in_it * size};
    };
    if (!key && query.rank() == 5) {
      p.qk_size = p.v_size = query.dims[4];
      p.q = packed(query, 3, 0, p.qk_size), p.k = packed(query, 3, 1, p.qk_size), p.v = packed(query, 3, 2, p.qk_size);
    } else {
      PY_ORT_ENSURE(query.rank() == 3 && query.dims[2] % p.heads == 0 && key,
                    "MultiHeadAttention got a query of shape ", query.dims, " for ", p.heads, " heads");
      p.qk_size = query.dims[2] / p.heads;
      p.q = Heads::by_row(query.data<float>(), p.heads, p.rows, p.qk_size);
      if (key->rank() == 5) {
        p.v_size = p.qk_size, new_columns = key->dims[1];
        p.k = packed(*key, 2, 0, p.qk_size), p.v = packed(*key, 2, 1, p.qk_size);
      } else if (key->rank() == 4) {  // [batch, heads, columns, size], for cross attention
        PY_ORT_ENSURE(value && value->rank() == 4, "key and value must both have four axes");
        new_columns = key->dims[2], p.v_size = value->dims[3];
        p.k = Heads::by_head(key->data<float>(), p.heads, new_columns, p.qk_size),
        p.v = Heads::by_head(value->data<float>(), p.heads, new_columns, p.v_size);
      } else {
        PY_ORT_ENSURE(value && key->rank() == 3 && value->rank() == 3, "MultiHeadAttention got a key of shape ",
                      key->dims, " without a matching value");
        new_columns = key->dims[1], p.v_size = value->dims[2] / p.heads;
        p.k = Heads::by_row(key->data<float>(), p.heads, new_columns, p.qk_size),
        p.v = Heads::by_row(value->data<float>(), p.heads, new_columns, p.v_size);
      }
    }
    const float* added = bias ? bias->data<float>() : nullptr;
    const int64_t hidden = p.heads * p.qk_size;
    // Keys and values that arrive as heads include their biases already.
    const float* own = key && key->rank() == 4 ? nullptr : added;
    PY_ORT_ENSURE(!bias || bias->count() == 2 * hidden + p.heads * p.v_size, "a bias of shape ", bias->dims,
                  " does not fit ", p.heads, " heads of ", p.qk_size, " and ", p.v_size);
    PY_ORT_TRY(add_part(p.q, p.batch, p.heads, p.rows, p.qk_size, added, parts[0]));
    PY_ORT_TRY(add_part(p.k, p.batch, p.heads, new_columns, p.qk_size, own ? own + hidden : nullptr, parts[1]));
    PY_ORT_TRY(add_part(p.v, p.batch, p.heads, new_columns, p.v_size, own ? own + 2 * hidden : nullptr, parts[2]));
    Tensor present_key, present_value;
    int64_t used = -1;  // rows of the past to use, if it is longer
    if (past_rows) PY_ORT_TRY(read_integer(*past_rows, "past_sequence_length", used));
    PY_ORT_ENSURE(!past_rows || (past_key && past_value && used >= 0),
                  "past_sequence_length goes with past_key and past_value, and is 0 or more");
    const int64_t before = past_rows ? used : past_key ? past_key->dim(2) : 0;
    p.columns = new_columns + before;
    if (past_key || context.wants(1)) {
      PY_ORT_TRY(concatenate_heads(past_key, p.k, p.batch, p.heads, new_columns, p.qk_size, present_key, used));
      p.k = Heads::by_head(present_key.data<float>(), p.heads, present_key.dims[2], p.qk_size);
    }
    if (past_value || context.wants(2)) {
      PY_ORT_TRY(concatenate_heads(past_value, p.v, p.batch, p.heads, new_columns, p.v_size, present_value, used));
      p.v = Heads::by_head(present_value.data<float>(), p.heads, present_value.dims[2], p.v_size);
    }
    Tensor beam_keys, beam_values;
    if (beams && past_rows && p.rows == 1) {  // otherwise onnxruntime ignores it
      PY_ORT_TRY(follow_beams(*beams, before, p.batch, p.heads, p.columns, p.qk_size, p.k, beam_keys));
      PY_ORT_TRY(follow_beams(*beams, before, p.batch, p.heads, p.columns, p.v_size, p.v, beam_values));
    }
    Tensor *y, *scores;
    if (context.wants(3)) {
      PY_ORT_TRY(context.output(3, DType::float32, {p.batch, p.heads, p.rows, p.columns}, scores));
      p.scores = scores->mutable_data<float>(), p.stage = AttentionProblem::biased;
    }
    PY_ORT_TRY(context.output(0, DType::float32, {p.batch, p.rows, p.heads * p.v_size}, y));
    p.y = Heads::by_row(y->data<float>(), p.heads, p.rows, p.v_size);
    Tensor mask_values, bias_values;
    if (mask) PY_ORT_TRY(mask_bias(*mask, common_.mask_value, p, mask_values));
    if (score_bias)
      PY_ORT_TRY(read_score_bias(*score_bias, p.batch, p.heads, p.rows, p.biases.emplace_back(), bias_values));
    common_.apply(p, before);
    PY_ORT_TRY(attend(p));
    context.output(1, std::move(present_key));
    context.output(2, std::move(present_value));
    return {};
  }

 private:
  CommonAttributes common_;
};

// Inputs: X, weights [in, q + k + v], their bias, a mask, past keys and values in one tensor [2, batch, heads, rows,
// size], a bias of the scores.
class Attention {
 public:
  Attention() = default;
  explicit Attention(const KernelInfo& info)
      : common_(info.attributes), sizes_(info.attributes.integers("qkv_hidden_sizes")) {}

  static Status make(const KernelInfo& info, Attention& out) {
    for (const char* name : {"do_rotary", "past_present_share_buffer"})
      if (info.attributes.integer(name, 0) != 0) return not_implemented("com.microsoft::Attention with ", name);
    out = Attention(info);
    return {};
  }

  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), &w = *context.input(1), *bias = context.input(2), *mask = context.input(3),
                 *past = context.input(4), *score_bias = context.input(5);
    PY_ORT_ENSURE(x.rank() == 3 && w.rank() == 2 && w.dims[0] == x.dims[2] && common_.heads > 0,
                  "Attention got X of shape ", x.dims, " and weights of shape ", w.dims);
    const int64_t all = w.dims[1], q_hidden = sizes_.empty() ? all / 3 : sizes_[0],
                  v_hidden = sizes_.empty() ? all / 3 : sizes_[2];
    PY_ORT_ENSURE(2 * q_hidden + v_hidden == all && (!bias || bias->count() == all), "Attention's weights of shape ",
                  w.dims, " do not split into queries, keys and values");
    AttentionProblem p;
    p.batch = x.dims[0], p.rows = x.dims[1];
    p.heads = p.kv_heads = common_.heads;
    p.qk_size = q_hidden / p.heads, p.v_size = v_hidden / p.heads;
    Tensor projected;
    PY_ORT_TRY(Tensor::make(DType::float32, {p.batch, p.rows, all}, projected));
    ProductEnd end;
    end.c = projected.mutable_data<float>(), end.c_stride = all;
    end.bias = bias ? bias->data<float>() : nullptr;
    PY_ORT_TRY(multiply(row_major(x.data<float>(), p.batch * p.rows, x.dims[2]),
                        row_major(w.data<float>(), w.dims[0], all), 1, end));
    const auto part = [&](int64_t begin, int64_t size) {
      return Heads{projected.data<float>() + begin, p.rows * all, size, all};
    };
    p.q = part(0, p.qk_size), p.k = part(q_hidden, p.qk_size), p.v = part(2 * q_hidden, p.v_size);
    p.columns = p.rows;
    Tensor* present = nullptr;
    if (past || context.wants(1)) {
      PY_ORT_ENSURE(p.qk_size == p.v_size && (!past || past->rank() == 5),
                    "past keys and values need heads of one size, and five axes");
      const int64_t before = past ? past->dims[3] : 0, half = p.batch * p.heads * before * p.v_size;
      p.columns += before;
      PY_ORT_TRY(context.output(1, DType::float32, {2, p.batch, p.heads, p.columns, p.v_size}, present));
      Heads* views[] = {&p.k, &p.v};
      for (int64_t i = 0; i < 2; ++i) {
        Tensor old, joined;
        if (past)
          old = {DType::float32,
                 {p.batch, p.heads, before, p.v_size},
                 Location::cpu,
                 Storage::borrowed(const_cast<float*>(past->data<float>()) + i * half,
                                   static_cast<size_t>(half) * sizeof(float))};
        PY_ORT_TRY(concatenate_heads(past ? &old : nullptr, *views[i], p.batch, p.heads, p.rows, p.v_size, joined));
        float* to = present->mutable_data<float>() + i * joined.count();
        std::copy_n(joined.data<float>(), joined.count(), to);
        *views[i] = Heads::by_head(to, p.heads, p.columns, p.v_size);
      }
    }
    Tensor* y;
    PY_ORT_TRY(context.output(0, DType::float32, {p.batch, p.rows, v_hidden}, y));
    p.y = Heads::by_row(y->data<float>(), p.heads, p.rows, p.v_size);
    Tensor mask_values, bias_values;
    if (mask) PY_ORT_TRY(mask_bias(*mask, common_.mask_value, p, mask_values));
    if (score_bias)
      PY_ORT_TRY(read_score_bias(*score_bias, p.batch, p.heads, p.rows, p.biases.emplace_back(), bias_values));
    common_.apply(p, p.columns - p.rows);
    return attend(p);
  }

 private:
  CommonAttributes common_;
  Dims sizes_;
};

// Attention with quantized X and weights. Inputs: X, weights, bias, their scales, a mask, their zero points, past keys
// and values.
class QAttention {
 public:
  explicit QAttention(const KernelInfo& info) : attention_(info) {}

  Status operator()(KernelContext& context) const {
    Tensor x;
    const Tensor* w;
    PY_ORT_TRY(dequantize(*context.input(0), context.input(3), context.input(6), x));
    const bool keep = Derived<Tensor>::constant(context.input(4)) && Derived<Tensor>::constant(context.input(7));
    PY_ORT_TRY(weights_.get(*context.input(1), w, [&](Tensor& out) {
      return dequantize(*context.input(1), context.input(4), context.input(7), out);
    }, keep));
    const Value x_value = Value::of(x), w_value = Value::of(*w);
    const Value* inputs[] = {&x_value, &w_value, context.input_value(2), context.input_value(5),
                             context.input_value(8)};
    Value made[2];
    Value* outputs[] = {&made[0], context.wants(1) ? &made[1] : nullptr};
    KernelContext inner(inputs, outputs);
    PY_ORT_TRY(attention_(inner));
    context.output_value(0, std::move(made[0]));
    if (context.wants(1)) context.output_value(1, std::move(made[1]));
    return {};
  }

 private:
  // One scale, or one per column.
  static Status dequantize(const Tensor& from, const Tensor* scale, const Tensor* zero, Tensor& out) {
    const int64_t columns = from.dims.back();
    PerAxis scales, zeros;
    PY_ORT_TRY(PerAxis::read(scale, columns, "QAttention's scale", scales));
    PY_ORT_TRY(PerAxis::read(zero, columns, "QAttention's zero point", zeros));
    PY_ORT_TRY(Tensor::make(DType::float32, from.dims, out));
    for (int64_t i = 0; i < from.count(); ++i)
      out.mutable_data<float>()[i] =
          static_cast<float>(integer_at(from, i) - zeros.integer(i % columns)) * scales[i % columns];
    return {};
  }

  Attention attention_;
  Derived<Tensor> weights_;
};

#define PY_ORT_ATTENTION_FLOATS "float32,float16,bfloat16"
PY_ORT_KERNEL(kMicrosoftDomain, "MultiHeadAttention",
              PY_ORT_ATTENTION_FLOATS ";" PY_ORT_ATTENTION_FLOATS ";" PY_ORT_ATTENTION_FLOATS
                                      ";" PY_ORT_ATTENTION_FLOATS ";int32,int64;" PY_ORT_ATTENTION_FLOATS
                                      ";" PY_ORT_ATTENTION_FLOATS ";" PY_ORT_ATTENTION_FLOATS ";int32;int32",
              WithHalf<MultiHeadAttention>);
PY_ORT_KERNEL(kMicrosoftDomain, "Attention",
              PY_ORT_ATTENTION_FLOATS ";" PY_ORT_ATTENTION_FLOATS ";" PY_ORT_ATTENTION_FLOATS
                                      ";int32,int64;" PY_ORT_ATTENTION_FLOATS,
              WithHalf<Attention>);
PY_ORT_KERNEL(kMicrosoftDomain, "QAttention",
              "int8,uint8;int8,uint8;float32;float32;float32;int32;int8,uint8;int8,uint8;float32", QAttention);

}  // namespace
}  // namespace py_ort
