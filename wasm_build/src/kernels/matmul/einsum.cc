// Einsum: the operands are contracted from left to right, each step as a batch of matrix products.
#include <algorithm>
#include <map>

#include "kernels/shared/dtypes.h"
#include "kernels/shared/lanes.h"
#include "kernels/shared/strided.h"

namespace py_ort {
namespace {

// A tensor whose axes have labels: letters, and for an ellipsis' axes, counted from the right, the numbers 0, 1, ...
using Labels = std::vector<char>;
struct Term {
  Labels labels;
  Tensor tensor;
};
using Sizes = std::map<char, int64_t>;

bool contains(const Labels& labels, char label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}
void add_label(Labels& labels, char label) {
  if (!contains(labels, label)) labels.push_back(label);
}

// `term` with its axes in the order of `labels`. A label that it lacks (or has with size 1) is repeated; a label that
// it has twice means its diagonal.
Status arrange(const Term& term, const Labels& labels, const Sizes& sizes, Tensor& out) {
  const Dims strides = strides_of(term.tensor.dims);
  Dims dims;
  StridedView view;
  for (const char label : labels) {
    dims.push_back(sizes.at(label));
    int64_t step = 0;
    for (size_t i = 0; i < term.labels.size(); ++i)
      if (term.labels[i] == label && term.tensor.dims[i] != 1) step += strides[i];
    view.strides.push_back(step);
  }
  PY_ORT_TRY(Tensor::make(term.tensor.dtype, dims, out));
  strided_copy(term.tensor, std::move(view), out, {0, strides_of(dims)}, dims);
  return {};
}

template <class T>
void multiply(const T* a, const T* b, T* c, int64_t batch, int64_t rows, int64_t depth, int64_t columns) {
  for (int64_t n = 0; n < batch; ++n, a += rows * depth, b += depth * columns)
    for (int64_t i = 0; i < rows; ++i, c += columns) {
      std::fill_n(c, columns, T{0});
      for (int64_t k = 0; k < depth; ++k) {
        const T factor = a[i * depth + k];
        const T* row = b + k * columns;
        for (int64_t j = 0; j < columns; ++j) c[j] += factor * row[j];
      }
    }
}

// The product of two terms, summed over all labels that are not in `keep`.
Status contract(const Term& a, const Term& b, const Labels& keep, const Sizes& sizes, Term& out) {
  Labels batch, rows, columns, depth;
  for (const char label : a.labels)
    add_label(
        contains(b.labels, label) ? (contains(keep, label) ? batch : depth) : (contains(keep, label) ? rows : depth),
        label);
  for (const char label : b.labels)
    if (!contains(a.labels, label)) add_label(contains(keep, label) ? columns : depth, label);
  const auto joined = [](std::initializer_list<const Labels*> parts) {
    Labels all;
    for (const Labels* part : parts) all.insert(all.end(), part->begin(), part->end());
    return all;
  };
  const auto count = [&](const Labels& labels) {
    int64_t product = 1;
    for (const char label : labels) product *= sizes.at(label);
    return product;
  };
  Tensor left, right;
  PY_ORT_TRY(arrange(a, joined({&batch, &rows, &depth}), sizes, left));
  PY_ORT_TRY(arrange(b, joined({&batch, &depth, &columns}), sizes, right));
  out.labels = joined({&batch, &rows, &columns});
  Dims dims;
  for (const char label : out.labels) dims.push_back(sizes.at(label));
  PY_ORT_TRY(Tensor::make(a.tensor.dtype, std::move(dims), out.tensor));
  visit_lane(lane_of(a.tensor.dtype), [&]<class T>() {
    // Integers wrap, so they are multiplied as unsigned ones.
    using U = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
    multiply(left.data<U>(), right.data<U>(), out.tensor.mutable_data<U>(), count(batch), count(rows), count(depth),
             count(columns));
  });
  return {};
}

class Einsum {
 public:
  static Status make(const KernelInfo& info, Einsum& out) {
    std::string equation;
    for (const char c : info.attributes.text("equation", ""))
      if (c != ' ') equation += c;
    const size_t arrow = equation.find("->");
    out.explicit_ = arrow != std::string::npos;
    if (out.explicit_) out.output_ = equation.substr(arrow + 2);
    std::string inputs = equation.substr(0, arrow);
    for (size_t at = 0; at <= inputs.size();) {
      const size_t comma = std::min(inputs.find(',', at), inputs.size());
      out.inputs_.push_back(inputs.substr(at, comma - at));
      at = comma + 1;
    }
    if (out.inputs_.size() != info.input_count)
      return invalid_graph("Einsum '", equation, "' has ", out.inputs_.size(), " terms for ", info.input_count,
                           " inputs");
    return {};
  }
  Status operator()(KernelContext& context) const {
    const DType dtype = context.input(0)->dtype;
    Sizes sizes;
    std::vector<Term> terms(inputs_.size());
    size_t ellipsis = 0;
    for (size_t i = 0; i < terms.size(); ++i) {
      PY_ORT_TRY(widened(*context.input(i), terms[i].tensor));
      const Dims& dims = terms[i].tensor.dims;
      const auto letters =
          static_cast<size_t>(std::count_if(inputs_[i].begin(), inputs_[i].end(), [](char c) { return c != '.'; }));
      const bool dots = letters != inputs_[i].size();
      PY_ORT_ENSURE(dots ? letters <= dims.size() : letters == dims.size(), "Einsum: '", inputs_[i],
                    "' does not fit shape ", dims);
      ellipsis = std::max(ellipsis, dots ? dims.size() - letters : 0);
      terms[i].labels = parse(inputs_[i], dims.size() - letters);
      for (size_t d = 0; d < dims.size(); ++d) {
        int64_t& size = sizes.try_emplace(terms[i].labels[d], 1).first->second;
        // Operands broadcast to each other, the axes of a diagonal do not.
        const Labels& labels = terms[i].labels;
        const auto first = static_cast<size_t>(std::find(labels.begin(), labels.end(), labels[d]) - labels.begin());
        PY_ORT_ENSURE(dims[d] == dims[first] && (size == 1 || dims[d] == 1 || size == dims[d]), "Einsum: '", inputs_[i],
                      "' of shape ", dims, " against a size of ", size);
        if (dims[d] != 1) size = dims[d];
      }
    }
    Labels output;
    if (explicit_) {
      output = parse(output_, ellipsis);
    } else {
      // Without an arrow: the ellipsis, then the letters that occur once, in order.
      std::map<char, int> times;
      for (const Term& term : terms)
        for (const char label : term.labels) ++times[label];
      output = parse("...", ellipsis);
      for (const auto& [label, n] : times)
        if (label >= 'A' && n == 1) output.push_back(label);
    }
    for (const char label : output)
      PY_ORT_ENSURE(sizes.contains(label), "Einsum: the output has a label that no input has");

    Term total = std::move(terms[0]);
    for (size_t i = 1; i < terms.size(); ++i) {
      Labels keep = output;
      for (size_t later = i + 1; later < terms.size(); ++later)
        keep.insert(keep.end(), terms[later].labels.begin(), terms[later].labels.end());
      Term next;
      PY_ORT_TRY(contract(total, terms[i], keep, sizes, next));
      total = std::move(next);
    }
    if (terms.size() == 1) {  // sums the remaining labels
      Term one, sum;
      PY_ORT_TRY(Tensor::make(DType::int64, {}, one.tensor));
      *one.tensor.mutable_data<int64_t>() = 1;
      PY_ORT_TRY(cast(Tensor(one.tensor), total.tensor.dtype, one.tensor));
      PY_ORT_TRY(contract(total, one, output, sizes, sum));
      total = std::move(sum);
    }
    Tensor arranged, result;
    PY_ORT_TRY(arrange(total, output, sizes, arranged));
    PY_ORT_TRY(cast(arranged, dtype, result));
    context.output(0, std::move(result));
    return {};
  }

 private:
  static Labels parse(std::string_view text, size_t ellipsis) {
    Labels labels;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '.') {
        labels.push_back(text[i]);
        continue;
      }
      for (size_t d = ellipsis; d-- > 0;) labels.push_back(static_cast<char>(d));
      i += 2;
    }
    return labels;
  }
  std::vector<std::string> inputs_;
  std::string output_;
  bool explicit_ = false;
};

PY_ORT_KERNEL("", "Einsum", "=" PY_ORT_NUMBERS, Einsum);

}  // namespace
}  // namespace py_ort
