// Binarizer, FeatureVectorizer, Imputer, Normalizer, Scaler: they prepare [N, C] or [C] features.
#include <algorithm>
#include <cmath>

#include "kernels/shared/axes.h"
#include "kernels/shared/lanes.h"

namespace py_ort::ml {
namespace {

struct Shape { int64_t rows, columns; };
Status feature_shape(const Tensor& x, Shape& out) {
  PY_ORT_ENSURE(x.rank() >= 1, "features need shape [N, C] or [C], got a scalar");
  out = {count_between(x.dims, 0, x.rank() - 1), x.dim(-1)};
  return {};
}

class Binarizer {
 public:
  explicit Binarizer(const KernelInfo& info) : threshold_(info.attributes.number("threshold", 0)) {}
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    Tensor x, result;
    PY_ORT_TRY(widened(in, x));
    Tensor y;
    PY_ORT_TRY(Tensor::make(x.dtype, x.dims, y));
    visit_lane(lane_of(in.dtype), [&]<class T>() {
      std::transform(x.data<T>(), x.data<T>() + x.count(), y.mutable_data<T>(),
                     [&](T v) { return static_cast<T>(static_cast<double>(v) > threshold_); });
    });
    PY_ORT_TRY(cast(y, in.dtype, result));
    context.output(0, std::move(result));
    return {};
  }

 private:
  float threshold_;
};

// Joins the inputs' columns, as floats.
class FeatureVectorizer {
 public:
  explicit FeatureVectorizer(const KernelInfo& info) : sizes_(info.attributes.integers("inputdimensions")) {}
  Status operator()(KernelContext& context) const {
    std::vector<Tensor> parts(context.input_count());
    int64_t rows = 1, total = 0;
    std::vector<int64_t> columns;
    for (size_t i = 0; i < parts.size(); ++i) {
      PY_ORT_TRY(cast(*context.input(i), DType::float32, parts[i]));
      rows = parts[i].rank() <= 1 ? 1 : parts[i].dim(0);
      columns.push_back(parts[i].count() / std::max<int64_t>(rows, 1));
      PY_ORT_ENSURE(
          parts[i].count() == rows * columns[i] && (i == 0 || rows == (parts[0].rank() <= 1 ? 1 : parts[0].dim(0))),
          "FeatureVectorizer: input ", i, " of shape ", parts[i].dims, " has other rows than input 0");
      total += i < sizes_.size() ? sizes_[i] : columns[i];
    }
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, DType::float32, {rows, total}, out));
    float* to = out->mutable_data<float>();
    for (int64_t row = 0; row < rows; ++row)
      for (size_t i = 0; i < parts.size(); ++i) {
        // Missing columns of an input are 0, excess columns are skipped.
        const int64_t size = i < sizes_.size() ? sizes_[i] : columns[i], copied = std::min(size, columns[i]);
        std::copy_n(parts[i].data<float>() + row * columns[i], copied, to);
        std::fill_n(to + copied, size - copied, 0.0f);
        to += size;
      }
    return {};
  }

 private:
  std::vector<int64_t> sizes_;
};

class Imputer {
 public:
  static Status make(const KernelInfo& info, Imputer& out) {
    const Attributes& a = info.attributes;
    const bool floats = a.has("imputed_value_floats");
    for (const float value : a.numbers("imputed_value_floats")) out.values_.push_back(value);
    for (const int64_t value : a.integers("imputed_value_int64s")) out.values_.push_back(static_cast<double>(value));
    out.replaced_ = floats ? static_cast<double>(a.number("replaced_value_float", 0))
                           : static_cast<double>(a.integer("replaced_value_int64", 0));
    return out.values_.empty() ? invalid_graph("Imputer has no imputed values") : Status{};
  }
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    Shape shape{};
    PY_ORT_TRY(feature_shape(in, shape));
    const bool one_each =
        // otherwise the first one applies to all, as in onnxruntime
        static_cast<int64_t>(values_.size()) == shape.columns;
    Tensor x, y, result;
    PY_ORT_TRY(widened(in, x));
    PY_ORT_TRY(Tensor::make(x.dtype, x.dims, y));
    visit_lane(lane_of(in.dtype), [&]<class T>() {
      for (int64_t i = 0, n = x.count(); i < n; ++i) {
        const T value = x.data<T>()[i];
        const bool missing = std::isnan(replaced_) ? value != value : value == static_cast<T>(replaced_);
        y.mutable_data<T>()[i] =
            missing ? static_cast<T>(values_[one_each ? static_cast<size_t>(i % shape.columns) : 0]) : value;
      }
    });
    PY_ORT_TRY(cast(y, in.dtype, result));
    context.output(0, std::move(result));
    return {};
  }

 private:
  std::vector<double> values_;
  double replaced_ = 0;
};

class Normalizer {
 public:
  static Status make(const KernelInfo& info, Normalizer& out) {
    out.norm_ = info.attributes.text("norm", "MAX");
    const bool known = out.norm_ == "MAX" || out.norm_ == "L1" || out.norm_ == "L2";
    return known ? Status{} : invalid_graph("Normalizer's norm must be MAX, L1 or L2, not '", out.norm_, "'");
  }
  Status operator()(KernelContext& context) const {
    Shape shape{};
    PY_ORT_TRY(feature_shape(*context.input(0), shape));
    Tensor x;
    PY_ORT_TRY(cast(*context.input(0), DType::float32, x));
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, DType::float32, x.dims, out));
    for (int64_t row = 0; row < shape.rows; ++row) {
      const float* from = x.data<float>() + row * shape.columns;
      float* to = out->mutable_data<float>() + row * shape.columns;
      double norm = norm_ == "MAX" ? -INFINITY : 0;
      for (int64_t i = 0; i < shape.columns; ++i) {
        const double value = from[i];
        if (norm_ == "MAX") norm = std::max(norm, value);
        else norm += norm_ == "L1" ? std::fabs(value) : value * value;
      }
      if (norm_ == "L2") norm = std::sqrt(norm);
      for (int64_t i = 0; i < shape.columns; ++i) to[i] = norm == 0 ? from[i] : static_cast<float>(from[i] / norm);
    }
    return {};
  }

 private:
  std::string norm_;
};

class Scaler {
 public:
  explicit Scaler(const KernelInfo& info)
      : offset_(info.attributes.numbers("offset")), scale_(info.attributes.numbers("scale")) {}
  Status operator()(KernelContext& context) const {
    Shape shape{};
    PY_ORT_TRY(feature_shape(*context.input(0), shape));
    const auto fits = [&](const std::vector<float>& values) {
      return values.size() <= 1 || static_cast<int64_t>(values.size()) == shape.columns;
    };
    PY_ORT_ENSURE(fits(offset_) && fits(scale_), "Scaler has ", offset_.size(), " offsets and ", scale_.size(),
                  " scales for ", shape.columns, " features");
    Tensor x;
    PY_ORT_TRY(cast(*context.input(0), DType::float32, x));
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, DType::float32, x.dims, out));
    const auto at = [](const std::vector<float>& values, size_t column, float otherwise) {
      return values.empty() ? otherwise : values[values.size() == 1 ? 0 : column];
    };
    for (int64_t i = 0, n = x.count(); i < n; ++i) {
      const auto column = static_cast<size_t>(i % shape.columns);
      out->mutable_data<float>()[i] = (x.data<float>()[i] - at(offset_, column, 0)) * at(scale_, column, 1);
    }
    return {};
  }

 private:
  std::vector<float> offset_, scale_;
};

#define PY_ORT_FEATURES "float32,float64,int64,int32"
PY_ORT_KERNEL("ai.onnx.ml", "Binarizer", PY_ORT_FEATURES, Binarizer);
PY_ORT_KERNEL("ai.onnx.ml", "FeatureVectorizer", PY_ORT_FEATURES, FeatureVectorizer);
PY_ORT_KERNEL("ai.onnx.ml", "Imputer", PY_ORT_FEATURES, Imputer);
PY_ORT_KERNEL("ai.onnx.ml", "Normalizer", PY_ORT_FEATURES, Normalizer);
PY_ORT_KERNEL("ai.onnx.ml", "Scaler", PY_ORT_FEATURES, Scaler);
#undef PY_ORT_FEATURES

}  // namespace
}  // namespace py_ort::ml
