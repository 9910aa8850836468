// com.microsoft's NGramHashMapping: numbers for each token and those before it, by which tables are looked up.
#include <algorithm>

#include "py_ort/kernel.h"

namespace py_ort {
namespace {

class NGramHashMapping {
 public:
  static Status make(const KernelInfo& info, NGramHashMapping& out) {
    out.longest_ = info.attributes.integer("max_ngram_size", 0);
    out.heads_ = info.attributes.integer("n_head_per_ngram", 0);
    out.pad_ = info.attributes.integer("pad_id", 0);
    out.resets_ = info.attributes.integer("reset_on_eos", 0) != 0;
    PY_ORT_ENSURE(out.longest_ >= 2 && out.heads_ >= 1,
                  "NGramHashMapping needs max_ngram_size of 2 or more and n_head_per_ngram above 0, not ", out.longest_,
                  " and ", out.heads_);
    return {};
  }

  Status operator()(KernelContext& context) const {
    return context.input(0)->dtype == DType::int32 ? run<int32_t>(context) : run<int64_t>(context);
  }

 private:
  // Inputs: tokens [batch, positions], factors, sizes of tables; perhaps tokens before, offsets, the end's token,
  // segments.
  template <class T>
  Status run(KernelContext& context) const {
    using Wide = std::make_unsigned_t<T>;  // products wrap
    const Tensor &ids = *context.input(0), &factors = *context.input(1), &sizes = *context.input(2);
    const Tensor *past = context.input(3), *offsets = context.input(4), *eos = context.input(5),
                 *segments = context.input(6);
    const int64_t before = longest_ - 1, columns = before * heads_;
    PY_ORT_ENSURE(ids.rank() == 2, "input_ids must have two axes, not shape ", ids.dims);
    PY_ORT_ENSURE(factors.rank() == 1 && factors.count() >= longest_, "multipliers must have ", longest_,
                  " elements or more, not shape ", factors.dims);
    PY_ORT_ENSURE(sizes.rank() == 1 && sizes.count() == columns, "vocab_sizes must have ", columns,
                  " elements, not shape ", sizes.dims);
    const int64_t batch = ids.dims[0], positions = ids.dims[1];
    PY_ORT_ENSURE(!past || past->dims == (Dims{batch, before}), "past_ids must have shape ", (Dims{batch, before}),
                  ", not ", past->dims);
    PY_ORT_ENSURE(!offsets || offsets->dims == Dims{columns}, "head_offsets must have ", columns,
                  " elements, not shape ", offsets->dims);
    PY_ORT_ENSURE(!segments || segments->dims == ids.dims, "segment_ids must have input_ids' shape ", ids.dims,
                  ", not ", segments->dims);
    PY_ORT_ENSURE(!eos || eos->count() == 1, "eos_token_id must be one token, not of shape ", eos->dims);
    const T* size = sizes.data<T>();
    PY_ORT_ENSURE(std::all_of(size, size + columns, [](T n) { return n > 0; }), "vocab_sizes must be above 0");
    const T missing = eos ? *eos->data<T>() : static_cast<T>(pad_);
    Tensor *hashes, *present;
    PY_ORT_TRY(context.output(0, ids.dtype, {batch, positions, columns}, hashes));
    PY_ORT_TRY(context.output(1, ids.dtype, {batch, before}, present));
    T *to = hashes->mutable_data<T>(), *kept = present->mutable_data<T>();
    for (int64_t b = 0; b < batch; ++b) {
      const T* row = ids.data<T>() + b * positions;
      const int32_t* segment = segments ? segments->data<int32_t>() + b * positions : nullptr;
      const auto token = [&](int64_t at) {
        return at >= 0 ? row[at] : past ? past->data<T>()[(b + 1) * before + at] : missing;
      };
      for (int64_t t = 0; t < positions; ++t) {
        Wide mixed = static_cast<Wide>(row[t]) * static_cast<Wide>(factors.data<T>()[0]);
        bool over = false;  // the text, or the segment, began later
        for (int64_t k = 1; k < longest_; ++k) {
          const int64_t at = t - k;
          over = over || (segment && at >= 0 && segment[at] != segment[at + 1]) ||
                 (resets_ && eos && token(at) == missing);
          mixed ^= static_cast<Wide>(over ? missing : token(at)) * static_cast<Wide>(factors.data<T>()[k]);
          for (int64_t h = (k - 1) * heads_; h < k * heads_; ++h) {
            const T rest = static_cast<T>(static_cast<T>(mixed) % size[h]);
            const Wide hash = static_cast<Wide>(rest < 0 ? rest + size[h] : rest);
            *to++ = static_cast<T>(hash + (offsets ? static_cast<Wide>(offsets->data<T>()[h]) : 0));
          }
        }
      }
      for (int64_t j = 0; j < before; ++j) kept[b * before + j] = token(positions - before + j);
    }
    return {};
  }

  int64_t longest_ = 2, heads_ = 1, pad_ = 0;
  bool resets_ = false;
};

PY_ORT_KERNEL(kMicrosoftDomain, "NGramHashMapping",
              "int32,int64;int32,int64;int32,int64;int32,int64;int32,int64;int32,int64;int32", NGramHashMapping);

}  // namespace
}  // namespace py_ort
