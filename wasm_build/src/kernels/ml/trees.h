// Ensembles of decision trees, in one form for the new operator and both old ones.
#pragma once

#include <functional>
#include <vector>

#include "py_ort/kernel.h"

namespace py_ort::ml {

enum class Branch : uint8_t { less_or_equal, less, greater_or_equal, greater, equal, not_equal, member, leaf };
enum class Aggregate : uint8_t { average, sum, min, max };

struct TreeNode {
  Branch branch = Branch::leaf;
  bool nan_is_true = false;
  size_t feature = 0;
  double threshold = 0;
  size_t yes = 0, no = 0;       // nodes
  size_t first = 0, count = 0;  // votes of a leaf, members of a set
};
struct Vote {
  int64_t target;
  double weight;
};

struct Forest {
  std::vector<TreeNode> nodes;
  std::vector<size_t> roots;
  std::vector<Vote> votes;
  std::vector<double> members;  // sorted within each set
  std::vector<double> base;     // added per target
  size_t targets = 1;
  // The largest feature that nodes read, and the largest target of their votes.
  int64_t last_feature = -1, last_target = -1;

  // The form of TreeEnsembleClassifier and -Regressor; `prefix` is "class_" or "target_".
  static Status from_nodes(const Attributes& attributes, const std::string& prefix, Forest& out);
  // The form of TreeEnsemble.
  static Status from_leaves(const Attributes& attributes, Forest& out);
  Status add(TreeNode node, int64_t feature);
  Status add_vote(Vote& place, int64_t target, double weight);
  // Receives the votes of a row's leaves: a sum (or another aggregate) per target, without base, and the targets that
  // had votes.
  using Row = std::function<void(std::vector<double>& sums, const std::vector<bool>& voted)>;
  // Calls `row` for each row of `in` ([N, F] or [F]).
  Status scores(const Tensor& in, Aggregate aggregate, const Row& row) const;
};

}  // namespace py_ort::ml
