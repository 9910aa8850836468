// TreeEnsemble, TreeEnsembleRegressor, TreeEnsembleClassifier.
#include <algorithm>

#include "../lanes.h"
#include "scores.h"
#include "trees.h"

namespace py_ort::ml {
namespace {

class Regressor {
 public:
  static Status make(const KernelInfo& info, Regressor& out) {
    const Attributes& a = info.attributes;
    out.new_form_ = info.op_type == "TreeEnsemble";
    out.forest_.targets = static_cast<size_t>(a.integer("n_targets", 1));
    if (out.new_form_) {
      const int64_t aggregate = a.integer("aggregate_function", 1), transform = a.integer("post_transform", 0);
      if (aggregate < 0 || aggregate > 3 || transform < 0 || transform > 4) return invalid_graph("TreeEnsemble has aggregate_function ", aggregate, " and post_transform ", transform);
      out.aggregate_ = static_cast<Aggregate>(aggregate);
      out.transform_ = static_cast<Transform>(transform);
      return Forest::from_leaves(a, out.forest_);
    }
    static constexpr std::string_view names[] = {"AVERAGE", "SUM", "MIN", "MAX"};
    const std::string name = a.text("aggregate_function", "SUM");
    const auto found = std::find(std::begin(names), std::end(names), name);
    if (found == std::end(names)) return invalid_graph("aggregate_function '", name, "' is unknown");
    out.aggregate_ = static_cast<Aggregate>(found - std::begin(names));
    PY_ORT_TRY(read_transform(a, out.transform_));
    return Forest::from_nodes(a, "target_", out.forest_);
  }
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    std::vector<std::vector<double>> rows;
    PY_ORT_TRY(forest_.scores(in, aggregate_, rows));
    Tensor scores, result;
    PY_ORT_TRY(Tensor::make(DType::float64, {static_cast<int64_t>(rows.size()), static_cast<int64_t>(forest_.targets)}, scores));
    double* to = scores.mutable_data<double>();
    for (const auto& row : rows) {
      if (transform_ == Transform::none) {
        to = std::copy(row.begin(), row.end(), to);
        continue;
      }
      std::vector<float> transformed(row.begin(), row.end());
      transform_scores(transform_, transformed.data(), transformed.size());
      to = std::copy(transformed.begin(), transformed.end(), to);
    }
    PY_ORT_TRY(cast(scores, new_form_ ? in.dtype : DType::float32, result));
    context.output(0, std::move(result));
    return {};
  }

 private:
  bool new_form_ = false;
  Forest forest_;
  Aggregate aggregate_ = Aggregate::sum;
  Transform transform_ = Transform::none;
};

class Classifier {
 public:
  static Status make(const KernelInfo& info, Classifier& out) {
    PY_ORT_TRY(read_transform(info.attributes, out.transform_));
    PY_ORT_TRY(Labels::make(info.attributes, "classlabels_int64s", out.labels_));
    PY_ORT_TRY(Forest::from_nodes(info.attributes, "class_", out.forest_));
    out.forest_.targets = out.labels_.size();
    const std::vector<Vote>& votes = out.forest_.votes;
    out.one_target_ = std::all_of(votes.begin(), votes.end(), [&](const Vote& vote) { return vote.target == votes[0].target; });
    out.positive_ = std::all_of(votes.begin(), votes.end(), [](const Vote& vote) { return vote.weight >= 0; });
    return {};
  }
  Status operator()(KernelContext& context) const {
    std::vector<std::vector<double>> sums;
    PY_ORT_TRY(forest_.scores(*context.input(0), Aggregate::sum, sums));
    std::vector<std::vector<float>> rows;
    std::vector<int64_t> classes;
    for (const auto& sum : sums) {
      auto& scores = rows.emplace_back(sum.begin(), sum.end());
      if (one_target_ && labels_.size() == 2) {
        // Two classes by one score: a probability when all votes are positive, else a margin around 0.
        scores = {forest_.votes.empty() ? 0.0f : scores[forest_.votes[0].target]};
        if (forest_.base.size() == 1) scores[0] += static_cast<float>(forest_.base[0]);
        classes.push_back(scores[0] > (positive_ ? 0.5f : 0.0f));
        add_second_class(transform_, positive_ ? Second::one_minus : Second::negated, scores);
      } else {
        classes.push_back(std::max_element(scores.begin(), scores.end()) - scores.begin());
        transform_scores(transform_, scores.data(), scores.size());
      }
    }
    PY_ORT_TRY(labels_.write(context, classes));
    return write_scores(context, rows, labels_.size());
  }

 private:
  Forest forest_;
  Labels labels_;
  Transform transform_ = Transform::none;
  bool one_target_ = false, positive_ = false;
};

PY_ORT_KERNEL("ai.onnx.ml", "TreeEnsemble", "float32,float64,float16", Regressor);
PY_ORT_KERNEL("ai.onnx.ml", "TreeEnsembleRegressor", "float32,float64,int64,int32", Regressor);
PY_ORT_KERNEL("ai.onnx.ml", "TreeEnsembleClassifier", "float32,float64,int64,int32", Classifier);

}  // namespace
}  // namespace py_ort::ml
