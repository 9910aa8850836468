// com.microsoft's EmbedLayerNormalization: the sum of the embeddings of a token, its position and its segment,
// normalized.
#include "kernels/shared/axes.h"
#include "kernels/shared/half_precision.h"
#include "py_ort/microkernels.h"

namespace py_ort {
namespace {

class EmbedLayerNormalization {
 public:
  explicit EmbedLayerNormalization(const KernelInfo& info) : epsilon_(info.attributes.number("epsilon", 1e-12f)) {}

  // Inputs: input_ids, segment_ids, the three tables of embeddings (the segments' may be missing), scale, bias, mask,
  // position_ids. Outputs: the rows, the number of unmasked tokens in each batch, the sums.
  Status operator()(KernelContext& context) const {
    const Tensor &words = *context.input(0), &scale = *context.input(5), &bias = *context.input(6),
                 *mask = context.input(7);
    PY_ORT_ENSURE(words.rank() == 2, "EmbedLayerNormalization takes input_ids [batch, length], not the shape ",
                  words.dims);
    const int64_t batch = words.dims[0], length = words.dims[1], size = context.input(2)->dim(-1);
    PY_ORT_ENSURE(scale.count() == size && bias.count() == size, "a scale of shape ", scale.dims,
                  " does not fit embeddings of ", size);
    Tensor *y, *counts, *sums;
    PY_ORT_TRY(context.output(0, DType::float32, {batch, length, size}, y));
    PY_ORT_TRY(context.output(1, DType::int32, {batch}, counts));
    PY_ORT_TRY(context.output(2, DType::float32, {batch, length, size}, sums));
    std::vector<int64_t> left;
    if (mask) PY_ORT_TRY(read_integers(*mask, left));
    PY_ORT_ENSURE(!mask || mask->count() == batch * length, "a mask of shape ", mask->dims,
                  " does not fit input_ids of shape ", words.dims);
    for (int64_t b = 0; b < batch; ++b) {
      int32_t count = 0;
      for (int64_t i = 0; mask && i < length; ++i) count += left[static_cast<size_t>(b * length + i)] == 1;
      counts->mutable_data<int32_t>()[b] = count;
    }
    std::fill_n(sums->mutable_data<float>(), sums->count(), 0.0f);
    PY_ORT_TRY(add(&words, context.input(2), "input_ids", length, size, *sums));
    PY_ORT_TRY(add(context.input(8), context.input(3), "position_ids", length, size, *sums));
    if (context.input(4)) PY_ORT_TRY(add(context.input(1), context.input(4), "segment_ids", 1, size, *sums));
    F32Normalize f;
    f.rows = static_cast<int32_t>(batch * length), f.n = static_cast<int32_t>(size);
    f.x = sums->data<float>(), f.y = y->mutable_data<float>();
    f.scale = scale.data<float>(), f.bias = bias.data<float>();
    f.epsilon = epsilon_;
    if (!run_microkernel(microkernels().f32_normalize, f))
      return out_of_memory("no memory for the scratch space of a normalization");
    return {};
  }

 private:
  // Adds the rows selected by ids; without ids, the first `length` rows in order.
  static Status add(const Tensor* ids, const Tensor* table, const char* what, int64_t length, int64_t size,
                    Tensor& sums) {
    std::vector<int64_t> rows;
    if (ids) PY_ORT_TRY(read_integers(*ids, rows));
    const int64_t known = table->dims[0], count = size ? sums.count() / size : 0;
    PY_ORT_ENSURE(table->dim(-1) == size &&
                      (!ids || count == 0 || (!rows.empty() && count % static_cast<int64_t>(rows.size()) == 0)),
                  "embeddings of shape ", table->dims, " do not fit ", what);
    float* to = sums.mutable_data<float>();
    for (int64_t i = 0; i < count; ++i, to += size) {
      const int64_t row = ids ? rows[static_cast<size_t>(i) % rows.size()] : i % length;
      PY_ORT_ENSURE(row >= 0 && row < known, "the number ", row, " in ", what, " has no embedding: there are ", known);
      const float* from = table->data<float>() + row * size;
      for (int64_t k = 0; k < size; ++k) to[k] += from[k];
    }
    return {};
  }

  float epsilon_;
};

PY_ORT_KERNEL(kMicrosoftDomain, "EmbedLayerNormalization",
              "int32,int64;int32,int64;float32,float16;float32,float16;float32,float16;float32,float16;float32,float16;"
              "int32,int64;int32,int64",
              WithHalf<EmbedLayerNormalization>);

}  // namespace
}  // namespace py_ort
