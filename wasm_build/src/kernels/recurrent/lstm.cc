// LSTM, and com.microsoft's DynamicQuantizeLSTM: gates in the order input, output, forget, cell.
#include "kernels/shared/half_precision.h"
#include "kernels/recurrent/recurrent.h"

namespace py_ort {
namespace {

class LstmCell : public Cell {
 public:
  static std::unique_ptr<Cell> make(const RecurrentNet& net, const RecurrentWeights& weights, int64_t direction,
                                    int64_t batch) {
    return std::make_unique<LstmCell>(net, weights, direction, batch);
  }
  LstmCell(const RecurrentNet& net, const RecurrentWeights& weights, int64_t direction, int64_t batch)
      : net_(net), weights_(weights), direction_(direction), batch_(batch) {}

  Status step(float* gates, const std::vector<bool>& active, float* h, float* c) override {
    const int64_t n = weights_.hidden;
    if (weights_.quantized_r) {
      PY_ORT_TRY(add_quantized(gates, active, h));
    } else if (!net_.quantized_state()) {
      PY_ORT_TRY(add_recurrent(h, weights_.r[0], batch_, n, 4 * n, gates, 4 * n));
    } else {
      quantized_.resize(static_cast<size_t>(batch_ * n));
      quantize_states(h, was_active_.empty() ? std::vector<bool>(static_cast<size_t>(batch_), true) : was_active_, n,
                      quantized_.data());
      was_active_ = active;
      PY_ORT_TRY(add_recurrent(quantized_.data(), weights_.r[0], batch_, n, 4 * n, gates, 4 * n));
    }
    const Activation &f = net_.activation(direction_, 0), &g = net_.activation(direction_, 1),
                     &hidden = net_.activation(direction_, 2);
    const float clip = net_.clip();
    for (int64_t b = 0; b < batch_; ++b, gates += 4 * n, h += n, c += n) {
      if (!active[static_cast<size_t>(b)]) continue;
      float *input = gates, *output = gates + n, *forget = gates + 2 * n, *cell = gates + 3 * n;
      if (weights_.bias_r)
        for (int64_t i = 0; i < 4 * n; ++i) gates[i] += weights_.bias_r[i];
      const float* p = weights_.peepholes;  // input, output, forget
      if (p)
        for (int64_t i = 0; i < n; ++i) input[i] += p[i] * c[i], forget[i] += p[2 * n + i] * c[i];
      activate_row(f, clip, input, n);
      if (net_.input_forget())
        for (int64_t i = 0; i < n; ++i) forget[i] = 1 - input[i];
      else activate_row(f, clip, forget, n);
      activate_row(g, clip, cell, n);
      for (int64_t i = 0; i < n; ++i) c[i] = forget[i] * c[i] + input[i] * cell[i];
      if (p)
        for (int64_t i = 0; i < n; ++i) output[i] += p[n + i] * c[i];
      activate_row(f, clip, output, n);
      for (int64_t i = 0; i < n; ++i) h[i] = c[i];
      activate_row(hidden, 0, h, n);
      for (int64_t i = 0; i < n; ++i) h[i] *= output[i];
    }
    return {};
  }

 private:
  // gates += H R, of states in bytes by their own range, all sequences together; those that are over count as zeros.
  Status add_quantized(float* gates, const std::vector<bool>& active, const float* h) {
    const int64_t n = weights_.hidden, count = batch_ * n;
    quantized_.assign(h, h + count);
    for (size_t b = 0; b < was_active_.size(); ++b)
      if (!was_active_[b]) std::fill_n(quantized_.begin() + static_cast<int64_t>(b) * n, n, 0.0f);
    was_active_ = active;
    bytes_.resize(static_cast<size_t>(count) + kPastEnd);
    sums_.resize(static_cast<size_t>(4 * count));
    const DynamicRange range = quantize_dynamically(quantized_.data(), count, bytes_.data());
    PY_ORT_TRY(weights_.quantized_r->multiply(bytes_.data(), range, batch_, nullptr, sums_.data()));
    for (int64_t i = 0; i < 4 * count; ++i) gates[i] += sums_[static_cast<size_t>(i)];
    return {};
  }

  const RecurrentNet& net_;
  RecurrentWeights weights_;
  int64_t direction_, batch_;
  std::vector<float> quantized_, sums_;
  std::vector<uint8_t> bytes_;
  std::vector<bool> was_active_;  // in the step before
};

class LSTM {
 public:
  static Status make(const KernelInfo& info, LSTM& out) {
    return out.net_.read(info, {4}, {"Sigmoid", "Tanh", "Tanh"});
  }
  Status operator()(KernelContext& context) const { return net_.run(context, LstmCell::make); }

 private:
  RecurrentNet net_;
};

class DynamicQuantizeLSTM {
 public:
  static Status make(const KernelInfo& info, DynamicQuantizeLSTM& out) {
    out.net_.quantize_weights();
    return out.net_.read(info, {4}, {"Sigmoid", "Tanh", "Tanh"});
  }
  Status operator()(KernelContext& context) const {
    PY_ORT_ENSURE(context.input(8) && context.input(10), "the scales of W and R, inputs 8 and 10, are missing");
    return net_.run(context, LstmCell::make);
  }

 private:
  RecurrentNet net_;
};

PY_ORT_KERNEL(kMicrosoftDomain, "DynamicQuantizeLSTM",
              "float32;int8,uint8;int8,uint8;float32;int32;float32;float32;float32;float32;int8,uint8;float32;"
              "int8,uint8",
              DynamicQuantizeLSTM);
PY_ORT_KERNEL("", "LSTM",
              "float32,float16,bfloat16;float32,float16,bfloat16;float32,float16,bfloat16;float32,float16,bfloat16;"
              "int32;float32,float16,bfloat16",
              WithHalf<LSTM>);

}  // namespace
}  // namespace py_ort
