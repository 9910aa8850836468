// RotaryEmbedding of ONNX (opset 23) and of com.microsoft.
#include "kernels/attention/rotary_embedding.h"

#include <algorithm>
#include <numeric>

#include "kernels/shared/axes.h"
#include "kernels/shared/half_precision.h"

namespace py_ort {

void rotate_heads(const RotaryTable& table, const Heads& from, const Heads& to, int64_t batch, int64_t heads,
                  int64_t rows, int64_t size) {
  const int64_t half = table.half, second = table.interleaved ? 1 : half, step = table.interleaved ? 2 : 1;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t row = 0; row < rows; ++row) {
        const float* x = from.at(b, h) + row * from.row_step;
        float* y = const_cast<float*>(to.at(b, h)) + row * to.row_step;
        const int64_t at = table.positions[static_cast<size_t>(b * rows + row)] * half;
        for (int64_t i = 0; i < half; ++i) {
          const float a = x[i * step], c = x[i * step + second], cos = table.cos[at + i], sin = table.sin[at + i];
          y[i * step] = cos * a - sin * c;
          y[i * step + second] = sin * a + cos * c;
        }
        if (y != x) std::copy(x + 2 * half, x + size, y + 2 * half);
      }
    }
  }
}

Status check_rotary_caches(const Tensor& cos, const Tensor& sin, RotaryTable& table) {
  PY_ORT_ENSURE(cos.dims == sin.dims && cos.rank() >= 2 && cos.dims.back() == table.half, "the caches of shapes ",
                cos.dims, " and ", sin.dims, " do not fit ", table.half, " rotated pairs");
  const int64_t known = table.half ? cos.count() / table.half : 0;
  for (int64_t position : table.positions)
    PY_ORT_ENSURE(position >= 0 && position < known, "position ", position, " is not in the caches, which have ",
                  known);
  table.cos = cos.data<float>(), table.sin = sin.data<float>();
  return {};
}

namespace {

template <bool kMicrosoft>
class RotaryEmbedding {
 public:
  explicit RotaryEmbedding(const KernelInfo& info)
      : interleaved_(info.attributes.integer("interleaved", 0) != 0),
        size_(info.attributes.integer("rotary_embedding_dim", 0)), heads_(info.attributes.integer("num_heads", 0)) {}

  Status operator()(KernelContext& context) const {
    const Tensor& x = *context.input(0);
    const Tensor &cos = *context.input(kMicrosoft ? 2 : 1), &sin = *context.input(kMicrosoft ? 3 : 2),
                 *positions = context.input(kMicrosoft ? 1 : 3);
    PY_ORT_ENSURE(x.rank() == 3 || x.rank() == 4, "RotaryEmbedding takes three or four axes, not the shape ", x.dims);
    const bool by_row = x.rank() == 3;
    const int64_t batch = x.dims[0], rows = x.dim(-2);
    int64_t heads = by_row ? heads_ : x.dims[1];
    if (heads == 0 && kMicrosoft) heads = x.dims[2] / (cos.dims.back() * 2);
    PY_ORT_ENSURE(heads > 0 && (!by_row || x.dims[2] % heads == 0),
                  "RotaryEmbedding needs num_heads to split the shape ", x.dims);
    const int64_t size = by_row ? x.dims[2] / heads : x.dims[3];
    RotaryTable table;
    table.half = (size_ ? size_ : size) / 2;
    table.interleaved = interleaved_;
    PY_ORT_TRY(read_positions(positions, batch, rows, table.positions));
    PY_ORT_TRY(check_rotary_caches(cos, sin, table));
    Tensor* y;
    PY_ORT_TRY(context.output(0, x.dtype, x.dims, y));
    const auto view = by_row ? Heads::by_row : Heads::by_head;
    rotate_heads(table, view(x.data<float>(), heads, rows, size), view(y->data<float>(), heads, rows, size), batch,
                 heads, rows, size);
    return {};
  }

 private:
  // Without positions the caches have one row per batch and row; com.microsoft's positions may be one number, the
  // first.
  static Status read_positions(const Tensor* given, int64_t batch, int64_t rows, std::vector<int64_t>& out) {
    out.resize(static_cast<size_t>(batch * rows));
    std::iota(out.begin(), out.end(), 0);
    if (!given) return {};
    std::vector<int64_t> values;
    PY_ORT_TRY(read_integers(*given, values));
    if (kMicrosoft && given->count() == 1 && given->rank() <= 1) {
      for (int64_t i = 0; i < batch * rows; ++i) out[static_cast<size_t>(i)] = values[0] + i % rows;
      return {};
    }
    PY_ORT_ENSURE(values.size() == out.size(), "position_ids of shape ", given->dims, " do not fit ", batch,
                  " batches of ", rows, " rows");
    out = std::move(values);
    return {};
  }

  bool interleaved_;
  int64_t size_, heads_;
};

PY_ORT_KERNEL("", "RotaryEmbedding", "float32,float16,bfloat16;float32,float16,bfloat16;float32,float16,bfloat16;int64",
              WithHalf<RotaryEmbedding<false>>);
PY_ORT_KERNEL(kMicrosoftDomain, "RotaryEmbedding", "float32,float16,bfloat16;int64;float32,float16,bfloat16",
              WithHalf<RotaryEmbedding<true>>);

}  // namespace
}  // namespace py_ort
