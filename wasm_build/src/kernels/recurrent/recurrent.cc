#include "kernels/recurrent/recurrent.h"

#include <algorithm>

#include "kernels/shared/axes.h"

namespace py_ort {

namespace {

// Weights [directions, gates * hidden, k] as the right operands of products, in panels: [columns / 8, k, 8].
Status pack(const Tensor& weights, const GateColumns& columns, Tensor& out) {
  const int64_t k = weights.dims[2];
  PY_ORT_TRY(Tensor::make(DType::float32, {columns.count() * k}, out));
  columns.for_each_gate([&](int64_t at, int64_t gate) {
    const float* from = weights.data<float>() + gate * columns.hidden * k;
    pack_panels(row_major(from, columns.hidden, k).transposed(), 1, out.mutable_data<float>() + at * k);
  });
  return {};
}

Status zeros(int64_t count, Tensor& out) {
  PY_ORT_TRY(Tensor::make(DType::float32, {count}, out));
  std::fill_n(out.mutable_data<float>(), count, 0.0f);
  return {};
}

}  // namespace

Status RecurrentNet::read(const KernelInfo& info, RecurrentSteps::Cell cell, std::vector<std::string> otherwise) {
  const Attributes& a = info.attributes;
  form_.cell = cell;
  form_.clip = a.number("clip", 0);
  form_.input_forget = a.integer("input_forget", 0) != 0;
  form_.linear_before_reset = a.integer("linear_before_reset", 0) != 0;
  form_.rounded_states = a.integer("quantized_state", 0) != 0;
  hidden_ = a.integer("hidden_size", 0);
  batch_first_ = a.integer("layout", 0) != 0;
  const std::string direction = a.text("direction", "forward");
  if (direction == "forward") reverse_ = {false};
  else if (direction == "reverse") reverse_ = {true};
  else if (direction == "bidirectional") reverse_ = {false, true};
  else return invalid_graph("direction cannot be ", direction);
  std::vector<std::string> names = a.texts("activations");
  if (names.empty())
    for (size_t d = 0; d < reverse_.size(); ++d) names.insert(names.end(), otherwise.begin(), otherwise.end());
  if (names.size() != otherwise.size() * reverse_.size())
    return invalid_graph("expected ", otherwise.size() * reverse_.size(), " activations, got ", names);
  // Each activation uses the next numbers, if it has parameters.
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

// Inputs: X, W, R, B, sequence_lens, initial_h, and for LSTM initial_c and P. Outputs: Y, Y_h, and for LSTM Y_c.
Status RecurrentNet::run(KernelContext& context) const {
  const Tensor &x = *context.input(0), &r = *context.input(2), *sequence_lens = context.input(4);
  PY_ORT_ENSURE(x.rank() == 3 && context.input(1)->rank() == 3 && r.rank() == 3,
                "X, W and R must have three axes, not the shapes ", x.dims, ", ", context.input(1)->dims, " and ",
                r.dims);
  const Sizes s{x.dims[batch_first_], x.dims[!batch_first_], x.dims[2]};
  const GateColumns columns{static_cast<int64_t>(reverse_.size()), form_.gates(), r.dims[quantized_weights_ ? 1 : 2]};
  PY_ORT_TRY(check(context, s, columns));
  std::vector<int64_t> lengths(static_cast<size_t>(s.batch), s.steps);
  if (sequence_lens) PY_ORT_TRY(read_integers(*sequence_lens, lengths));
  PY_ORT_ENSURE(static_cast<int64_t>(lengths.size()) == s.batch, "sequence_lens of shape ", sequence_lens->dims,
                " does not fit a batch of ", s.batch);
  for (int64_t length : lengths)
    PY_ORT_ENSURE(length >= 0 && length <= s.steps, "a sequence cannot have ", length, " of ", s.steps, " steps");

  Outputs outputs;
  const int64_t directions = columns.directions, hidden = columns.hidden;
  const Dims state_dims = batch_first_ ? Dims{s.batch, directions, hidden} : Dims{directions, s.batch, hidden};
  PY_ORT_TRY(context.output(
      0, DType::float32,
      batch_first_ ? Dims{s.batch, s.steps, directions, hidden} : Dims{s.steps, directions, s.batch, hidden},
      outputs[0]));
  PY_ORT_TRY(context.output(1, DType::float32, state_dims, outputs[1]));
  PY_ORT_TRY(context.output(2, DType::float32, state_dims, outputs[2]));
  std::fill_n(outputs[0]->mutable_data<float>(), outputs[0]->count(), 0.0f);
  if (s.batch == 0 || hidden == 0) return {};
  Tensor from_x;
  PY_ORT_TRY(multiply_x(context, s, columns, *std::max_element(lengths.begin(), lengths.end()), from_x));
  return run_steps(context, s, columns, lengths, from_x, outputs);
}

Status RecurrentNet::check(const KernelContext& context, const Sizes& s, const GateColumns& columns) const {
  const Tensor &w = *context.input(1), &r = *context.input(2), *bias = context.input(3), *peepholes = context.input(7);
  const int64_t rows = columns.gates * columns.hidden, directions = columns.directions;
  const auto fits = [&](const Tensor& weights, int64_t k) {
    return weights.dims == (quantized_weights_ ? Dims{directions, k, rows} : Dims{directions, rows, k});
  };
  PY_ORT_ENSURE(fits(w, s.input) && fits(r, columns.hidden), "W and R of shapes ", w.dims, " and ", r.dims,
                " do not fit X of shape ", context.input(0)->dims);
  PY_ORT_ENSURE(hidden_ == 0 || hidden_ == columns.hidden, "hidden_size is ", hidden_, ", but R has the shape ",
                r.dims);
  PY_ORT_ENSURE(!bias || bias->count() == directions * 2 * rows, "B of shape ", bias->dims, " does not fit W of shape ",
                w.dims);
  for (const Tensor* state : {context.input(5), context.input(6)})
    PY_ORT_ENSURE(!state || state->count() == directions * s.batch * columns.hidden, "the initial state of shape ",
                  state->dims, " does not fit");
  PY_ORT_ENSURE(!peepholes || peepholes->count() == directions * 3 * columns.hidden, "P of shape ", peepholes->dims,
                " does not fit R of shape ", r.dims);
  return {};
}

Status RecurrentNet::multiply_x(KernelContext& context, const Sizes& s, const GateColumns& columns, int64_t longest,
                                Tensor& from_x) const {
  const Tensor &x = *context.input(0), &w = *context.input(1), *bias = context.input(3);
  const int64_t rows = s.steps * s.batch, n = columns.count();
  PY_ORT_TRY(Tensor::make(DType::float32, {rows, n}, from_x));
  Tensor row;
  if (bias) PY_ORT_TRY(biases(*bias, columns, row));
  const float* row_data = bias ? row.data<float>() : nullptr;
  if (quantized_weights_) {
    const IntegerPanels* panels;
    PY_ORT_TRY(w_bytes_.get(w, panels, [&](IntegerPanels& out) -> Status {
      QuantizedOperand::pack(w, columns, out);
      return {};
    }));
    QuantizedOperand operand;
    PY_ORT_TRY(QuantizedOperand::make(*panels, columns, w.dtype, *context.input(8), context.input(9), operand));
    // Steps after the longest sequence do not count in X's range.
    std::vector<uint8_t> bytes(static_cast<size_t>(x.count()) + kPastEnd);
    const DynamicRange range = quantize_dynamically(x.data<float>(), longest * s.batch * s.input, bytes.data());
    return operand.multiply(bytes.data(), range, rows, row_data, from_x.mutable_data<float>());
  }
  const Tensor* panels;
  PY_ORT_TRY(w_panels_.get(w, panels, [&](Tensor& out) { return pack(w, columns, out); }));
  ProductEnd end;
  end.c = from_x.mutable_data<float>(), end.c_stride = n, end.bias = row_data;
  return multiply_panels(row_major(x.data<float>(), rows, s.input), panels->data<float>(), n, end);
}

Status RecurrentNet::biases(const Tensor& bias, const GateColumns& columns, Tensor& out) const {
  PY_ORT_TRY(zeros(columns.count(), out));
  columns.for_each_gate([&](int64_t at, int64_t gate) {
    const int64_t direction = gate / columns.gates, i = gate % columns.gates;
    const float* w = bias.data<float>() + (2 * direction * columns.gates + i) * columns.hidden;
    const float* r = w + columns.gates * columns.hidden;
    const bool apart = i == 2 && form_.bias_behind_reset();
    for (int64_t j = 0; j < columns.hidden; ++j) out.mutable_data<float>()[at + j] = apart ? w[j] : w[j] + r[j];
  });
  return {};
}

Status RecurrentNet::run_steps(KernelContext& context, const Sizes& s, const GateColumns& columns,
                               const std::vector<int64_t>& lengths, const Tensor& from_x,
                               const Outputs& outputs) const {
  const Tensor &r = *context.input(2), *bias = context.input(3), *peepholes = context.input(7);
  const int64_t hidden = columns.hidden, width = columns.width(), states = s.batch * width;
  RecurrentSteps p = form_;
  p.steps = static_cast<int32_t>(*std::max_element(lengths.begin(), lengths.end()));
  p.batch = static_cast<int32_t>(s.batch), p.hidden = static_cast<int32_t>(hidden);
  p.width = static_cast<int32_t>(width), p.directions = static_cast<int32_t>(columns.directions);
  p.lengths = lengths.data();
  p.x_stride = columns.count(), p.x_step = batch_first_ ? 1 : s.batch, p.x_batch = batch_first_ ? s.steps : 1;
  p.y_step = columns.directions * hidden * (batch_first_ ? 1 : s.batch);
  p.y_batch = hidden * (batch_first_ ? s.steps * columns.directions : 1);

  const Tensor* panels = nullptr;
  const IntegerPanels* bytes = nullptr;
  QuantizedOperand operand;
  if (quantized_weights_) {
    PY_ORT_TRY(r_bytes_.get(r, bytes, [&](IntegerPanels& out) -> Status {
      QuantizedOperand::pack(r, columns, out);
      return {};
    }));
    PY_ORT_TRY(QuantizedOperand::make(*bytes, columns, r.dtype, *context.input(10), context.input(11), operand));
  } else {
    PY_ORT_TRY(r_panels_.get(r, panels, [&](Tensor& out) { return pack(r, columns, out); }));
  }
  // For each direction: gates, a product, h twice, c, three peepholes, the bias.
  const int64_t each = s.batch * columns.each() + 4 * states + 4 * width;
  Tensor work;
  PY_ORT_TRY(zeros(columns.directions * each, work));
  std::vector<RecurrentSteps::Direction> directions(reverse_.size());
  std::vector<I8Gemm> integers(reverse_.size());
  const size_t functions = activations_.size() / reverse_.size();
  for (size_t i = 0; i < directions.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    RecurrentSteps::Direction& d = directions[i];
    const Activation* activations = activations_.data() + i * functions;
    d.reverse = reverse_[i];
    d.f = activations[0];
    if (functions > 1) d.g = activations[1];
    if (functions > 2) d.h = activations[2];
    if (panels) d.r = panels->data<float>() + at * columns.each() * hidden;
    if (bytes) {
      integers[i] = operand.from(at * columns.each());
      integers[i].rows = static_cast<int32_t>(s.batch);
      d.integers = &integers[i], d.r_scales = operand.scales() + at * columns.each();
    }
    d.from_x = from_x.data<float>() + at * columns.each();
    d.gates = work.mutable_data<float>() + at * each;
    d.product = d.gates + s.batch * columns.each();
    d.h_states = d.product + states, d.c = d.h_states + 2 * states;
    float *peeps = d.c + states, *r_bias = peeps + 3 * width;
    if (peepholes)
      for (int64_t j = 0; j < 3; ++j)
        std::copy_n(peepholes->data<float>() + (3 * at + j) * hidden, hidden, peeps + j * width);
    d.peepholes = peepholes ? peeps : nullptr;
    if (bias && form_.bias_behind_reset()) {
      std::copy_n(bias->data<float>() + ((2 * at + 1) * columns.gates + 2) * hidden, hidden, r_bias);
      d.r_bias = r_bias;
    }
    d.y = outputs[0]->mutable_data<float>() + at * hidden * (batch_first_ ? 1 : s.batch);
  }
  p.direction = directions.data();

  // A state is [directions, batch, hidden], or [batch, directions, hidden].
  const auto for_each_state = [&](auto&& f) {
    for (int64_t d = 0; d < columns.directions; ++d)
      for (int64_t b = 0; b < s.batch; ++b)
        f(directions[static_cast<size_t>(d)], b,
          (batch_first_ ? b * columns.directions + d : d * s.batch + b) * hidden);
  };
  const auto load = [&](const Tensor* from, int64_t at, float* to) {
    if (from) std::copy_n(from->data<float>() + at, hidden, to);
  };
  for_each_state([&](const auto& d, int64_t b, int64_t at) {
    load(context.input(5), at, d.h_states + b * width);
    load(context.input(6), at, d.c + b * width);
  });
  if (!run_microkernel(microkernels().recurrent_steps, p))
    return out_of_memory("no memory for the scratch space of a recurrent layer");
  for_each_state([&](const auto& d, int64_t b, int64_t at) {
    // A sequence of no steps ends in zeros, as in onnxruntime, whatever its initial state is.
    if (lengths[static_cast<size_t>(b)] == 0) {
      for (size_t i = 1; i < 3; ++i) std::fill_n(outputs[i]->template mutable_data<float>() + at, hidden, 0.0f);
      return;
    }
    std::copy_n(d.h_states + p.steps % 2 * states + b * width, hidden, outputs[1]->template mutable_data<float>() + at);
    std::copy_n(d.c + b * width, hidden, outputs[2]->template mutable_data<float>() + at);
  });
  return {};
}

}  // namespace py_ort
