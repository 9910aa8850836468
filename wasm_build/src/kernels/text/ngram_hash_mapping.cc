// com.microsoft's NGramHashMapping and VarlenNGramHashMapping: for each token and its predecessors, numbers that index
// tables. The second one accepts texts of any lengths, concatenated.
#include <algorithm>
#include <vector>

#include "py_ort/kernel.h"

namespace py_ort {
namespace {

class NGramHashMapping {
 public:
  static Status make(const KernelInfo& info, NGramHashMapping& out) {
    out.packed_ = info.op_type.starts_with("Varlen");
    out.longest_ = info.attributes.integer("max_ngram_size", 0);
    out.heads_ = info.attributes.integer("n_head_per_ngram", 0);
    out.pad_ = info.attributes.integer("pad_id", 0);
    out.resets_ = info.attributes.integer("reset_on_eos", 0) != 0;
    out.captured_ = info.attributes.integer("state_update_capacity", 0);
    PY_ORT_ENSURE(out.longest_ >= 2 && out.heads_ >= 1, info.op_type,
                  " needs max_ngram_size of 2 or more and n_head_per_ngram above 0, not ", out.longest_, " and ",
                  out.heads_);
    PY_ORT_ENSURE(out.captured_ >= 0 && out.captured_ <= 8, "state_update_capacity must be in [0, 8], not ",
                  out.captured_);
    return {};
  }

  Status operator()(KernelContext& context) const {
    return context.input(0)->dtype == DType::int32 ? run<int32_t>(context) : run<int64_t>(context);
  }

 private:
  // Texts: the start of each in the tokens, and the end of the last one.
  Status texts(const Tensor& ids, const Tensor* ends, std::vector<int64_t>& out) const {
    if (!packed_) {
      PY_ORT_ENSURE(ids.rank() == 2, "input_ids must have two axes, not shape ", ids.dims);
      for (int64_t b = 0; b <= ids.dims[0]; ++b) out.push_back(b * ids.dims[1]);
      return {};
    }
    PY_ORT_ENSURE(ids.rank() == 1, "input_ids must have one axis, not shape ", ids.dims);
    PY_ORT_ENSURE(ends->rank() == 1 && ends->count() >= 2,
                  "cumulative_sequence_length must have an element more than there are texts, not shape ", ends->dims);
    out.assign(ends->data<int32_t>(), ends->data<int32_t>() + ends->count());
    PY_ORT_ENSURE(out.front() == 0 && out.back() == ids.count() &&
                      std::adjacent_find(out.begin(), out.end(), std::greater_equal<>()) == out.end(),
                  "cumulative_sequence_length must rise from 0 to the number of tokens, ", ids.count(), ", not be ",
                  out);
    return {};
  }

  // Inputs: tokens [batch, positions], or [all positions], factors, sizes of tables, ends of packed texts. Optional:
  // earlier tokens, offsets, the end's token, segments, earlier segments, the number of states captured per text.
  template <class T>
  Status run(KernelContext& context) const {
    using Wide = std::make_unsigned_t<T>;  // products wrap
    const size_t more = packed_ ? 4 : 3;
    const Tensor &ids = *context.input(0), &factors = *context.input(1), &sizes = *context.input(2);
    const Tensor *past = context.input(more), *offsets = context.input(more + 1), *eos = context.input(more + 2),
                 *segments = context.input(more + 3), *past_segments = packed_ ? context.input(8) : nullptr,
                 *captures = packed_ ? context.input(9) : nullptr;
    const int64_t before = longest_ - 1, columns = before * heads_;
    PY_ORT_ENSURE(factors.rank() == 1 && factors.count() >= longest_, "multipliers must have ", longest_,
                  " elements or more, not shape ", factors.dims);
    PY_ORT_ENSURE(sizes.rank() == 1 && sizes.count() == columns, "vocab_sizes must have ", columns,
                  " elements, not shape ", sizes.dims);
    std::vector<int64_t> begins;
    PY_ORT_TRY(texts(ids, packed_ ? context.input(3) : nullptr, begins));
    const auto batch = static_cast<int64_t>(begins.size()) - 1;
    const Dims states{batch, before};
    PY_ORT_ENSURE(!past || past->dims == states, "past_ids must have shape ", states, ", not ", past->dims);
    PY_ORT_ENSURE(!offsets || offsets->dims == Dims{columns}, "head_offsets must have ", columns,
                  " elements, not shape ", offsets->dims);
    PY_ORT_ENSURE(!segments || segments->dims == ids.dims, "segment_ids must have input_ids' shape ", ids.dims,
                  ", not ", segments->dims);
    PY_ORT_ENSURE(!past_segments || (segments && past_segments->dims == states), "past_segment_ids must have shape ",
                  states, " and come with segment_ids, not ", past_segments->dims);
    PY_ORT_ENSURE(!eos || eos->count() == 1, "eos_token_id must be one token, not of shape ", eos->dims);
    PY_ORT_ENSURE((captures != nullptr) == (captured_ > 0) && (!captures || captures->dims == Dims{batch}),
                  "capture_count must have ", batch, " elements if state_update_capacity is above 0, and only then");
    PY_ORT_ENSURE(segments || !packed_ || !context.wants(2), "present_segment_ids needs segment_ids");
    const T* size = sizes.data<T>();
    PY_ORT_ENSURE(std::all_of(size, size + columns, [](T n) { return n > 0; }), "vocab_sizes must be above 0");
    const T missing = eos ? *eos->data<T>() : static_cast<T>(pad_);
    Dims dims = ids.dims;
    dims.push_back(columns);
    Tensor *hashes, *present, *present_segments = nullptr, *captured = nullptr;
    PY_ORT_TRY(context.output(0, ids.dtype, dims, hashes));
    PY_ORT_TRY(context.output(1, ids.dtype, states, present));
    if (packed_ && segments) PY_ORT_TRY(context.output(2, DType::int32, states, present_segments));
    if (captures) {
      PY_ORT_TRY(context.output(3, ids.dtype, {batch, captured_, before}, captured));
      std::fill_n(captured->mutable_data<T>(), captured->count(), static_cast<T>(pad_));
    }
    T *to = hashes->mutable_data<T>(), *kept = present->mutable_data<T>();
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t begin = begins[static_cast<size_t>(b)], positions = begins[static_cast<size_t>(b) + 1] - begin;
      const T* row = ids.data<T>() + begin;
      const int32_t* segment = segments ? segments->data<int32_t>() + begin : nullptr;
      const auto token = [&](int64_t at) {
        return at >= 0 ? row[at] : past ? past->data<T>()[(b + 1) * before + at] : missing;
      };
      // Positions before the text without a segment belong to its first token's segment.
      const auto segment_of = [&](int64_t at) {
        return at >= 0 ? segment[at] : past_segments ? past_segments->data<int32_t>()[(b + 1) * before + at] : *segment;
      };
      for (int64_t t = 0; t < positions; ++t) {
        Wide mixed = static_cast<Wide>(row[t]) * static_cast<Wide>(factors.data<T>()[0]);
        bool over = false;  // the text, or the segment, began later
        for (int64_t k = 1; k < longest_; ++k) {
          const int64_t at = t - k;
          over = over || (segment && segment_of(at) != segment_of(at + 1)) || (resets_ && eos && token(at) == missing);
          mixed ^= static_cast<Wide>(over ? missing : token(at)) * static_cast<Wide>(factors.data<T>()[k]);
          for (int64_t h = (k - 1) * heads_; h < k * heads_; ++h) {
            const T rest = static_cast<T>(static_cast<T>(mixed) % size[h]);
            const Wide hash = static_cast<Wide>(rest < 0 ? rest + size[h] : rest);
            *to++ = static_cast<T>(hash + (offsets ? static_cast<Wide>(offsets->data<T>()[h]) : 0));
          }
        }
      }
      const auto keep = [&](int64_t end, T* state) {
        for (int64_t j = 0; j < before; ++j) state[j] = token(end - before + j);
      };
      keep(positions, kept + b * before);
      for (int64_t j = 0; present_segments && j < before; ++j)
        present_segments->mutable_data<int32_t>()[b * before + j] = segment_of(positions - before + j);
      const int64_t states_kept =
          captures ? std::min<int64_t>({captures->data<int32_t>()[b], positions, captured_}) : 0;
      for (int64_t j = 0; j < states_kept; ++j) keep(j + 1, captured->mutable_data<T>() + (b * captured_ + j) * before);
    }
    return {};
  }

  bool packed_ = false, resets_ = false;
  int64_t longest_ = 2, heads_ = 1, pad_ = 0, captured_ = 0;
};

PY_ORT_KERNEL(kMicrosoftDomain, "NGramHashMapping",
              "int32,int64;int32,int64;int32,int64;int32,int64;int32,int64;int32,int64;int32", NGramHashMapping);
PY_ORT_KERNEL(kMicrosoftDomain, "VarlenNGramHashMapping",
              "int32,int64;int32,int64;int32,int64;int32;int32,int64;int32,int64;int32,int64;int32", NGramHashMapping);

}  // namespace
}  // namespace py_ort
