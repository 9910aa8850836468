// NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss.
#include <algorithm>
#include <cmath>

#include "kernels/shared/axes.h"
#include "kernels/shared/dtypes.h"
#include "kernels/shared/lanes.h"

namespace py_ort {
namespace {

// log_softmax over the classes of [batch, classes, inner].
template <class T>
void log_softmax(const T* x, T* y, int64_t batch, int64_t classes, int64_t inner) {
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < inner; ++i) {
      const int64_t at = b * classes * inner + i;
      T most = x[at], sum = 0;
      for (int64_t c = 1; c < classes; ++c) most = std::max(most, x[at + c * inner]);
      for (int64_t c = 0; c < classes; ++c) sum += std::exp(x[at + c * inner] - most);
      for (int64_t c = 0; c < classes; ++c) y[at + c * inner] = x[at + c * inner] - most - std::log(sum);
    }
}

class Loss {
 public:
  static Status make(const KernelInfo& info, Loss& out) {
    out.softmax_ = info.op_type == "SoftmaxCrossEntropyLoss";
    out.ignore_ = info.attributes.integer("ignore_index", 0);
    out.ignores_ = info.attributes.has("ignore_index");
    out.reduction_ = info.attributes.text("reduction", "mean");
    const bool known = out.reduction_ == "mean" || out.reduction_ == "sum" || out.reduction_ == "none";
    return known ? Status{}
                 : invalid_graph(info.op_type, "'s reduction must be none, sum or mean, not '", out.reduction_, "'");
  }
  Status operator()(KernelContext& context) const {
    const Tensor &scores = *context.input(0), &labels = *context.input(1);
    PY_ORT_ENSURE(scores.rank() >= 2, "the loss needs scores [N, C, ...], got shape ", scores.dims);
    const int64_t batch = scores.dim(0), classes = scores.dim(1), inner = count_between(scores.dims, 2, scores.rank());
    Dims dims = scores.dims;
    dims.erase(dims.begin() + 1);
    PY_ORT_ENSURE(labels.dims == dims, "the loss has labels of shape ", labels.dims, " for scores of shape ",
                  scores.dims);
    std::vector<int64_t> target;
    PY_ORT_TRY(read_integers(labels, target));
    for (const int64_t label : target)
      PY_ORT_ENSURE((label >= 0 && label < classes) || is_ignored(label), "label ", label, " is out of range for ",
                    classes, " classes");
    Tensor log_probabilities, weights, loss, result;
    PY_ORT_TRY(widened(scores, log_probabilities));
    if (const Tensor* given = context.input(2)) {
      PY_ORT_ENSURE(given->count() == classes, "the loss has weights of shape ", given->dims, " for ", classes,
                    " classes");
      PY_ORT_TRY(cast(*given, log_probabilities.dtype, weights));
    }
    if (softmax_) {
      Tensor normal;
      PY_ORT_TRY(Tensor::make(log_probabilities.dtype, scores.dims, normal));
      visit_float(normal.dtype, [&]<class T>() {
        log_softmax(log_probabilities.data<T>(), normal.mutable_data<T>(), batch, classes, inner);
      });
      log_probabilities = std::move(normal);
      if (context.wants(1)) {
        PY_ORT_TRY(cast(log_probabilities, scores.dtype, result));
        context.output(1, std::move(result));
      }
    }
    PY_ORT_TRY(Tensor::make(log_probabilities.dtype, reduction_ == "none" ? dims : Dims{}, loss));
    visit_float(loss.dtype, [&]<class T>() {
      const T *x = log_probabilities.data<T>(), *w = weights.storage ? weights.data<T>() : nullptr;
      T* out = loss.mutable_data<T>();
      double sum = 0, total_weight = 0;
      for (size_t i = 0; i < target.size(); ++i) {
        const auto b = static_cast<int64_t>(i) / inner, rest = static_cast<int64_t>(i) % inner;
        const double weight = is_ignored(target[i]) ? 0 : w ? static_cast<double>(w[target[i]]) : 1;
        const double value = is_ignored(target[i]) ? 0 : -weight * x[(b * classes + target[i]) * inner + rest];
        sum += value;
        total_weight += weight;
        if (reduction_ == "none") out[i] = static_cast<T>(value);
      }
      if (reduction_ != "none") *out = static_cast<T>(reduction_ == "mean" ? sum / total_weight : sum);
    });
    PY_ORT_TRY(cast(loss, scores.dtype, result));
    context.output(0, std::move(result));
    return {};
  }

 private:
  bool is_ignored(int64_t label) const { return ignores_ && label == ignore_; }
  template <class F>
  static void visit_float(DType dtype, F f) {
    if (dtype == DType::float64) f.template operator()<double>();
    else f.template operator()<float>();
  }
  bool softmax_ = false, ignores_ = false;
  int64_t ignore_ = 0;
  std::string reduction_;
};

PY_ORT_KERNEL("", "NegativeLogLikelihoodLoss", PY_ORT_FLOATS ";int32,int64;" PY_ORT_FLOATS, Loss);
PY_ORT_KERNEL("", "SoftmaxCrossEntropyLoss", PY_ORT_FLOATS ";int32,int64;" PY_ORT_FLOATS, Loss);

}  // namespace
}  // namespace py_ort
