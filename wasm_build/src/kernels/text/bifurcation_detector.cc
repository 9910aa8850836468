// com.microsoft's BifurcationDetector: for decoding that copies from its source where possible.
#include <algorithm>

#include "py_ort/kernel.h"

namespace py_ort {
namespace {

class BifurcationDetector {
 public:
  static Status make(const KernelInfo& info, BifurcationDetector& out) {
    out.least_ = info.attributes.integer("min_ngram_size", 1);
    out.most_ = info.attributes.integer("max_ngram_size", 3);
    PY_ORT_ENSURE(out.least_ > 0 && out.most_ >= out.least_,
                  "BifurcationDetector needs min_ngram_size above 0 and not above max_ngram_size, not ", out.least_,
                  " and ", out.most_);
    return {};
  }

  // Inputs: the source, the tokens so far, the place in the source where they continued, the tokens predicted for the
  // rest of the source.
  Status operator()(KernelContext& context) const {
    const Tensor &source = *context.input(0), &written = *context.input(1), &place = *context.input(2);
    const Tensor* predicted = context.input(3);
    PY_ORT_ENSURE(source.rank() == 1 && written.rank() == 1 && place.count() == 1,
                  "BifurcationDetector got tokens of shapes ", source.dims, " and ", written.dims,
                  " and a match of shape ", place.dims);
    const std::span from(source.data<int64_t>(), static_cast<size_t>(source.count()));
    size_t taken = 0;
    if (predicted) {
      const int64_t start = *place.data<int64_t>(), rest = source.count() - start;
      PY_ORT_ENSURE(start >= 0 && rest >= 0, "prev_suffix_match_idx is ", start, " in a source of ", source.count(),
                    " tokens");
      PY_ORT_ENSURE(predicted->rank() == 1 && predicted->count() == rest + 1, "pred_tokens must have ", rest + 1,
                    " tokens, not shape ", predicted->dims);
      const int64_t* guess = predicted->data<int64_t>();
      // The tokens equal to the source's, and the first different one.
      taken = static_cast<size_t>(std::mismatch(from.begin() + start, from.end(), guess).second - guess) + 1;
    }
    Tensor *tokens, *match;
    const auto before = static_cast<size_t>(written.count());
    PY_ORT_TRY(context.output(0, DType::int64, {static_cast<int64_t>(before + taken)}, tokens));
    int64_t* to = tokens->mutable_data<int64_t>();
    std::copy_n(written.data<int64_t>(), before, to);
    if (predicted) std::copy_n(predicted->data<int64_t>(), taken, to + before);
    PY_ORT_TRY(context.output(1, DType::int64, place.dims, match));
    *match->mutable_data<int64_t>() = suffix(from, {to, before + taken});
    return {};
  }

 private:
  // The place after the longest suffix of `tokens` that is in the source; -1 if the source has it more than once.
  int64_t suffix(std::span<const int64_t> source, std::span<const int64_t> tokens) const {
    int64_t found = -1;
    for (int64_t size = least_; size <= most_ && size <= static_cast<int64_t>(tokens.size()); ++size) {
      const auto end = tokens.last(static_cast<size_t>(size));
      const auto at = std::search(source.begin(), source.end(), end.begin(), end.end());
      if (at == source.end()) break;
      found = at - source.begin() + size;
      if (found >= static_cast<int64_t>(source.size())) break;
      if (std::search(at + 1, source.end(), end.begin(), end.end()) != source.end()) found = -1;
    }
    return found;
  }

  int64_t least_ = 1, most_ = 1;
};

PY_ORT_KERNEL(kMicrosoftDomain, "BifurcationDetector", "int64", BifurcationDetector);

}  // namespace
}  // namespace py_ort
