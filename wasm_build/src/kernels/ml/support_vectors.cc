// SVMClassifier, SVMRegressor.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "kernels/shared/lanes.h"
#include "kernels/ml/scores.h"

namespace py_ort::ml {
namespace {

class KernelFunction {
 public:
  // Without vectors it is linear, whatever kernel the model names.
  static Status make(const Attributes& attributes, bool with_vectors, KernelFunction& out) {
    out.type_ = with_vectors ? attributes.text("kernel_type", "LINEAR") : "LINEAR";
    const std::vector<float> params = attributes.numbers("kernel_params");
    for (size_t i = 0; i < std::min<size_t>(params.size(), 3); ++i) out.params_[i] = params[i];
    const bool known = out.type_ == "LINEAR" || out.type_ == "POLY" || out.type_ == "RBF" || out.type_ == "SIGMOID";
    return known ? Status{} : invalid_graph("kernel_type '", out.type_, "' is unknown");
  }
  double operator()(const float* a, const float* b, size_t count) const {
    const auto [gamma, coefficient, degree] = params_;
    if (type_ == "RBF") {
      double distance = 0;
      for (size_t i = 0; i < count; ++i)
        distance += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
      return std::exp(-gamma * distance);
    }
    const double dot = std::inner_product(a, a + count, b, 0.0);
    if (type_ == "LINEAR") return dot;
    return type_ == "POLY" ? std::pow(gamma * dot + coefficient, degree) : std::tanh(gamma * dot + coefficient);
  }

 private:
  std::string type_;
  std::array<float, 3> params_{};
};

// The common part of both operators. Without support vectors the model is linear: `coefficients` are its weights.
struct Machine {
  KernelFunction kernel;
  std::vector<float> coefficients, vectors, rho;
  Transform transform = Transform::none;

  Status read(const Attributes& attributes, bool with_vectors) {
    coefficients = attributes.numbers("coefficients");
    vectors = attributes.numbers("support_vectors");
    rho = attributes.numbers("rho");
    if (rho.empty()) return invalid_graph("a support vector machine needs rho");
    PY_ORT_TRY(KernelFunction::make(attributes, with_vectors, kernel));
    return read_transform(attributes, transform);
  }
};

Status read_rows(const Tensor& in, Tensor& x, int64_t& rows, int64_t& columns) {
  PY_ORT_TRY(cast(in, DType::float32, x));
  PY_ORT_ENSURE(x.rank() == 1 || x.rank() == 2, "a support vector machine needs [N, C] or [C], got shape ", in.dims);
  rows = x.rank() == 1 ? 1 : x.dim(0);
  columns = x.dim(-1);
  return {};
}

class Regressor {
 public:
  static Status make(const KernelInfo& info, Regressor& out) {
    out.one_class_ = info.attributes.integer("one_class", 0) != 0;
    out.count_ = static_cast<size_t>(info.attributes.integer("n_supports", 0));
    return out.machine_.read(info.attributes, out.count_ != 0);
  }
  Status operator()(KernelContext& context) const {
    Tensor x;
    int64_t rows = 0, columns = 0;
    PY_ORT_TRY(read_rows(*context.input(0), x, rows, columns));
    const auto length = static_cast<size_t>(columns);
    const bool linear = count_ == 0;
    PY_ORT_ENSURE(linear ? machine_.coefficients.size() == length
                         : machine_.vectors.size() == count_ * length && machine_.coefficients.size() >= count_,
                  "SVMRegressor does not take ", columns, " features");
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, DType::float32, {rows, 1}, out));
    for (int64_t row = 0; row < rows; ++row) {
      const float* features = x.data<float>() + row * columns;
      double sum = machine_.rho[0];
      if (linear) sum += machine_.kernel(features, machine_.coefficients.data(), length);
      for (size_t j = 0; j < count_; ++j)
        sum += machine_.coefficients[j] * machine_.kernel(features, machine_.vectors.data() + j * length, length);
      // As in onnxruntime: post_transform is for classes.
      out->mutable_data<float>()[row] = static_cast<float>(one_class_ ? (sum > 0 ? 1 : -1) : sum);
    }
    return {};
  }

 private:
  Machine machine_;
  bool one_class_ = false;
  size_t count_ = 0;
};

// Probabilities of k classes from those of each pair, by minimizing their disagreement (Wu, Lin and Weng, 2004, second
// method).
std::vector<double> couple_probabilities(const std::vector<double>& pairs, size_t k) {
  std::vector<double> q(k * k), p(k, 1.0 / static_cast<double>(k)), qp(k);
  for (size_t t = 0; t < k; ++t)
    for (size_t j = 0; j < k; ++j) {
      if (j == t) continue;
      q[t * k + t] += pairs[j * k + t] * pairs[j * k + t];
      q[t * k + j] = -pairs[j * k + t] * pairs[t * k + j];
    }
  const size_t most = std::max<size_t>(100, k);
  for (size_t iteration = 0; iteration < most; ++iteration) {
    double pqp = 0, error = 0;
    for (size_t t = 0; t < k; ++t) {
      qp[t] = std::inner_product(p.begin(), p.end(), q.begin() + static_cast<ptrdiff_t>(t * k), 0.0);
      pqp += p[t] * qp[t];
    }
    for (size_t t = 0; t < k; ++t) error = std::max(error, std::fabs(qp[t] - pqp));
    if (error < 0.005 / static_cast<double>(k)) break;
    for (size_t t = 0; t < k; ++t) {
      const double step = (pqp - qp[t]) / q[t * k + t];
      p[t] += step;
      pqp = (pqp + step * (step * q[t * k + t] + 2 * qp[t])) / ((1 + step) * (1 + step));
      for (size_t j = 0; j < k; ++j) {
        qp[j] = (qp[j] + step * q[t * k + j]) / (1 + step);
        p[j] /= 1 + step;
      }
    }
  }
  return p;
}

class Classifier {
 public:
  static Status make(const KernelInfo& info, Classifier& out) {
    const Attributes& a = info.attributes;
    out.per_class_ = a.integers("vectors_per_class");
    PY_ORT_TRY(out.machine_.read(a, !out.per_class_.empty()));
    PY_ORT_TRY(Labels::make(a, "classlabels_ints", out.labels_));
    const std::vector<float>& weights = out.machine_.coefficients;
    out.positive_ = std::all_of(weights.begin(), weights.end(), [](float weight) { return weight >= 0; });
    out.a_ = a.numbers("prob_a");
    out.b_ = a.numbers("prob_b");
    const size_t pairs = out.labels_.size() * (out.labels_.size() - 1) / 2;
    if (!out.per_class_.empty() && (out.per_class_.size() != out.labels_.size() || out.machine_.rho.size() < pairs))
      return invalid_graph("SVMClassifier has ", out.per_class_.size(), " counts of vectors and ",
                           out.machine_.rho.size(), " rho for ", out.labels_.size(), " classes");
    if (!out.a_.empty() && (out.a_.size() < pairs || out.b_.size() < pairs))
      return invalid_graph("SVMClassifier needs ", pairs, " prob_a and prob_b");
    return {};
  }
  Status operator()(KernelContext& context) const {
    Tensor x;
    int64_t rows = 0, columns = 0;
    PY_ORT_TRY(read_rows(*context.input(0), x, rows, columns));
    std::vector<std::vector<float>> all;
    std::vector<int64_t> classes;
    for (int64_t row = 0; row < rows; ++row) {
      std::vector<float> scores;
      int64_t best = 0;
      PY_ORT_TRY(classify(x.data<float>() + row * columns, static_cast<size_t>(columns), scores, best));
      all.push_back(std::move(scores));
      classes.push_back(best);
    }
    PY_ORT_TRY(labels_.write(context, classes));
    return write_scores(context, all, labels_.size());
  }

 private:
  Status classify(const float* features, size_t length, std::vector<float>& scores, int64_t& best) const {
    const size_t k = labels_.size();
    std::vector<double> votes(k);
    const bool linear = per_class_.empty();
    if (linear) {
      PY_ORT_ENSURE(machine_.coefficients.size() == k * length, "SVMClassifier does not take ", length, " features");
      for (size_t c = 0; c < k; ++c)
        scores.push_back(static_cast<float>(
            machine_.rho[0] + machine_.kernel(features, machine_.coefficients.data() + c * length, length)));
    } else {
      PY_ORT_TRY(one_against_one(features, length, votes, scores));
    }
    const bool probable = !linear && !a_.empty();
    if (probable) {
      std::vector<double> pairs(k * k);
      size_t pair = 0;
      for (size_t i = 0; i < k; ++i)
        for (size_t j = i + 1; j < k; ++j, ++pair) {
          const double p = 1 / (1 + std::exp(static_cast<double>(scores[pair]) * a_[pair] + b_[pair]));
          pairs[i * k + j] = std::clamp(p, 1e-7, 1 - 1e-7);
          pairs[j * k + i] = 1 - pairs[i * k + j];
        }
      const std::vector<double> p = couple_probabilities(pairs, k);
      scores.assign(p.begin(), p.end());
    }
    best = linear ? std::max_element(scores.begin(), scores.end()) - scores.begin()
                  : std::max_element(votes.begin(), votes.end()) - votes.begin();
    // As in onnxruntime: of two classes the second, if any score is in its favor.
    if (linear && k == 2 &&
        (positive_ ? scores[static_cast<size_t>(best)] >= 0.5f : scores[static_cast<size_t>(best)] > 0))
      best = 1;
    if (scores.size() == 1 && k == 2)
      add_second_class(machine_.transform, machine_.transform == Transform::none ? Second::negated : Second::one_minus,
                       scores);
    else transform_scores(machine_.transform, scores.data(), scores.size());
    return {};
  }
  Status one_against_one(const float* features, size_t length, std::vector<double>& votes,
                         std::vector<float>& scores) const {
    std::vector<size_t> starts;
    size_t total = 0;
    for (const int64_t count : per_class_) {
      starts.push_back(total);
      total += static_cast<size_t>(count);
    }
    PY_ORT_ENSURE(
        machine_.vectors.size() == total * length && machine_.coefficients.size() >= total * (per_class_.size() - 1),
        "SVMClassifier does not take ", length, " features");
    std::vector<double> kernels;
    for (size_t i = 0; i < total; ++i)
      kernels.push_back(machine_.kernel(features, machine_.vectors.data() + i * length, length));
    size_t pair = 0;
    for (size_t i = 0; i < per_class_.size(); ++i)
      for (size_t j = i + 1; j < per_class_.size(); ++j, ++pair) {
        double sum = machine_.rho[pair];
        // Row j - 1 has the weights of class i's vectors against class j, row i the reverse.
        for (size_t m = 0; m < static_cast<size_t>(per_class_[i]); ++m)
          sum += machine_.coefficients[(j - 1) * total + starts[i] + m] * kernels[starts[i] + m];
        for (size_t m = 0; m < static_cast<size_t>(per_class_[j]); ++m)
          sum += machine_.coefficients[i * total + starts[j] + m] * kernels[starts[j] + m];
        scores.push_back(static_cast<float>(sum));
        ++votes[sum > 0 ? i : j];
      }
    return {};
  }

  Machine machine_;
  Labels labels_;
  std::vector<int64_t> per_class_;
  std::vector<float> a_, b_;
  bool positive_ = false;  // all coefficients
};

PY_ORT_KERNEL("ai.onnx.ml", "SVMRegressor", "float32,float64,int64,int32", Regressor);
PY_ORT_KERNEL("ai.onnx.ml", "SVMClassifier", "float32,float64,int64,int32", Classifier);

}  // namespace
}  // namespace py_ort::ml
