// LinearClassifier, LinearRegressor.
#include <algorithm>
#include <numeric>

#include "kernels/shared/lanes.h"
#include "kernels/ml/scores.h"

namespace py_ort::ml {
namespace {

// x · coefficientsᵀ + intercepts, for x [N, C] (or [C]) and coefficients [targets, C]. Further numbers are ignored, as
// in onnxruntime (its own logreg_iris.onnx has rows of two, and numbers for four).
struct Linear {
  std::vector<float> coefficients, intercepts;

  explicit Linear(const Attributes& attributes)
      : coefficients(attributes.numbers("coefficients")), intercepts(attributes.numbers("intercepts")) {}
  Status scores(const Tensor& in, size_t targets, std::vector<std::vector<float>>& out) const {
    Tensor x;
    PY_ORT_TRY(cast(in, DType::float32, x));
    const int64_t rows = x.rank() == 1 ? 1 : x.dim(0);
    PY_ORT_ENSURE(x.rank() == 1 || x.rank() == 2, "a linear model takes rows of features, not shape ", in.dims);
    const auto columns = static_cast<size_t>(x.dims.back());
    PY_ORT_ENSURE(targets * columns <= coefficients.size(), "a linear model of ",
                  coefficients.size() / std::max<size_t>(targets, 1), " features got shape ", in.dims);
    for (int64_t row = 0; row < rows; ++row) {
      const float* features = x.data<float>() + static_cast<size_t>(row) * columns;
      auto& scores = out.emplace_back();
      for (size_t t = 0; t < targets; ++t)
        scores.push_back(std::inner_product(features, features + columns,
                                            coefficients.begin() + static_cast<ptrdiff_t>(t * columns),
                                            t < intercepts.size() ? intercepts[t] : 0.0f));
    }
    return {};
  }
};

class LinearClassifier {
 public:
  static Status make(const KernelInfo& info, LinearClassifier& out) {
    out.linear_ = Linear(info.attributes);
    PY_ORT_TRY(Labels::make(info.attributes, "classlabels_ints", out.labels_));
    return read_transform(info.attributes, out.transform_);
  }
  Status operator()(KernelContext& context) const {
    const size_t targets = std::max<size_t>(linear_.intercepts.size(), 1);
    std::vector<std::vector<float>> rows;
    PY_ORT_TRY(linear_.scores(*context.input(0), targets, rows));
    std::vector<int64_t> classes;
    for (auto& scores : rows) {
      if (targets == 1) {  // one model for two classes: the side of 0 decides
        const bool positive = scores[0] > 0;
        classes.push_back(labels_.size() == 2 ? positive : positive ? 0 : -1);
        if (labels_.size() == 2) add_second_class(transform_, Second::one_minus, scores);
        else transform_scores(transform_, scores.data(), 1);
      } else {
        classes.push_back(std::max_element(scores.begin(), scores.end()) - scores.begin());
        transform_scores(transform_, scores.data(), scores.size());
      }
    }
    PY_ORT_TRY(labels_.write(context, classes));
    return write_scores(context, rows, labels_.size());
  }

 private:
  Linear linear_{Attributes()};
  Labels labels_;
  Transform transform_ = Transform::none;
};

class LinearRegressor {
 public:
  static Status make(const KernelInfo& info, LinearRegressor& out) {
    out.linear_ = Linear(info.attributes);
    out.targets_ = static_cast<size_t>(info.attributes.integer("targets", 1));
    return read_transform(info.attributes, out.transform_);
  }
  Status operator()(KernelContext& context) const {
    std::vector<std::vector<float>> rows;
    PY_ORT_TRY(linear_.scores(*context.input(0), targets_, rows));
    Tensor* out = nullptr;
    PY_ORT_TRY(
        context.output(0, DType::float32, {static_cast<int64_t>(rows.size()), static_cast<int64_t>(targets_)}, out));
    float* to = out->mutable_data<float>();
    for (auto& scores : rows) {
      transform_scores(transform_, scores.data(), scores.size());
      to = std::copy(scores.begin(), scores.end(), to);
    }
    return {};
  }

 private:
  Linear linear_{Attributes()};
  size_t targets_ = 1;
  Transform transform_ = Transform::none;
};

PY_ORT_KERNEL("ai.onnx.ml", "LinearClassifier", "float32,float64,int64,int32", LinearClassifier);
PY_ORT_KERNEL("ai.onnx.ml", "LinearRegressor", "float32,float64,int64,int32", LinearRegressor);

}  // namespace
}  // namespace py_ort::ml
