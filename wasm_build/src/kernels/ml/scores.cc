#include "kernels/ml/scores.h"

#include <algorithm>
#include <cmath>

namespace py_ort::ml {
namespace {

float logistic(float x) {
  const float v = 1 / (1 + std::exp(-std::fabs(x)));
  return x < 0 ? 1 - v : v;
}

// Winitzki's approximation of the inverse of erf, by which the operators are defined.
float erf_inverse(float x) {
  const float log = std::log((1 - x) * (1 + x));
  const float v = 2 / (3.14159f * 0.147f) + 0.5f * log;
  const float root = std::sqrt(-v + std::sqrt(v * v - log / 0.147f));
  return x < 0 ? -root : root;
}
float probit(float x) { return 1.41421356f * erf_inverse(2 * x - 1); }

// With `keep_zeros`, scores of 0 stay 0.
void softmax(float* scores, size_t count, bool keep_zeros) {
  const float most = *std::max_element(scores, scores + count);
  float sum = 0;
  for (size_t i = 0; i < count; ++i) {
    scores[i] = keep_zeros && std::fabs(scores[i]) <= 1e-7f ? scores[i] * std::exp(-most) : std::exp(scores[i] - most);
    sum += scores[i];
  }
  for (size_t i = 0; i < count; ++i) scores[i] = sum == 0 ? 0.5f : scores[i] / sum;
}

}  // namespace

Status read_transform(const Attributes& attributes, Transform& out) {
  static constexpr std::string_view names[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  const std::string name = attributes.text("post_transform", "NONE");
  const auto found = std::find(std::begin(names), std::end(names), name);
  if (found == std::end(names)) return invalid_graph("post_transform '", name, "' is unknown");
  out = static_cast<Transform>(found - std::begin(names));
  return {};
}

void transform_scores(Transform transform, float* scores, size_t count) {
  if (count == 0 || (count == 1 && transform != Transform::probit)) return;
  switch (transform) {
    case Transform::none: return;
    case Transform::softmax: return softmax(scores, count, false);
    case Transform::softmax_zero: return softmax(scores, count, true);
    case Transform::logistic: std::transform(scores, scores + count, scores, &logistic); return;
    case Transform::probit: std::transform(scores, scores + count, scores, &probit); return;
  }
}

void add_second_class(Transform transform, Second second, std::vector<float>& scores) {
  if (transform == Transform::probit) {
    scores[0] = probit(scores[0]);
    return;
  }
  const float score = scores[0];
  if (transform == Transform::logistic) {
    scores = {second == Second::one_minus ? 1 - logistic(score) : logistic(-score), logistic(score)};
  } else {
    scores = {second == Second::one_minus ? 1 - score : -score, score};
  }
}

Status Labels::make(const Attributes& attributes, const char* integers, Labels& out) {
  out.numbers_ = attributes.integers(integers);
  out.names_ = attributes.texts("classlabels_strings");
  return out.size() ? Status{}
                    : invalid_graph("a classifier needs class labels, in ", integers, " or classlabels_strings");
}

Status Labels::write(KernelContext& context, const std::vector<int64_t>& classes) const {
  Tensor* out = nullptr;
  PY_ORT_TRY(
      context.output(0, names_.empty() ? DType::int64 : DType::string_, {static_cast<int64_t>(classes.size())}, out));
  for (size_t i = 0; i < classes.size(); ++i) {
    const auto at = static_cast<size_t>(classes[i]);
    if (names_.empty()) out->mutable_data<int64_t>()[i] = classes[i] < 0 ? 0 : numbers_[at];
    else out->mutable_strings()[i] = classes[i] < 0 ? "" : names_[at];
  }
  return {};
}

Status write_scores(KernelContext& context, const std::vector<std::vector<float>>& rows, size_t classes) {
  const size_t columns = rows.empty() ? classes : rows[0].size();
  Tensor* out = nullptr;
  PY_ORT_TRY(
      context.output(1, DType::float32, {static_cast<int64_t>(rows.size()), static_cast<int64_t>(columns)}, out));
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy(rows[i].begin(), rows[i].end(), out->mutable_data<float>() + i * columns);
  return {};
}

}  // namespace py_ort::ml
