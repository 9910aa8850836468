// TreeEnsemble, TreeEnsembleRegressor, TreeEnsembleClassifier.
#include <algorithm>

#include "kernels/shared/lanes.h"
#include "kernels/ml/scores.h"
#include "kernels/ml/trees.h"

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
      if (aggregate < 0 || aggregate > 3 || transform < 0 || transform > 4)
        return invalid_graph("TreeEnsemble has aggregate_function ", aggregate, " and post_transform ", transform);
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
    Tensor scores, result;
    PY_ORT_TRY(
        Tensor::make(DType::float64, {in.rank() == 1 ? 1 : in.dim(0), static_cast<int64_t>(forest_.targets)}, scores));
    double* to = scores.mutable_data<double>();
    const std::vector<double>& base = forest_.base;
    const auto row = [&](std::vector<double>& sums, const std::vector<bool>& voted) {
      // As in onnxruntime: a target without a vote has no base, unless it is the only target.
      for (size_t t = 0; t < sums.size() && base.size() == sums.size(); ++t)
        if (voted[t] || sums.size() == 1) sums[t] += base[t];
      if (transform_ == Transform::none) {
        to = std::copy(sums.begin(), sums.end(), to);
        return;
      }
      std::vector<float> transformed(sums.begin(), sums.end());
      transform_scores(transform_, transformed.data(), transformed.size());
      to = std::copy(transformed.begin(), transformed.end(), to);
    };
    PY_ORT_TRY(forest_.scores(in, aggregate_, row));
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
    out.one_target_ =
        std::all_of(votes.begin(), votes.end(), [&](const Vote& vote) { return vote.target == votes[0].target; });
    out.positive_ = std::all_of(votes.begin(), votes.end(), [](const Vote& vote) { return vote.weight >= 0; });
    return {};
  }
  Status operator()(KernelContext& context) const {
    std::vector<std::vector<float>> rows;
    std::vector<int64_t> classes;
    PY_ORT_TRY(forest_.scores(*context.input(0), Aggregate::sum,
                              [&](std::vector<double>& sums, const std::vector<bool>& voted) {
      classes.push_back(labels_.size() == 2 ? one_of_two(sums, voted, rows.emplace_back())
                                            : one_of_many(sums, voted, rows.emplace_back()));
    }));
    PY_ORT_TRY(labels_.write(context, classes));
    return write_scores(context, rows, labels_.size());
  }

 private:
  int64_t one_of_many(std::vector<double>& sums, const std::vector<bool>& voted, std::vector<float>& scores) const {
    const bool based = forest_.base.size() == sums.size();
    int64_t best = -1;
    for (size_t t = 0; t < sums.size(); ++t) {
      if (based) sums[t] += forest_.base[t];
      if ((based || voted[t]) && (best < 0 || sums[t] > sums[static_cast<size_t>(best)]))
        best = static_cast<int64_t>(t);
    }
    scores.assign(sums.begin(), sums.end());
    transform_scores(transform_, scores.data(), scores.size());
    return std::max<int64_t>(best, 0);
  }
  // Follows onnxruntime's rules exactly: trees of two classes vote for one of them or for both, and this decides to
  // which the base is added.
  int64_t one_of_two(std::vector<double>& sums, const std::vector<bool>& voted, std::vector<float>& scores) const {
    const std::vector<double>& base = forest_.base;
    if (base.size() == 2 && voted[1]) {
      sums[1] = base[1] + sums[0];
      sums[0] = -sums[1];
    } else if (!base.empty()) {
      sums[0] += base[0];
    }
    const double score = voted[1] ? sums[1] : voted[0] ? sums[0] : 0;
    const bool second = score > (one_target_ && positive_ ? 0.5 : 0.0);
    if (one_target_ && !voted[1] && base.size() != 2) {
      // One score for both: a probability if all votes are positive, otherwise a margin around 0.
      scores = {static_cast<float>(sums[0])};
      add_second_class(transform_, positive_ ? Second::one_minus : Second::negated, scores);
    } else {
      scores = {static_cast<float>(voted[0] ? sums[0] : 0), static_cast<float>(voted[1] ? sums[1] : 0)};
      transform_scores(transform_, scores.data(), scores.size());
    }
    return second;
  }

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
