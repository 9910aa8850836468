// ai.onnx.preview.training: Adagrad, Adam, Momentum. Inputs R, T, then all X, all their gradients, and each one's
// accumulators.
#include <cmath>

#include "kernels/shared/lanes.h"
#include "py_ort/kernel.h"

namespace py_ort {
namespace {

enum class Method : uint8_t { adagrad, adam, momentum };

class Optimizer {
 public:
  static Status make(const KernelInfo& info, Optimizer& out) {
    const Attributes& a = info.attributes;
    out.method_ = info.op_type == "Adagrad" ? Method::adagrad
                  : info.op_type == "Adam"  ? Method::adam
                                            : Method::momentum;
    out.norm_ = a.number("norm_coefficient", 0);
    out.norm_post_ = a.number("norm_coefficient_post", 0);
    out.decay_ = a.number("decay_factor", 0);
    out.epsilon_ = a.number("epsilon", 1e-6f);
    out.alpha_ = a.number("alpha", 0.9f);
    out.beta_ = a.number("beta", 0.999f);
    out.nesterov_ = a.text("mode", "standard") == "nesterov";
    return {};
  }
  Status operator()(KernelContext& context) const {
    const size_t accumulators = method_ == Method::adam ? 2 : 1, roles = 2 + accumulators;
    const size_t given = context.input_count() - 2, tensors = given / roles;
    PY_ORT_ENSURE(context.input_count() > 2 && given % roles == 0, "an optimizer got ", given,
                  " tensors, which is no multiple of ", roles);
    double rate = 0, step = 0;
    PY_ORT_TRY(scalar(*context.input(0), rate));
    PY_ORT_TRY(scalar(*context.input(1), step));
    for (size_t i = 0; i < tensors; ++i) {
      Tensor parts[4], results[3];
      for (size_t role = 0; role < roles; ++role) {
        const Tensor& part = *context.input(2 + role * tensors + i);
        PY_ORT_ENSURE(part.dims == context.input(2 + i)->dims, "an optimizer's tensor of shape ",
                      context.input(2 + i)->dims, " comes with one of ", part.dims);
        PY_ORT_TRY(cast(part, DType::float64, parts[role]));
      }
      for (size_t k = 0; k <= accumulators; ++k) PY_ORT_TRY(Tensor::make(DType::float64, parts[0].dims, results[k]));
      for (int64_t k = 0, n = parts[0].count(); k < n; ++k) {
        const auto at = [&](size_t role) { return parts[role].data<double>()[k]; };
        const auto to = [&](size_t result) -> double& { return results[result].mutable_data<double>()[k]; };
        const double x = at(0), gradient = norm_ * x + at(1);
        switch (method_) {
          case Method::adagrad:
            to(1) = at(2) + gradient * gradient;
            to(0) = x - rate / (1 + step * decay_) * gradient / (std::sqrt(to(1)) + epsilon_);
            break;
          case Method::adam: {
            to(1) = alpha_ * at(2) + (1 - alpha_) * gradient;
            to(2) = beta_ * at(3) + (1 - beta_) * gradient * gradient;
            const double adjusted =
                step > 0 ? rate * std::sqrt(1 - std::pow(beta_, step)) / (1 - std::pow(alpha_, step)) : rate;
            to(0) = (1 - norm_post_) * (x - adjusted * to(1) / (std::sqrt(to(2)) + epsilon_));
            break;
          }
          case Method::momentum:
            to(1) = alpha_ * at(2) + (step > 0 ? beta_ : 1) * gradient;
            to(0) = x - rate * (nesterov_ ? gradient + alpha_ * to(1) : to(1));
            break;
        }
      }
      for (size_t k = 0; k <= accumulators; ++k) {
        Tensor result;
        PY_ORT_TRY(cast(results[k], context.input(2 + i)->dtype, result));
        context.output(k * tensors + i, std::move(result));
      }
    }
    return {};
  }

 private:
  static Status scalar(const Tensor& in, double& out) {
    PY_ORT_ENSURE(in.count() == 1, "an optimizer's rate and step must be scalars, got shape ", in.dims);
    Tensor wide;
    PY_ORT_TRY(cast(in, DType::float64, wide));
    out = *wide.data<double>();
    return {};
  }
  Method method_ = Method::adagrad;
  double norm_ = 0, norm_post_ = 0, decay_ = 0, epsilon_ = 0, alpha_ = 0, beta_ = 0;
  bool nesterov_ = false;
};

#define PY_ORT_TRAINED "float32,float64;int64;float32,float64"
PY_ORT_KERNEL("ai.onnx.preview.training", "Adagrad", PY_ORT_TRAINED, Optimizer);
PY_ORT_KERNEL("ai.onnx.preview.training", "Adam", PY_ORT_TRAINED, Optimizer);
PY_ORT_KERNEL("ai.onnx.preview.training", "Momentum", PY_ORT_TRAINED, Optimizer);
#undef PY_ORT_TRAINED

}  // namespace
}  // namespace py_ort
