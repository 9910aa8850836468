// Mixtures of experts: products of rows with the matrices of the experts to which each row is assigned.
#include "kernels/quantization/block_product.h"
#include "kernels/shared/half_precision.h"
#include "kernels/matmul/unpacked_product.h"
#include "py_ort/gen/dialect.h"

namespace py_ort {
namespace {

class ExpertMatMul {
 public:
  explicit ExpertMatMul(const KernelInfo& info)
      : bits_(info.attributes.integer("bits", 0)), block_(info.attributes.integer("block_size", 0)) {}

  // Inputs: X, a row for each token or for each choice; the choices [tokens, choices per token]; the experts' matrices
  // [experts, n, k], floats or packed; for packed ones scales [experts, n] or [experts, n, blocks], and zero points,
  // packed along the last of these axes; a bias [experts, n].
  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), &choices = *context.input(1), &w = *context.input(2),
                 *scales = context.input(3), *zeros = context.input(4), *bias = context.input(5);
    PY_ORT_ENSURE(x.rank() == 2 && choices.rank() == 2 && w.rank() == 3, "X, the choices and the experts of shapes ",
                  x.dims, ", ", choices.dims, " and ", w.dims, " should have 2, 2 and 3 axes");
    const int64_t experts = w.dims[0], n = w.dims[1], k = x.dims[1], rows = choices.count();
    const int64_t blocks = block_ ? k / block_ : 1, row_bytes = k * bits_ / 8;
    PY_ORT_ENSURE(!block_ || k % block_ == 0, "rows of ", k, " are not whole blocks of ", block_);
    PY_ORT_ENSURE(w.dims[2] == (bits_ ? row_bytes : k), "experts of shape ", w.dims, " do not fit X of shape ", x.dims);
    PY_ORT_ENSURE(rows == x.dims[0] || choices.dims[0] == x.dims[0], "choices of shape ", choices.dims,
                  " do not fit X of shape ", x.dims);
    PY_ORT_ENSURE(!bits_ || (scales && scales->count() == experts * n * blocks),
                  "the scales do not fit experts of shape ", w.dims);
    const int64_t along = block_ ? blocks : n, zero_bytes = (along * bits_ + 7) / 8;  // of a row of zero points
    PY_ORT_ENSURE(!zeros || zeros->count() == experts * (block_ ? n : 1) * zero_bytes, "zero points of shape ",
                  zeros->dims, " do not fit experts of shape ", w.dims);
    PY_ORT_ENSURE(!bias || bias->count() == experts * n, "a bias of shape ", bias->dims,
                  " does not fit experts of shape ", w.dims);
    Tensor* y;
    PY_ORT_TRY(context.output(0, DType::float32, {choices.dims[0], choices.dims[1], n}, y));
    const int64_t each = rows && x.dims[0] ? rows / x.dims[0] : 1;
    std::vector<std::vector<int64_t>> rows_of(static_cast<size_t>(experts));
    for (int64_t row = 0; row < rows; ++row) {
      const int32_t expert = choices.data<int32_t>()[row];
      PY_ORT_ENSURE(expert >= 0 && expert < experts, "there is no expert ", expert, ": there are ", experts);
      rows_of[static_cast<size_t>(expert)].push_back(row);
    }
    std::vector<float> left, right;
    for (int64_t e = 0; e < experts; ++e) {
      const std::vector<int64_t>& mine = rows_of[static_cast<size_t>(e)];
      if (mine.empty()) continue;
      const auto count = static_cast<int64_t>(mine.size());
      left.resize(static_cast<size_t>(count * k)), right.resize(static_cast<size_t>(count * n));
      for (int64_t i = 0; i < count; ++i)
        std::copy_n(x.data<float>() + mine[static_cast<size_t>(i)] / each * k, k, left.data() + i * k);
      const float* added = bias ? bias->data<float>() + e * n : nullptr;
      if (block_) {
        BlockProduct product;
        product.rows = static_cast<int32_t>(count);
        product.n = static_cast<int32_t>(n), product.k = static_cast<int32_t>(k);
        product.bits = static_cast<int32_t>(bits_), product.block = static_cast<int32_t>(block_);
        product.integers = bits_ == 8;  // as natively
        product.a = left.data(), product.c = right.data(), product.bias = added;
        product.b = w.data<uint8_t>() + e * n * row_bytes;
        product.scales = scales->data<float>() + e * n * blocks;
        if (zeros) product.zeros = zeros->data<uint8_t>() + e * n * zero_bytes;
        PY_ORT_TRY(multiply_blocks(product));
      } else if (bits_) {
        const auto zero_point = [&](int64_t column) {
          if (!zeros) return static_cast<float>(1 << (bits_ - 1));
          const int64_t bit = column * bits_;
          return static_cast<float>(zeros->data<uint8_t>()[e * zero_bytes + bit / 8] >> (bit % 8) & ((1 << bits_) - 1));
        };
        const auto unpack = [&](int64_t column, float* to) {
          unpack_bits(w.data<uint8_t>() + (e * n + column) * row_bytes, bits_, k, scales->data<float>()[e * n + column],
                      zero_point(column), to);
        };
        PY_ORT_TRY(multiply_unpacked(left.data(), count, k, n, (k + 15) / 16 * 16, unpack, added, right.data()));
      } else if (count < kFewRows) {
        for (int64_t column = 0; column < n; ++column)
          for (int64_t i = 0; i < count; ++i)
            right[static_cast<size_t>(i * n + column)] =
                dot_product(left.data() + i * k, w.data<float>() + (e * n + column) * k, k) +
                (added ? added[column] : 0.0f);
      } else {
        ProductEnd end;
        end.c = right.data(), end.c_stride = n, end.bias = added;
        PY_ORT_TRY(multiply(row_major(left.data(), count, k), row_major(w.data<float>() + e * n * k, n, k).transposed(),
                            1, end));
      }
      for (int64_t i = 0; i < count; ++i)
        std::copy_n(right.data() + i * n, n, y->mutable_data<float>() + mine[static_cast<size_t>(i)] * n);
    }
    return {};
  }

 private:
  int64_t bits_, block_;
};

PY_ORT_KERNEL(dialect::kInternalDomain, dialect::kExpertMatmul,
              "float32,float16,bfloat16;int32;float32,float16,bfloat16,uint8;float32,float16,bfloat16;uint8;float32,"
              "float16,bfloat16",
              WithHalf<ExpertMatMul>);

}  // namespace
}  // namespace py_ort
