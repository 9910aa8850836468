// From a model's raw scores to what a classifier gives: transformed scores and labels.
#pragma once

#include <vector>

#include "py_ort/kernel.h"

namespace py_ort::ml {

enum class Transform : uint8_t { none, softmax, logistic, softmax_zero, probit };
Status read_transform(const Attributes& attributes, Transform& out);
// As onnxruntime has it, a single score is not transformed, but by `probit`.
void transform_scores(Transform transform, float* scores, size_t count);

// How one score becomes the scores of two classes.
enum class Second : uint8_t { one_minus, negated };
// {score} becomes {other, score}; of the transforms only `logistic` and `probit` (which keeps it alone) have an effect.
void add_second_class(Transform transform, Second second, std::vector<float>& scores);

// The class labels, integers or strings.
class Labels {
 public:
  // `integers` names the attribute that holds integer labels; strings are in classlabels_strings.
  static Status make(const Attributes& attributes, const char* integers, Labels& out);
  size_t size() const { return names_.empty() ? numbers_.size() : names_.size(); }
  // Output 0: labels[classes[i]]; class -1 is "" or 0.
  Status write(KernelContext& context, const std::vector<int64_t>& classes) const;

 private:
  std::vector<int64_t> numbers_;
  std::vector<std::string> names_;
};

// Output 1: all rows have equally many scores, `classes` where there are no rows.
Status write_scores(KernelContext& context, const std::vector<std::vector<float>>& rows, size_t classes);

}  // namespace py_ort::ml
