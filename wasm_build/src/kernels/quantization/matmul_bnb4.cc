// com.microsoft's MatMulBnb4: a product with weights of 4 bits. Each is an index into a table (FP4 or NF4), times the
// largest value of its block.
#include "kernels/shared/half_precision.h"
#include "kernels/matmul/unpacked_product.h"

namespace py_ort {
namespace {

constexpr float kFp4[16] = {0.0f,
                            0.005208333488553762f,
                            0.6666666865348816f,
                            1.0f,
                            0.3333333432674408f,
                            0.5f,
                            0.1666666716337204f,
                            0.25f,
                            0.0f,
                            -0.005208333488553762f,
                            -0.6666666865348816f,
                            -1.0f,
                            -0.3333333432674408f,
                            -0.5f,
                            -0.1666666716337204f,
                            -0.25f};
constexpr float kNf4[16] = {-1.0f,
                            -0.6961928009986877f,
                            -0.5250730514526367f,
                            -0.39491748809814453f,
                            -0.28444138169288635f,
                            -0.18477343022823334f,
                            -0.09105003625154495f,
                            0.0f,
                            0.07958029955625534f,
                            0.16093020141124725f,
                            0.24611230194568634f,
                            0.33791524171829224f,
                            0.44070982933044434f,
                            0.5626170039176941f,
                            0.7229568362236023f,
                            1.0f};

// The table of four-bit weights: one byte of each number in every plane, so that sixteen are looked up at a time.
class Table {
 public:
  explicit Table(const float (&numbers)[16]) : numbers_(numbers) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(numbers);
    for (int plane = 0; plane < 4; ++plane) {
      uint8_t own[16];
      for (int i = 0; i < 16; ++i) own[i] = bytes[4 * i + plane];
      planes_[plane] = wasm_v128_load(own);
    }
  }
  float operator[](int bits) const { return numbers_[bits]; }
  // Sixteen weights of eight bytes, times `factor`; a byte's high bits are its first weight.
  [[gnu::noinline]] void sixteen(const uint8_t* from, float factor, float* to) const {
    const v128_t pairs = wasm_v128_load64_zero(from);
    const v128_t high = wasm_u8x16_shr(pairs, 4), low = wasm_v128_and(pairs, wasm_i8x16_splat(15));
    const v128_t bits = wasm_i8x16_shuffle(high, low, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    v128_t bytes[4];
    for (int plane = 0; plane < 4; ++plane) bytes[plane] = wasm_i8x16_swizzle(planes_[plane], bits);
    v128_t halves[2][2];  // of numbers: the low and the high byte of the first and the last eight
    for (int half = 0; half < 2; ++half) {
      const v128_t x = bytes[2 * half], y = bytes[2 * half + 1];
      halves[0][half] = wasm_i8x16_shuffle(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      halves[1][half] = wasm_i8x16_shuffle(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
    for (int i = 0; i < 2; ++i) {
      const v128_t x = halves[i][0], y = halves[i][1];
      simd::store(to + 8 * i, simd::mul(wasm_i16x8_shuffle(x, y, 0, 8, 1, 9, 2, 10, 3, 11), simd::splat(factor)));
      simd::store(to + 8 * i + 4, simd::mul(wasm_i16x8_shuffle(x, y, 4, 12, 5, 13, 6, 14, 7, 15), simd::splat(factor)));
    }
  }

 private:
  const float (&numbers_)[16];
  v128_t planes_[4];
};

class MatMulBnb4 {
 public:
  static Status make(const KernelInfo& info, MatMulBnb4& out) {
    const Attributes& a = info.attributes;
    out.k_ = a.integer("K", 0), out.n_ = a.integer("N", 0), out.block_ = a.integer("block_size", 0);
    out.transposed_ = a.integer("transB", 1) != 0;
    const int64_t type = a.integer("quant_type", 0);
    if (type != 0 && type != 1) return invalid_graph("MatMulBnb4's quant_type is 0 (FP4) or 1 (NF4), not ", type);
    if (out.block_ < 1) return invalid_graph("MatMulBnb4's block_size cannot be ", out.block_);
    out.table_ = type == 0 ? &kFp4 : &kNf4;
    return {};
  }

  // Inputs: A; B, [N, K] flat, the first of two in the high bits; the largest value of each block of B.
  Status operator()(KernelContext& context) const {
    const Tensor &a = *context.input(0), &b = *context.input(1), &largest = *context.input(2);
    const int64_t depth = transposed_ ? k_ : n_, columns = transposed_ ? n_ : k_, all = n_ * k_;
    PY_ORT_ENSURE(a.rank() >= 1 && a.dims.back() == depth, "MatMulBnb4 of K = ", k_, " and N = ", n_,
                  " got A of shape ", a.dims);
    PY_ORT_ENSURE(b.count() == (all + 1) / 2 && largest.count() == (all + block_ - 1) / block_,
                  "MatMulBnb4 of K = ", k_, " and N = ", n_, " got B of shape ", b.dims, " and absmax of shape ",
                  largest.dims);
    Dims dims = a.dims;
    dims.back() = columns;
    Tensor* y;
    PY_ORT_TRY(context.output(0, a.dtype, dims, y));
    const uint8_t* packed = b.data<uint8_t>();
    const Table table(*table_);
    const bool in_sixteens = transposed_ && k_ % 16 == 0 && block_ % 16 == 0;
    const auto unpack = [&](int64_t column, float* to) {
      const int64_t step = transposed_ ? 1 : k_;
      int64_t i = 0, at = transposed_ ? column * k_ : column;
      for (; in_sixteens && i < depth; i += 16, at += 16)
        table.sixteen(packed + at / 2, largest.data<float>()[at / block_], to + i);
      for (; i < depth; ++i, at += step)
        to[i] = table[at % 2 ? packed[at / 2] & 15 : packed[at / 2] >> 4] * largest.data<float>()[at / block_];
    };
    const int64_t rows = depth ? a.count() / depth : 0;
    return multiply_unpacked(a.data<float>(), rows, depth, columns, depth, unpack, nullptr, y->mutable_data<float>());
  }

 private:
  int64_t k_ = 0, n_ = 0, block_ = 0;
  bool transposed_ = true;
  const float (*table_)[16] = &kFp4;
};

PY_ORT_KERNEL(kMicrosoftDomain, "MatMulBnb4", "float32,float16,bfloat16;uint8;float32,float16,bfloat16",
              WithHalf<MatMulBnb4>);

}  // namespace
}  // namespace py_ort
