#include <algorithm>
#include <map>

#include "kernels/shared/axes.h"
#include "py_ort/kernel.h"

namespace py_ort {
namespace {

// Counts the n-grams of a pool in each row, with gaps of 0 to max_skip_count between their items.
class TfIdfVectorizer {
 public:
  static Status make(const KernelInfo& info, TfIdfVectorizer& out) {
    const Attributes& a = info.attributes;
    out.least_ = a.integer("min_gram_length", 1);
    out.most_ = a.integer("max_gram_length", 1);
    out.skip_ = a.integer("max_skip_count", 0);
    out.mode_ = a.text("mode", "TF");
    out.weights_ = a.numbers("weights");
    const std::vector<int64_t> starts = a.integers("ngram_counts"), indexes = a.integers("ngram_indexes");
    const std::vector<std::string> words = a.texts("pool_strings");
    const std::vector<int64_t> numbers = a.integers("pool_int64s");
    const size_t pool = words.empty() ? numbers.size() : words.size();
    for (const int64_t index : indexes) out.size_ = std::max(out.size_, index + 1);
    // The pool contains all 1-grams, then all 2-grams, ...: starts[n - 1] is the start of those of length n.
    size_t next = 0;
    for (size_t n = 1; n <= starts.size(); ++n) {
      const size_t end = n < starts.size() ? static_cast<size_t>(starts[n]) : pool;
      for (auto at = static_cast<size_t>(starts[n - 1]); at + n <= end && end <= pool; at += n, ++next) {
        Gram gram;
        for (size_t i = at; i < at + n; ++i) gram.push_back(words.empty() ? std::to_string(numbers[i]) : words[i]);
        if (next >= indexes.size())
          return invalid_graph("TfIdfVectorizer has more n-grams than ngram_indexes (", indexes.size(), ")");
        out.grams_.emplace(std::move(gram), next);
      }
    }
    out.indexes_ = indexes;
    const bool known = out.mode_ == "TF" || out.mode_ == "IDF" || out.mode_ == "TFIDF";
    return known ? Status{} : invalid_graph("TfIdfVectorizer's mode must be TF, IDF or TFIDF, not '", out.mode_, "'");
  }
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    PY_ORT_ENSURE(in.rank() <= 2, "TfIdfVectorizer needs [C] or [N, C], got shape ", in.dims);
    const int64_t rows = in.rank() == 2 ? in.dim(0) : 1, columns = in.rank() == 0 ? 1 : in.dim(-1);
    std::vector<std::string> items(static_cast<size_t>(in.count()));
    if (in.dtype == DType::string_) {
      std::copy_n(in.strings(), in.count(), items.begin());
    } else {
      std::vector<int64_t> numbers;
      PY_ORT_TRY(read_integers(in, numbers));
      std::transform(numbers.begin(), numbers.end(), items.begin(), [](int64_t n) { return std::to_string(n); });
    }
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, DType::float32, in.rank() == 2 ? Dims{rows, size_} : Dims{size_}, out));
    std::fill_n(out->mutable_data<float>(), out->count(), 0.0f);
    for (int64_t row = 0; row < rows; ++row)
      count_row(items.data() + row * columns, columns, out->mutable_data<float>() + row * size_);
    return {};
  }

 private:
  using Gram = std::vector<std::string>;

  void count_row(const std::string* items, int64_t count, float* out) const {
    for (int64_t n = least_; n <= most_; ++n)
      for (int64_t distance = 1; distance <= (n == 1 ? 1 : skip_ + 1); ++distance)  // a single item has no gaps
        for (int64_t start = 0; start + (n - 1) * distance < count; ++start) {
          Gram gram;
          for (int64_t i = 0; i < n; ++i) gram.push_back(items[start + i * distance]);
          if (const auto found = grams_.find(gram); found != grams_.end()) ++out[indexes_[found->second]];
        }
    if (mode_ == "TF") return;
    for (const auto& [gram, i] : grams_) {
      float& value = out[indexes_[i]];
      const float weight = i < weights_.size() ? weights_[i] : 1;
      value = mode_ == "IDF" ? (value > 0 ? weight : 0) : value * weight;
    }
  }

  int64_t least_ = 1, most_ = 1, skip_ = 0, size_ = 0;
  std::string mode_;
  std::vector<float> weights_;
  std::vector<int64_t> indexes_;
  std::map<Gram, size_t> grams_;  // to its number in the pool
};

PY_ORT_KERNEL("", "TfIdfVectorizer", "string,int32,int64", TfIdfVectorizer);

}  // namespace
}  // namespace py_ort
