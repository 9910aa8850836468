// GRU: gates in the order update, reset, hidden.
#include "kernels/shared/half_precision.h"
#include "kernels/recurrent/recurrent.h"

namespace py_ort {
namespace {

class GruCell : public Cell {
 public:
  static std::unique_ptr<Cell> make(const RecurrentNet& net, const RecurrentWeights& weights, int64_t direction,
                                    int64_t batch) {
    return std::make_unique<GruCell>(net, weights, direction, batch);
  }
  GruCell(const RecurrentNet& net, const RecurrentWeights& weights, int64_t direction, int64_t batch)
      : net_(net), weights_(weights), direction_(direction), batch_(batch),
        turned_(static_cast<size_t>(batch * weights.hidden)), product_(turned_.size()) {}

  Status step(float* gates, const std::vector<bool>& active, float* h, float*) override {
    const int64_t n = weights_.hidden;
    const Activation &f = net_.activation(direction_, 0), &g = net_.activation(direction_, 1);
    const float *bias = weights_.bias_r, clip = net_.clip();
    PY_ORT_TRY(add_recurrent(h, weights_.r[0], batch_, n, 2 * n, gates, 3 * n));
    for (int64_t b = 0; b < batch_; ++b) {
      float* row = gates + b * 3 * n;
      if (bias)
        for (int64_t i = 0; i < 2 * n; ++i) row[i] += bias[i];
      activate_row(f, clip, row, 2 * n);
      for (int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<size_t>(b * n + i);
        turned_[at] = net_.linear_before_reset() ? h[at] : row[n + i] * h[at];
        product_[at] = bias ? bias[2 * n + i] : 0.0f;
      }
    }
    PY_ORT_TRY(add_recurrent(turned_.data(), weights_.r[1], batch_, n, n, product_.data(), n));
    for (int64_t b = 0; b < batch_; ++b) {
      if (!active[static_cast<size_t>(b)]) continue;
      float *update = gates + b * 3 * n, *reset = update + n, *hidden = update + 2 * n, *state = h + b * n;
      const float* product = product_.data() + b * n;
      for (int64_t i = 0; i < n; ++i) hidden[i] += net_.linear_before_reset() ? reset[i] * product[i] : product[i];
      activate_row(g, clip, hidden, n);
      for (int64_t i = 0; i < n; ++i) state[i] = (1 - update[i]) * hidden[i] + update[i] * state[i];
    }
    return {};
  }

 private:
  const RecurrentNet& net_;
  RecurrentWeights weights_;
  int64_t direction_, batch_;
  std::vector<float> turned_, product_;
};

class GRU {
 public:
  static Status make(const KernelInfo& info, GRU& out) { return out.net_.read(info, {2, 1}, {"Sigmoid", "Tanh"}); }
  Status operator()(KernelContext& context) const { return net_.run(context, GruCell::make); }

 private:
  RecurrentNet net_;
};

PY_ORT_KERNEL("", "GRU",
              "float32,float16,bfloat16;float32,float16,bfloat16;float32,float16,bfloat16;float32,float16,bfloat16;"
              "int32;float32,float16,bfloat16",
              WithHalf<GRU>);

}  // namespace
}  // namespace py_ort
