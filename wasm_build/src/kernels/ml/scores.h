// From a model's raw scores to a classifier's outputs: transformed scores and labels.
#pragma once

#include <vector>

#include "py_ort/kernel.h"

namespace py_ort::ml {

enum class Transform : uint8_t { none, softmax, logistic, softmax_zero, probit };
Status read_transform(const Attributes& attributes, Transform& out);
// As in onnxruntime, only `probit` transforms a single score.
void transform_scores(Transform transform, float* scores, size_t count);

// Makes the scores of two classes from one score.
enum class Second : uint8_t { one_minus, negated };
// {score} becomes {other, score}. Only the transforms `logistic` and `probit` have an effect; `probit` keeps the score
// alone.
void add_second_class(Transform transform, Second second, std::vector<float>& scores);

// The class labels, integers or strings.
class Labels {
 public:
  // `integers` names the attribute with integer labels; strings are in classlabels_strings.
  static Status make(const Attributes& attributes, const char* integers, Labels& out);
  size_t size() const { return names_.empty() ? numbers_.size() : names_.size(); }
  // Output 0: labels[classes[i]]; class -1 is "" or 0.
  Status write(KernelContext& context, const std::vector<int64_t>& classes) const;

 private:
  std::vector<int64_t> numbers_;
  std::vector<std::string> names_;
};

// Output 1: all rows have the same number of scores, `classes` if there are no rows.
Status write_scores(KernelContext& context, const std::vector<std::vector<float>>& rows, size_t classes);

}  // namespace py_ort::ml
