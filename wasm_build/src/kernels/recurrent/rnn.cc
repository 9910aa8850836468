// RNN: one gate, the new state.
#include "kernels/shared/half_precision.h"
#include "kernels/recurrent/recurrent.h"

namespace py_ort {
namespace {

class RnnCell : public Cell {
 public:
  static std::unique_ptr<Cell> make(const RecurrentNet& net, const RecurrentWeights& weights, int64_t direction,
                                    int64_t batch) {
    return std::make_unique<RnnCell>(net, weights, direction, batch);
  }
  RnnCell(const RecurrentNet& net, const RecurrentWeights& weights, int64_t direction, int64_t batch)
      : net_(net), weights_(weights), direction_(direction), batch_(batch) {}

  Status step(float* gates, const std::vector<bool>& active, float* h, float*) override {
    const int64_t n = weights_.hidden;
    PY_ORT_TRY(add_recurrent(h, weights_.r[0], batch_, n, n, gates, n));
    for (int64_t b = 0; b < batch_; ++b) {
      if (!active[static_cast<size_t>(b)]) continue;
      for (int64_t i = 0; i < n; ++i) h[b * n + i] = gates[b * n + i] + (weights_.bias_r ? weights_.bias_r[i] : 0.0f);
      activate_row(net_.activation(direction_, 0), net_.clip(), h + b * n, n);
    }
    return {};
  }

 private:
  const RecurrentNet& net_;
  RecurrentWeights weights_;
  int64_t direction_, batch_;
};

class RNN {
 public:
  static Status make(const KernelInfo& info, RNN& out) { return out.net_.read(info, {1}, {"Tanh"}); }
  Status operator()(KernelContext& context) const { return net_.run(context, RnnCell::make); }

 private:
  RecurrentNet net_;
};

PY_ORT_KERNEL("", "RNN",
              "float32,float16,bfloat16;float32,float16,bfloat16;float32,float16,bfloat16;float32,float16,bfloat16;"
              "int32;float32,float16,bfloat16",
              WithHalf<RNN>);

}  // namespace
}  // namespace py_ort
