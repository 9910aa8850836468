#include "kernels/ml/trees.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "kernels/shared/lanes.h"

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

bool takes(const TreeNode& node, const std::vector<double>& members, double x) {
  if (x != x) return node.nan_is_true || node.branch == Branch::not_equal;
  switch (node.branch) {
    case Branch::less_or_equal: return x <= node.threshold;
    case Branch::less: return x < node.threshold;
    case Branch::greater_or_equal: return x >= node.threshold;
    case Branch::greater: return x > node.threshold;
    case Branch::equal: return x == node.threshold;
    case Branch::not_equal: return x != node.threshold;
    case Branch::member:
      return std::binary_search(members.data() + node.first, members.data() + node.first + node.count, x);
    case Branch::leaf: break;
  }
  return false;
}

// Finds a node by its tree and id.
class NodeIndex {
 public:
  NodeIndex(const std::vector<int64_t>& trees, const std::vector<int64_t>& ids)
      : trees_(trees), ids_(ids), sorted_(trees.size()) {
    std::iota(sorted_.begin(), sorted_.end(), 0u);
    const auto before = [&](uint32_t a, uint32_t b) {
      return std::pair(trees[a], ids[a]) < std::pair(trees[b], ids[b]);
    };
    if (!std::is_sorted(sorted_.begin(), sorted_.end(), before))
      std::stable_sort(sorted_.begin(), sorted_.end(), before);
    for (uint32_t i = 0; i < sorted_.size(); ++i) first_.try_emplace(trees[sorted_[i]], i);
  }
  // Of several nodes with the same id the last one counts.
  bool find(int64_t tree, int64_t id, size_t& found) const {
    const auto first = first_.find(tree);
    if (first == first_.end()) return false;
    // Most trees number their nodes from 0.
    const size_t guess = first->second + static_cast<size_t>(std::clamp<int64_t>(id, 0, UINT32_MAX / 2));
    if (is(guess, tree, id) && !is(guess + 1, tree, id)) {
      found = sorted_[guess];
      return true;
    }
    const auto after =
        std::upper_bound(sorted_.begin(), sorted_.end(), std::pair(tree, id),
                         [&](const auto& name, uint32_t i) { return name < std::pair(trees_[i], ids_[i]); });
    if (after == sorted_.begin() || !is(static_cast<size_t>(after - sorted_.begin()) - 1, tree, id)) return false;
    found = *std::prev(after);
    return true;
  }

 private:
  bool is(size_t place, int64_t tree, int64_t id) const {
    return place < sorted_.size() && trees_[sorted_[place]] == tree && ids_[sorted_[place]] == id;
  }

  const std::vector<int64_t>&trees_, &ids_;
  std::vector<uint32_t> sorted_;
  std::unordered_map<int64_t, uint32_t> first_;
};

}  // namespace

// `feature` is the model's: a leaf has none, whatever the model says.
Status Forest::add(TreeNode node, int64_t feature) {
  if (node.branch != Branch::leaf) {
    if (feature < 0 || feature > INT32_MAX) return invalid_graph("a tree ensemble asks for feature ", feature);
    node.feature = static_cast<size_t>(feature);
    last_feature = std::max(last_feature, feature);
  }
  nodes.push_back(node);
  return {};
}

Status Forest::add_vote(Vote& place, int64_t target, double weight) {
  if (target < 0) return invalid_graph("a tree ensemble votes for target ", target);
  last_target = std::max(last_target, target);
  place = {target, weight};
  return {};
}

Status Forest::from_nodes(const Attributes& a, const std::string& prefix, Forest& out) {
  static constexpr std::string_view modes[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                               "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
  const std::vector<int64_t> trees = a.integers("nodes_treeids"), ids = a.integers("nodes_nodeids"),
                             features = a.integers("nodes_featureids"), yes = a.integers("nodes_truenodeids"),
                             no = a.integers("nodes_falsenodeids"),
                             missing = a.integers("nodes_missing_value_tracks_true");
  const std::vector<std::string> names = a.texts("nodes_modes");
  std::vector<double> values, weights;
  PY_ORT_TRY(read_numbers(a, "nodes_values", values));
  PY_ORT_TRY(read_numbers(a, prefix + "weights", weights));
  PY_ORT_TRY(read_numbers(a, "base_values", out.base));
  const size_t count = trees.size();
  for (const size_t size : {ids.size(), features.size(), yes.size(), no.size(), names.size(), values.size()})
    if (size != count) return invalid_graph("a tree ensemble's nodes_* attributes differ in length");
  const NodeIndex index(trees, ids);
  const auto node_at = [&](int64_t tree, int64_t id, size_t& found) {
    if (!index.find(tree, id, found))
      return invalid_graph("a tree ensemble refers to node ", id, " of tree ", tree, ", which is not there");
    return Status{};
  };
  std::vector<bool> is_child(count);
  out.nodes.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    TreeNode node;
    const auto mode = std::find(std::begin(modes), std::end(modes), names[i]);
    if (mode == std::end(modes)) return invalid_graph("a tree ensemble has a node of mode '", names[i], "'");
    node.branch = static_cast<Branch>(mode - std::begin(modes));
    node.nan_is_true = i < missing.size() && missing[i] != 0;
    node.threshold = values[i];
    if (node.branch != Branch::leaf) {
      PY_ORT_TRY(node_at(trees[i], yes[i], node.yes));
      PY_ORT_TRY(node_at(trees[i], no[i], node.no));
      is_child[node.yes] = is_child[node.no] = true;
    }
    PY_ORT_TRY(out.add(node, features[i]));
  }
  for (size_t i = 0; i < count; ++i)
    if (!is_child[i]) out.roots.push_back(i);
  // The votes, grouped by leaf.
  const std::vector<int64_t> vote_trees = a.integers(prefix + "treeids"), vote_nodes = a.integers(prefix + "nodeids"),
                             targets = a.integers(prefix + "ids");
  if (vote_trees.size() != weights.size() || vote_nodes.size() != weights.size() || targets.size() != weights.size())
    return invalid_graph("a tree ensemble's ", prefix, "* attributes differ in length");
  std::vector<size_t> leaves(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    PY_ORT_TRY(node_at(vote_trees[i], vote_nodes[i], leaves[i]));
    ++out.nodes[leaves[i]].count;
  }
  size_t first = 0;
  for (TreeNode& node : out.nodes) {
    node.first = first;
    first += node.count;
    node.count = 0;
  }
  out.votes.resize(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    TreeNode& leaf = out.nodes[leaves[i]];
    PY_ORT_TRY(out.add_vote(out.votes[leaf.first + leaf.count++], targets[i], weights[i]));
  }
  return {};
}

Status Forest::from_leaves(const Attributes& a, Forest& out) {
  const std::vector<int64_t> features = a.integers("nodes_featureids"), yes = a.integers("nodes_truenodeids"),
                             no = a.integers("nodes_falsenodeids"), yes_leaf = a.integers("nodes_trueleafs"),
                             no_leaf = a.integers("nodes_falseleafs"),
                             missing = a.integers("nodes_missing_value_tracks_true"),
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
  // Each leaf becomes a node after the others.
  auto member = members.begin();
  for (size_t i = 0; i < count; ++i) {
    TreeNode node;
    if (!(modes[i] >= 0 && modes[i] <= 6)) return invalid_graph("TreeEnsemble has a node of mode ", modes[i]);
    node.branch = static_cast<Branch>(static_cast<int>(modes[i]));
    node.nan_is_true = i < missing.size() && missing[i] != 0;
    node.threshold = splits[i];
    node.yes = static_cast<size_t>(yes[i]) + (yes_leaf[i] ? count : 0);
    node.no = static_cast<size_t>(no[i]) + (no_leaf[i] ? count : 0);
    if (node.yes >= count + weights.size() || node.no >= count + weights.size())
      return invalid_graph("TreeEnsemble's node ", i, " has a branch to nowhere");
    if (node.branch == Branch::member) {
      node.first = out.members.size();
      for (; member != members.end() && *member == *member; ++member) out.members.push_back(*member);  // up to a NaN
      if (member != members.end()) ++member;
      node.count = out.members.size() - node.first;
      std::sort(out.members.begin() + static_cast<ptrdiff_t>(node.first), out.members.end());
    }
    PY_ORT_TRY(out.add(node, features[i]));
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    TreeNode leaf;
    leaf.first = i;
    leaf.count = 1;
    PY_ORT_TRY(out.add(leaf, 0));
    PY_ORT_TRY(out.add_vote(out.votes.emplace_back(), targets[i], weights[i]));
  }
  for (const int64_t root : roots) {
    if (root < 0 || static_cast<size_t>(root) >= count) return invalid_graph("TreeEnsemble has a root at ", root);
    out.roots.push_back(static_cast<size_t>(root));
  }
  return {};
}

Status Forest::scores(const Tensor& in, Aggregate aggregate, const Row& done) const {
  Tensor x;
  PY_ORT_TRY(cast(in, DType::float64, x));
  PY_ORT_ENSURE(x.rank() == 1 || x.rank() == 2, "a tree ensemble needs [N, F] or [F], got shape ", in.dims);
  const int64_t rows = x.rank() == 1 ? 1 : x.dim(0), columns = x.dim(-1);
  PY_ORT_ENSURE(last_feature < columns, "a tree ensemble asks for feature ", last_feature, " of ", columns);
  PY_ORT_ENSURE(last_target < static_cast<int64_t>(targets), "a tree ensemble votes for target ", last_target, " of ",
                targets);
  std::vector<double> sums(targets);
  std::vector<bool> voted(targets);
  for (int64_t row = 0; row < rows; ++row) {
    const double* row_features = x.data<double>() + row * columns;
    std::fill(sums.begin(), sums.end(), 0);
    std::fill(voted.begin(), voted.end(), false);
    for (size_t at : roots) {
      // No path is longer than the number of nodes; a broken model with a cycle must not hang.
      for (size_t steps = 0; nodes[at].branch != Branch::leaf; ++steps) {
        PY_ORT_ENSURE(steps <= nodes.size(), "a tree goes in circles");
        at = takes(nodes[at], members, row_features[nodes[at].feature]) ? nodes[at].yes : nodes[at].no;
      }
      for (size_t i = nodes[at].first; i < nodes[at].first + nodes[at].count; ++i) {
        const size_t target = static_cast<size_t>(votes[i].target);
        double& sum = sums[target];
        const bool first = !voted[target];
        if (aggregate == Aggregate::min) sum = first ? votes[i].weight : std::min(sum, votes[i].weight);
        else if (aggregate == Aggregate::max) sum = first ? votes[i].weight : std::max(sum, votes[i].weight);
        else sum += votes[i].weight;
        voted[target] = true;
      }
    }
    if (aggregate == Aggregate::average)
      for (double& sum : sums) sum /= static_cast<double>(roots.size());
    done(sums, voted);
  }
  return {};
}

}  // namespace py_ort::ml
