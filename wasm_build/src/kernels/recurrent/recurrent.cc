#include "kernels/recurrent/recurrent.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/shared/axes.h"
#include "microkernels/activation.h"
#include "kernels/quantization/quantization.h"

namespace py_ort {

namespace {
// The [rows, k] matrix at `from`, transposed, in panels.
Status pack_transposed(const float* from, int64_t rows, int64_t k, Tensor& out) {
  PY_ORT_TRY(Tensor::make(DType::float32, {static_cast<int64_t>(panels_size(k, rows))}, out));
  pack_panels(row_major(from, rows, k).transposed(), 1, out.mutable_data<float>());
  return {};
}
}  // namespace

Status add_recurrent(const float* h, const Tensor& panels, int64_t batch, int64_t hidden, int64_t columns, float* gates,
                     int64_t stride) {
  ProductEnd end;
  end.c = gates, end.c_stride = stride;
  end.z = gates, end.z_stride = stride;
  return multiply_panels(row_major(h, batch, hidden), panels.data<float>(), columns, end);
}

void quantize_states(const float* h, const std::vector<bool>& active, int64_t hidden, float* out) {
  float low = 0, high = 0;
  for (size_t b = 0; b < active.size(); ++b) {
    const float* row = h + static_cast<int64_t>(b) * hidden;
    float* to = out + static_cast<int64_t>(b) * hidden;
    for (int64_t i = 0; i < hidden; ++i)
      to[i] = active[b] ? row[i] : 0, low = std::min(low, to[i]), high = std::max(high, to[i]);
  }
  const auto [scale, zero] = DynamicRange::of(low, high);
  for (int64_t i = 0; i < static_cast<int64_t>(active.size()) * hidden; ++i)
    out[i] = (std::clamp(std::nearbyint(out[i] / scale) + zero, 0.0f, 255.0f) - zero) * scale;
}

void activate_row(const Activation& activation, float clip, float* x, int64_t count) {
  for (int64_t i = 0; i < count; i += 4) {
    const auto left = static_cast<int32_t>(count - i);
    v128_t v = PY_ORT_TARGET::load_some(x + i, left);
    if (clip > 0) v = simd::at_least(simd::at_most(v, simd::splat(clip)), simd::splat(-clip));
    PY_ORT_TARGET::store_some(x + i, PY_ORT_TARGET::activate(activation, v), left);
  }
}

Status RecurrentNet::read(const KernelInfo& info, std::vector<int64_t> splits, std::vector<std::string> otherwise) {
  const Attributes& a = info.attributes;
  splits_ = std::move(splits);
  gates_ = std::accumulate(splits_.begin(), splits_.end(), int64_t{0});
  hidden_ = a.integer("hidden_size", 0);
  clip_ = a.number("clip", 0);
  batch_first_ = a.integer("layout", 0) != 0;
  input_forget_ = a.integer("input_forget", 0) != 0, linear_before_reset_ = a.integer("linear_before_reset", 0) != 0;
  quantized_state_ = a.integer("quantized_state", 0) != 0;
  const std::string direction = a.text("direction", "forward");
  if (direction == "forward") directions_ = {kForward};
  else if (direction == "reverse") directions_ = {kReverse};
  else if (direction == "bidirectional") directions_ = {kForward, kReverse};
  else return invalid_graph("direction cannot be ", direction);
  per_direction_ = otherwise.size();
  std::vector<std::string> names = a.texts("activations");
  if (names.empty())
    for (size_t d = 0; d < directions_.size(); ++d) names.insert(names.end(), otherwise.begin(), otherwise.end());
  if (names.size() != per_direction_ * directions_.size())
    return invalid_graph("expected ", per_direction_ * directions_.size(), " activations, got ", names);
  // Each activation takes the next numbers, if it takes any.
  const std::vector<float> alphas = a.numbers("activation_alpha"), betas = a.numbers("activation_beta");
  size_t next_alpha = 0, next_beta = 0;
  for (const std::string& name : names) {
    std::vector<float> params;
    const int count = activation_params(name);
    if (count >= 1 && next_alpha < alphas.size()) params.push_back(alphas[next_alpha++]);
    if (count >= 2 && next_beta < betas.size() && !params.empty()) params.push_back(betas[next_beta++]);
    PY_ORT_TRY(make_activation(name, params, activations_.emplace_back()));
  }
  return {};
}

// Inputs: X, W, R, B, sequence_lens, initial_h, and of LSTM initial_c and P. Outputs: Y, Y_h, and of LSTM Y_c.
Status RecurrentNet::run(KernelContext& context, MakeCell make_cell) const {
  const Tensor &x = *context.input(0), &w = *context.input(1), &r = *context.input(2);
  const Tensor *bias = context.input(3), *sequence_lens = context.input(4), *initial_h = context.input(5),
               *initial_c = context.input(6), *peepholes = context.input(7);
  PY_ORT_ENSURE(x.rank() == 3 && w.rank() == 3 && r.rank() == 3, "X, W and R must have three axes, not the shapes ",
                x.dims, ", ", w.dims, " and ", r.dims);
  const Sizes s{x.dims[batch_first_], x.dims[!batch_first_], x.dims[2], r.dims[quantized_weights_ ? 1 : 2],
                static_cast<int64_t>(directions_.size())};
  const int64_t rows = gates_ * s.hidden;
  const auto fits = [&](const Tensor& weights, int64_t k) {
    return weights.dims == (quantized_weights_ ? Dims{s.directions, k, rows} : Dims{s.directions, rows, k});
  };
  PY_ORT_ENSURE(fits(w, s.input) && fits(r, s.hidden), "W and R of shapes ", w.dims, " and ", r.dims,
                " do not fit X of shape ", x.dims);
  PY_ORT_ENSURE(hidden_ == 0 || hidden_ == s.hidden, "hidden_size is ", hidden_, ", but R has the shape ", r.dims);
  PY_ORT_ENSURE(!bias || bias->count() == s.directions * 2 * rows, "B of shape ", bias->dims,
                " does not fit W of shape ", w.dims);
  for (const Tensor* state : {initial_h, initial_c})
    PY_ORT_ENSURE(!state || state->count() == s.directions * s.batch * s.hidden, "the initial state of shape ",
                  state->dims, " does not fit");
  PY_ORT_ENSURE(!peepholes || peepholes->count() == s.directions * 3 * s.hidden, "P of shape ", peepholes->dims,
                " does not fit R of shape ", r.dims);
  std::vector<int64_t> lengths(static_cast<size_t>(s.batch), s.steps);
  if (sequence_lens) PY_ORT_TRY(read_integers(*sequence_lens, lengths));
  PY_ORT_ENSURE(static_cast<int64_t>(lengths.size()) == s.batch, "sequence_lens of shape ", sequence_lens->dims,
                " does not fit a batch of ", s.batch);
  for (int64_t length : lengths)
    PY_ORT_ENSURE(length >= 0 && length <= s.steps, "a sequence cannot have ", length, " of ", s.steps, " steps");

  Tensor *y, *y_h, *y_c;
  const Dims state_dims = batch_first_ ? Dims{s.batch, s.directions, s.hidden} : Dims{s.directions, s.batch, s.hidden};
  PY_ORT_TRY(context.output(
      0, DType::float32,
      batch_first_ ? Dims{s.batch, s.steps, s.directions, s.hidden} : Dims{s.steps, s.directions, s.batch, s.hidden},
      y));
  PY_ORT_TRY(context.output(1, DType::float32, state_dims, y_h));
  PY_ORT_TRY(context.output(2, DType::float32, state_dims, y_c));
  std::fill_n(y->mutable_data<float>(), y->count(), 0.0f);
  if (s.batch == 0 || s.hidden == 0) return {};

  const std::vector<Tensor>*w_panels = nullptr, *r_panels = nullptr;
  const std::vector<IntegerPanels>*w_bytes = nullptr, *r_bytes = nullptr;
  std::vector<uint8_t> x_bytes;
  DynamicRange x_range{};
  if (quantized_weights_) {
    const auto pack = [&](const Tensor& weights, std::vector<IntegerPanels>& out) -> Status {
      out.resize(static_cast<size_t>(s.directions));
      const int64_t k = weights.dims[1];
      for (int64_t d = 0; d < s.directions; ++d)
        out[static_cast<size_t>(d)].fill(weights, d * k * rows, k, rows, rows, 1);
      return {};
    };
    PY_ORT_TRY(w_bytes_.get(w, w_bytes, [&](std::vector<IntegerPanels>& out) { return pack(w, out); }));
    PY_ORT_TRY(r_bytes_.get(r, r_bytes, [&](std::vector<IntegerPanels>& out) { return pack(r, out); }));
    // What is behind the longest sequence has no part in the range of X.
    x_bytes.resize(static_cast<size_t>(x.count()) + kPastEnd);
    const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
    x_range = quantize_dynamically(x.data<float>(), longest * s.batch * s.input, x_bytes.data());
  } else {
    PY_ORT_TRY(w_panels_.get(w, w_panels, [&](std::vector<Tensor>& out) -> Status {
      for (int64_t d = 0; d < s.directions; ++d)
        PY_ORT_TRY(pack_transposed(w.data<float>() + d * rows * s.input, rows, s.input, out.emplace_back()));
      return {};
    }));
    PY_ORT_TRY(r_panels_.get(r, r_panels, [&](std::vector<Tensor>& out) -> Status {
      const float* from = r.data<float>();
      for (int64_t d = 0; d < s.directions; ++d) {
        for (int64_t gates : splits_) {
          PY_ORT_TRY(pack_transposed(from, gates * s.hidden, s.hidden, out.emplace_back()));
          from += gates * s.hidden * s.hidden;
        }
      }
      return {};
    }));
  }
  std::vector<float> h(static_cast<size_t>(s.batch * s.hidden)), c(h.size());
  for (int64_t d = 0; d < s.directions; ++d) {
    QuantizedOperand quantized_w, quantized_r;
    if (quantized_weights_) {
      const auto at = static_cast<size_t>(d);
      PY_ORT_TRY(QuantizedOperand::make((*w_bytes)[at], w.dtype, *context.input(8), context.input(9), d, quantized_w));
      PY_ORT_TRY(
          QuantizedOperand::make((*r_bytes)[at], r.dtype, *context.input(10), context.input(11), d, quantized_r));
    }
    const RecurrentWeights weights{gates_,
                                   s.hidden,
                                   r_panels ? r_panels->data() + static_cast<size_t>(d) * splits_.size() : nullptr,
                                   quantized_weights_ ? &quantized_r : nullptr,
                                   bias ? bias->data<float>() + (2 * d + 1) * rows : nullptr,
                                   peepholes ? peepholes->data<float>() + d * 3 * s.hidden : nullptr};
    // A state is [directions, batch, hidden], or [batch, directions, hidden].
    const auto state_at = [&](int64_t b) { return (batch_first_ ? b * s.directions + d : d * s.batch + b) * s.hidden; };
    for (int64_t b = 0; b < s.batch; ++b) {
      const auto load = [&](const Tensor* from, std::vector<float>& to) {
        float* row = to.data() + b * s.hidden;
        if (from) std::copy_n(from->data<float>() + state_at(b), s.hidden, row);
        else std::fill_n(row, s.hidden, 0.0f);
      };
      load(initial_h, h);
      load(initial_c, c);
    }
    const std::unique_ptr<Cell> cell = make_cell(*this, weights, d, s.batch);
    Tensor from_x;
    PY_ORT_TRY(Tensor::make(DType::float32, {s.steps * s.batch, rows}, from_x));
    const float* bias_w = bias ? bias->data<float>() + 2 * d * rows : nullptr;
    if (quantized_weights_) {
      PY_ORT_TRY(
          quantized_w.multiply(x_bytes.data(), x_range, s.steps * s.batch, bias_w, from_x.mutable_data<float>()));
    } else {
      ProductEnd end;
      end.c = from_x.mutable_data<float>(), end.c_stride = rows, end.bias = bias_w;
      PY_ORT_TRY(multiply_panels(row_major(x.data<float>(), s.steps * s.batch, s.input),
                                 (*w_panels)[static_cast<size_t>(d)].data<float>(), rows, end));
    }
    PY_ORT_TRY(run_direction(weights, from_x, s, d, lengths, *cell, y->mutable_data<float>(), h.data(), c.data()));
    for (int64_t b = 0; b < s.batch; ++b) {
      // A sequence of no steps leaves zeros, as in onnxruntime, whatever its initial state is.
      const bool empty = lengths[static_cast<size_t>(b)] == 0;
      for (const auto& [state, out] : {std::pair(&h, y_h), std::pair(&c, y_c)}) {
        float* to = out->mutable_data<float>() + state_at(b);
        if (empty) std::fill_n(to, s.hidden, 0.0f);
        else std::copy_n(state->data() + b * s.hidden, s.hidden, to);
      }
    }
  }
  return {};
}

Status RecurrentNet::run_direction(const RecurrentWeights& weights, const Tensor& from_x, const Sizes& s,
                                   int64_t direction, const std::vector<int64_t>& lengths, Cell& cell, float* y,
                                   float* h, float* c) const {
  const int64_t width = weights.gates * s.hidden;
  Tensor gates;
  PY_ORT_TRY(Tensor::make(DType::float32, {s.batch, width}, gates));
  const bool reverse = directions_[static_cast<size_t>(direction)] == kReverse;
  std::vector<bool> active(static_cast<size_t>(s.batch));
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  for (int64_t step = 0; step < longest; ++step) {
    const auto time = [&](int64_t b) { return reverse ? lengths[static_cast<size_t>(b)] - 1 - step : step; };
    for (int64_t b = 0; b < s.batch; ++b) {
      active[static_cast<size_t>(b)] = step < lengths[static_cast<size_t>(b)];
      const int64_t t = active[static_cast<size_t>(b)] ? time(b) : 0;
      std::copy_n(from_x.data<float>() + (batch_first_ ? b * s.steps + t : t * s.batch + b) * width, width,
                  gates.mutable_data<float>() + b * width);
    }
    PY_ORT_TRY(cell.step(gates.mutable_data<float>(), active, h, c));
    for (int64_t b = 0; b < s.batch; ++b) {
      if (!active[static_cast<size_t>(b)]) continue;
      const int64_t at = batch_first_ ? (b * s.steps + time(b)) * s.directions + direction
                                      : (time(b) * s.directions + direction) * s.batch + b;
      std::copy_n(h + b * s.hidden, s.hidden, y + at * s.hidden);
    }
  }
  return {};
}

}  // namespace py_ort
