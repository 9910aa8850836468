// com.microsoft's NGramRepeatBlock: tokens that would repeat an earlier n-gram get the lowest score.
#include <algorithm>
#include <limits>

#include "py_ort/kernel.h"

namespace py_ort {
namespace {

// Inputs: earlier tokens, [batch, positions], and scores [batch, vocabulary].
class NGramRepeatBlock {
 public:
  static Status make(const KernelInfo& info, NGramRepeatBlock& out) {
    out.length_ = info.attributes.integer("ngram_size", 0);
    PY_ORT_ENSURE(out.length_ > 0, "NGramRepeatBlock needs an ngram_size above 0, not ", out.length_);
    return {};
  }

  Status operator()(KernelContext& context) const {
    const Tensor &ids = *context.input(0), &scores = *context.input(1);
    PY_ORT_ENSURE(ids.rank() == 2 && scores.rank() == 2 && ids.dims[0] == scores.dims[0],
                  "NGramRepeatBlock got input_ids of shape ", ids.dims, " and scores of shape ", scores.dims);
    Tensor* out;
    PY_ORT_TRY(context.output(0, DType::float32, scores.dims, out, {1}));
    float* y = out->mutable_data<float>();
    if (y != scores.data<float>()) std::copy_n(scores.data<float>(), scores.count(), y);
    const int64_t positions = ids.dims[1], vocabulary = scores.dims[1], before = length_ - 1;
    const int64_t* row = ids.data<int64_t>();
    for (int64_t b = 0; b < ids.dims[0]; ++b, row += positions, y += vocabulary) {
      const int64_t* last = row + positions - before;
      for (int64_t i = 0; i + length_ <= positions; ++i) {
        if (!std::equal(last, row + positions, row + i)) continue;
        const int64_t token = row[i + before];
        PY_ORT_ENSURE(token >= 0 && token < vocabulary, "input_ids name token ", token, " of a vocabulary of ",
                      vocabulary);
        y[token] = -std::numeric_limits<float>::infinity();
      }
    }
    return {};
  }

 private:
  int64_t length_ = 0;
};

PY_ORT_KERNEL(kMicrosoftDomain, "NGramRepeatBlock", "int64;float32", NGramRepeatBlock);

}  // namespace
}  // namespace py_ort
