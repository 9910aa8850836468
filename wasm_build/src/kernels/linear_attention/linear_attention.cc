// LinearAttention: a recurrent state of keys by values instead of a cache of keys and values.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/shared/axes.h"
#include "kernels/shared/lanes.h"
#include "py_ort/kernel.h"

namespace py_ort {
namespace {

// Inputs: query, key, value, past state, decay (logarithms), beta. With `state_window` states of the last tokens are
// kept, the newest last.
class LinearAttention {
 public:
  static Status make(const KernelInfo& info, LinearAttention& out) {
    const Attributes& a = info.attributes;
    out.query_heads_ = a.integer("q_num_heads", 0), out.heads_ = a.integer("kv_num_heads", 0);
    out.scale_ = a.number("scale", 0);
    out.window_ = a.integer("state_window", 0);
    const std::string rule = a.text("update_rule", "gated_delta");
    out.gated_ = rule == "gated" || rule == "gated_delta";
    out.delta_ = rule == "delta" || rule == "gated_delta";
    if (rule != "linear" && !out.gated_ && !out.delta_)
      return invalid_graph("LinearAttention's update_rule must be linear, gated, delta or gated_delta, not '", rule,
                           "'");
    if (out.query_heads_ <= 0 || out.heads_ <= 0)
      return invalid_graph("LinearAttention needs q_num_heads and kv_num_heads");
    return {};
  }

  Status operator()(KernelContext& context) const {
    Tensor in[6];  // as float32
    for (size_t i = 0; i < 6 && i < context.input_count(); ++i)
      if (const Tensor* given = context.input(i)) PY_ORT_TRY(cast(*given, DType::float32, in[i]));
    const Tensor &query = in[0], &key = in[1], &value = in[2];
    PY_ORT_ENSURE(query.rank() == 3 && key.rank() == 3 && value.rank() == 3,
                  "LinearAttention needs queries, keys and values with three axes, got ", query.dims, ", ", key.dims,
                  " and ", value.dims);
    const int64_t batch = query.dim(0), tokens = query.dim(1), key_size = query.dim(2) / query_heads_,
                  value_size = value.dim(2) / heads_;
    const int64_t outer = std::max(query_heads_, heads_), shared = outer / heads_, repeats = outer / query_heads_;
    PY_ORT_ENSURE(outer % heads_ == 0 && outer % query_heads_ == 0 &&
                      key.dims == (Dims{batch, tokens, heads_ * key_size}) &&
                      value.dims == (Dims{batch, tokens, heads_ * value_size}),
                  "LinearAttention of queries ", query.dims, " in ", query_heads_, " heads, keys ", key.dims,
                  " and values ", value.dims, " in ", heads_);
    PY_ORT_ENSURE(!gated_ || in[4].storage, "LinearAttention needs its decay for this update_rule");
    PY_ORT_ENSURE(!delta_ || in[5].storage, "LinearAttention needs its beta for this update_rule");
    Dims own{batch, heads_, key_size, value_size}, dims = own;
    if (window_ > 0) dims.insert(dims.begin(), window_);
    PY_ORT_ENSURE(!in[3].storage || in[3].dims == dims, "LinearAttention has a past state of shape ", in[3].dims,
                  " that should be ", dims);
    const int64_t slots = std::max<int64_t>(1, window_), size = element_count(own);
    Tensor out, present;
    PY_ORT_TRY(Tensor::make(DType::float32, {batch, tokens, outer * value_size}, out));
    PY_ORT_TRY(Tensor::make(DType::float32, dims, present));
    float* states = present.mutable_data<float>();
    std::fill_n(states, present.count(), 0.0f);
    std::vector<float> state(static_cast<size_t>(key_size * value_size)), known(static_cast<size_t>(value_size));
    const float scale = scale_ != 0 ? scale_ : 1 / std::sqrt(static_cast<float>(key_size));
    const bool by_element = gated_ && in[4].dim(2) != heads_;
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads_; ++h) {
        const int64_t at = (b * heads_ + h) * key_size * value_size;
        if (in[3].storage) std::copy_n(in[3].data<float>() + (slots - 1) * size + at, state.size(), state.data());
        else std::fill(state.begin(), state.end(), 0.0f);
        for (int64_t t = 0; t < tokens; ++t) {
          const int64_t row = b * tokens + t;
          const float *k = key.data<float>() + (row * heads_ + h) * key_size,
                      *v = value.data<float>() + (row * heads_ + h) * value_size;
          if (gated_)
            decay(in[4].data<float>() + (by_element ? (row * heads_ + h) * key_size : row * heads_ + h), by_element,
                  state, key_size, value_size);
          std::fill(known.begin(), known.end(), 0.0f);
          float rate = 1;
          if (delta_) {
            const int64_t rates = in[5].dim(2);
            rate = in[5].data<float>()[row * rates + h % rates];
            for (int64_t i = 0; i < key_size; ++i) add(state.data() + i * value_size, k[i], value_size, known.data());
          }
          for (int64_t j = 0; j < value_size; ++j)
            known[static_cast<size_t>(j)] = rate * (v[j] - known[static_cast<size_t>(j)]);
          for (int64_t i = 0; i < key_size; ++i) add(known.data(), k[i], value_size, state.data() + i * value_size);
          for (int64_t s = 0; s < shared; ++s) {
            const float* q = query.data<float>() + (row * query_heads_ + (h * shared + s) / repeats) * key_size;
            float* y = out.mutable_data<float>() + (row * outer + h * shared + s) * value_size;
            std::fill_n(y, value_size, 0.0f);
            for (int64_t i = 0; i < key_size; ++i) add(state.data() + i * value_size, scale * q[i], value_size, y);
          }
          const int64_t slot = t + slots - tokens;
          if (slot >= 0) std::copy(state.begin(), state.end(), states + slot * size + at);
        }
        // Without tokens the state is unchanged.
        if (tokens == 0) std::copy(state.begin(), state.end(), states + (slots - 1) * size + at);
      }
    const Tensor* past = context.input_count() > 3 ? context.input(3) : nullptr;
    Tensor result, carried;
    PY_ORT_TRY(cast(out, context.input(0)->dtype, result));
    PY_ORT_TRY(cast(present, past ? past->dtype : context.input(0)->dtype, carried));
    context.output(0, std::move(result));
    if (context.wants(1)) context.output(1, std::move(carried));
    return {};
  }

 private:
  static void add(const float* x, float factor, int64_t count, float* to) {
    for (int64_t i = 0; i < count; ++i) to[i] += factor * x[i];
  }
  static void decay(const float* logarithms, bool by_element, std::vector<float>& state, int64_t key_size,
                    int64_t value_size) {
    float gate = by_element ? 1 : std::exp(*logarithms);
    for (int64_t i = 0; i < key_size; ++i) {
      if (by_element) gate = std::exp(logarithms[i]);
      float* row = state.data() + i * value_size;
      for (int64_t j = 0; j < value_size; ++j) row[j] *= gate;
    }
  }
  int64_t query_heads_ = 0, heads_ = 0, window_ = 0;
  float scale_ = 0;
  bool gated_ = false, delta_ = false;
};

PY_ORT_KERNEL("", "LinearAttention", "float32,float16,bfloat16", LinearAttention);

}  // namespace
}  // namespace py_ort
