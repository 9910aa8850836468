#include "trees.h"

#include <algorithm>
#include <map>
#include <set>

#include "../lanes.h"

namespace py_ort::ml {
namespace {

// A list of numbers from a floats attribute, or from a tensor under NAME or NAME_as_tensor.
Status read_numbers(const Attributes& attributes, const std::string& name, std::vector<double>& out) {
  for (const std::string& given : {name + "_as_tensor", name}) {
    if (const auto tensor = attributes.tensor(given)) {
      Tensor wide;
      PY_ORT_TRY(cast(*tensor, DType::float64, wide));
      out.assign(wide.data<double>(), wide.data<double>() + wide.count());
      return {};
    }
  }
  const std::vector<float> floats = attributes.numbers(name);
  out.assign(floats.begin(), floats.end());
  return {};
}

bool takes(const TreeNode& node, double x) {
  if (x != x) return node.nan_is_true;
  switch (node.branch) {
    case Branch::less_or_equal: return x <= node.threshold;
    case Branch::less: return x < node.threshold;
    case Branch::greater_or_equal: return x >= node.threshold;
    case Branch::greater: return x > node.threshold;
    case Branch::equal: return x == node.threshold;
    case Branch::not_equal: return x != node.threshold;
    case Branch::member: return std::binary_search(node.members.begin(), node.members.end(), x);
    case Branch::leaf: break;
  }
  return false;
}

}  // namespace

Status Forest::from_nodes(const Attributes& a, const std::string& prefix, Forest& out) {
  static constexpr std::string_view modes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
  const std::vector<int64_t> trees = a.integers("nodes_treeids"), ids = a.integers("nodes_nodeids"), features = a.integers("nodes_featureids"),
                             yes = a.integers("nodes_truenodeids"), no = a.integers("nodes_falsenodeids"), missing = a.integers("nodes_missing_value_tracks_true");
  const std::vector<std::string> names = a.texts("nodes_modes");
  std::vector<double> values, weights;
  PY_ORT_TRY(read_numbers(a, "nodes_values", values));
  PY_ORT_TRY(read_numbers(a, prefix + "weights", weights));
  PY_ORT_TRY(read_numbers(a, "base_values", out.base));
  const size_t count = trees.size();
  for (const size_t size : {ids.size(), features.size(), yes.size(), no.size(), names.size(), values.size()})
    if (size != count) return invalid_graph("a tree ensemble's nodes_* attributes differ in length");
  std::map<std::pair<int64_t, int64_t>, size_t> index;
  for (size_t i = 0; i < count; ++i) index[{trees[i], ids[i]}] = i;
  const auto node_at = [&](int64_t tree, int64_t id, size_t& found) {
    const auto at = index.find({tree, id});
    if (at == index.end()) return invalid_graph("a tree ensemble refers to node ", id, " of tree ", tree, ", which is not there");
    found = at->second;
    return Status{};
  };
  std::set<size_t> children;
  for (size_t i = 0; i < count; ++i) {
    TreeNode node;
    const auto mode = std::find(std::begin(modes), std::end(modes), names[i]);
    if (mode == std::end(modes)) return invalid_graph("a tree ensemble has a node of mode '", names[i], "'");
    node.branch = static_cast<Branch>(mode - std::begin(modes));
    node.nan_is_true = i < missing.size() && missing[i] != 0;
    node.feature = static_cast<size_t>(features[i]);
    node.threshold = values[i];
    if (node.branch != Branch::leaf) {
      PY_ORT_TRY(node_at(trees[i], yes[i], node.yes));
      PY_ORT_TRY(node_at(trees[i], no[i], node.no));
      children.insert({node.yes, node.no});
    }
    out.nodes.push_back(std::move(node));
  }
  for (size_t i = 0; i < count; ++i)
    if (!children.contains(i)) out.roots.push_back(i);
  // The votes, those of a leaf together.
  const std::vector<int64_t> vote_trees = a.integers(prefix + "treeids"), vote_nodes = a.integers(prefix + "nodeids"), targets = a.integers(prefix + "ids");
  if (vote_trees.size() != weights.size() || vote_nodes.size() != weights.size() || targets.size() != weights.size())
    return invalid_graph("a tree ensemble's ", prefix, "* attributes differ in length");
  std::multimap<size_t, size_t> by_leaf;
  for (size_t i = 0; i < weights.size(); ++i) {
    size_t leaf = 0;
    PY_ORT_TRY(node_at(vote_trees[i], vote_nodes[i], leaf));
    by_leaf.emplace(leaf, i);
  }
  for (const auto& [leaf, i] : by_leaf) {
    TreeNode& node = out.nodes[leaf];
    if (node.votes == 0) node.first_vote = out.votes.size();
    ++node.votes;
    out.votes.push_back({static_cast<size_t>(targets[i]), weights[i]});
  }
  return {};
}

Status Forest::from_leaves(const Attributes& a, Forest& out) {
  const std::vector<int64_t> features = a.integers("nodes_featureids"), yes = a.integers("nodes_truenodeids"), no = a.integers("nodes_falsenodeids"),
                             yes_leaf = a.integers("nodes_trueleafs"), no_leaf = a.integers("nodes_falseleafs"), missing = a.integers("nodes_missing_value_tracks_true"),
                             targets = a.integers("leaf_targetids"), roots = a.integers("tree_roots");
  std::vector<double> splits, weights, modes, members;
  PY_ORT_TRY(read_numbers(a, "nodes_splits", splits));
  PY_ORT_TRY(read_numbers(a, "nodes_modes", modes));
  PY_ORT_TRY(read_numbers(a, "leaf_weights", weights));
  PY_ORT_TRY(read_numbers(a, "membership_values", members));
  const size_t count = features.size();
  for (const size_t size : {yes.size(), no.size(), yes_leaf.size(), no_leaf.size(), splits.size(), modes.size()})
    if (size != count) return invalid_graph("TreeEnsemble's nodes_* attributes differ in length");
  if (targets.size() != weights.size()) return invalid_graph("TreeEnsemble's leaf_* attributes differ in length");
  // The leaves become nodes behind the others.
  auto member = members.begin();
  for (size_t i = 0; i < count; ++i) {
    TreeNode node;
    if (!(modes[i] >= 0 && modes[i] <= 6)) return invalid_graph("TreeEnsemble has a node of mode ", modes[i]);
    node.branch = static_cast<Branch>(static_cast<int>(modes[i]));
    node.nan_is_true = i < missing.size() && missing[i] != 0;
    node.feature = static_cast<size_t>(features[i]);
    node.threshold = splits[i];
    node.yes = static_cast<size_t>(yes[i]) + (yes_leaf[i] ? count : 0);
    node.no = static_cast<size_t>(no[i]) + (no_leaf[i] ? count : 0);
    if (node.yes >= count + weights.size() || node.no >= count + weights.size()) return invalid_graph("TreeEnsemble's node ", i, " has a branch to nowhere");
    if (node.branch == Branch::member) {
      for (; member != members.end() && *member == *member; ++member) node.members.push_back(*member);  // up to a NaN
      if (member != members.end()) ++member;
      std::sort(node.members.begin(), node.members.end());
    }
    out.nodes.push_back(std::move(node));
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    TreeNode leaf;
    leaf.first_vote = i;
    leaf.votes = 1;
    out.nodes.push_back(std::move(leaf));
    out.votes.push_back({static_cast<size_t>(targets[i]), weights[i]});
  }
  for (const int64_t root : roots) {
    if (root < 0 || static_cast<size_t>(root) >= count) return invalid_graph("TreeEnsemble has a root at ", root);
    out.roots.push_back(static_cast<size_t>(root));
  }
  return {};
}

Status Forest::scores(const Tensor& in, Aggregate aggregate, std::vector<std::vector<double>>& out) const {
  Tensor x;
  PY_ORT_TRY(cast(in, DType::float64, x));
  PY_ORT_ENSURE(x.rank() == 1 || x.rank() == 2, "a tree ensemble needs [N, F] or [F], got shape ", in.dims);
  const int64_t rows = x.rank() == 1 ? 1 : x.dim(0), columns = x.dim(-1);
  for (const TreeNode& node : nodes)
    PY_ORT_ENSURE(node.branch == Branch::leaf || static_cast<int64_t>(node.feature) < columns, "a tree ensemble asks for feature ", node.feature, " of ", columns);
  for (const Vote& vote : votes) PY_ORT_ENSURE(vote.target < targets, "a tree ensemble votes for target ", vote.target, " of ", targets);
  std::vector<double> sums(targets);
  std::vector<bool> voted(targets);
  for (int64_t row = 0; row < rows; ++row) {
    const double* features = x.data<double>() + row * columns;
    std::fill(sums.begin(), sums.end(), 0);
    std::fill(voted.begin(), voted.end(), false);
    for (size_t at : roots) {
      // A path cannot be longer than there are nodes; a broken model with a circle must not hang.
      for (size_t steps = 0; nodes[at].branch != Branch::leaf; ++steps) {
        PY_ORT_ENSURE(steps <= nodes.size(), "a tree goes in circles");
        at = takes(nodes[at], features[nodes[at].feature]) ? nodes[at].yes : nodes[at].no;
      }
      for (size_t i = nodes[at].first_vote; i < nodes[at].first_vote + nodes[at].votes; ++i) {
        double& sum = sums[votes[i].target];
        const bool first = !voted[votes[i].target];
        if (aggregate == Aggregate::min) sum = first ? votes[i].weight : std::min(sum, votes[i].weight);
        else if (aggregate == Aggregate::max) sum = first ? votes[i].weight : std::max(sum, votes[i].weight);
        else sum += votes[i].weight;
        voted[votes[i].target] = true;
      }
    }
    auto& scores = out.emplace_back();
    for (size_t t = 0; t < targets; ++t) {
      if (aggregate == Aggregate::average) sums[t] /= static_cast<double>(roots.size());
      scores.push_back(sums[t] + (base.size() == targets ? base[t] : 0));
    }
  }
  return {};
}

}  // namespace py_ort::ml
