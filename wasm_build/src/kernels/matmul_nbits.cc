// com.microsoft's MatMulNBits: a matrix product with weights of 2, 4 or 8 bits in blocks of one scale and zero point each.
#include <algorithm>

#include "axes.h"
#include "half_precision.h"
#include "product.h"
#include "simd_math.h"

namespace py_ort {
namespace {

// Few rows multiply the weights as they are unpacked; more rows share a panel of 8 unpacked columns.
constexpr int64_t kFewRows = 4;

class MatMulNBits {
 public:
  static Status make(const KernelInfo& info, MatMulNBits& out) {
    const Attributes& a = info.attributes;
    out.k_ = a.integer("K", 0), out.n_ = a.integer("N", 0);
    out.bits_ = a.integer("bits", 4), out.block_ = a.integer("block_size", 0);
    if (out.bits_ != 2 && out.bits_ != 4 && out.bits_ != 8) return not_implemented("MatMulNBits with ", out.bits_, " bits (2, 4 and 8 are)");
    if (out.block_ < 16 || (out.block_ & (out.block_ - 1)))
      return invalid_graph("MatMulNBits's block_size must be a power of two and 16 or more, not ", out.block_);
    return {};
  }

  // Inputs: A, B [N, blocks, bytes of a block], scales [N, blocks], zero points (packed like B, or floats), group indices, a bias.
  Status operator()(KernelContext& context) const {
    const Tensor &a = *context.input(0), &b = *context.input(1), &scales = *context.input(2), *zeros = context.input(3), *bias = context.input(5);
    if (context.input(4) && context.input(4)->count() > 0) return not_implemented("MatMulNBits with g_idx");
    const int64_t blocks = (k_ + block_ - 1) / block_, bytes = blocks * block_ * bits_ / 8, zero_bytes = (blocks * bits_ + 7) / 8;
    PY_ORT_ENSURE(a.rank() >= 1 && a.dims.back() == k_, "MatMulNBits of K = ", k_, " got A of shape ", a.dims);
    PY_ORT_ENSURE(b.count() == n_ * bytes && scales.count() == n_ * blocks, "MatMulNBits of K = ", k_, " and N = ", n_, " got B of shape ", b.dims,
                  " and scales of shape ", scales.dims);
    const bool float_zeros = zeros && zeros->dtype == DType::float32;
    PY_ORT_ENSURE(!zeros || zeros->count() == (float_zeros ? n_ * blocks : n_ * zero_bytes), "MatMulNBits got zero points of shape ", zeros->dims,
                  " for scales of shape ", scales.dims);
    PY_ORT_ENSURE(!bias || bias->count() == n_, "MatMulNBits got a bias of shape ", bias->dims, " for N = ", n_);
    Dims dims = a.dims;
    dims.back() = n_;
    Tensor* y;
    PY_ORT_TRY(context.output(0, a.dtype, dims, y));
    const int64_t rows = k_ ? a.count() / k_ : 0;
    const auto zero_point = [&](int64_t column, int64_t block) {
      if (!zeros) return static_cast<float>(1 << (bits_ - 1));
      if (float_zeros) return zeros->data<float>()[column * blocks + block];
      const int64_t bit = block * bits_;
      return static_cast<float>(zeros->data<uint8_t>()[column * zero_bytes + bit / 8] >> (bit % 8) & ((1 << bits_) - 1));
    };
    Tensor unpacked, panel;
    const int64_t padded = blocks * block_;
    PY_ORT_TRY(Tensor::make(DType::float32, {8, padded}, unpacked));
    PY_ORT_TRY(Tensor::make(DType::float32, {k_, 8}, panel));
    float *values = unpacked.mutable_data<float>(), *out = y->mutable_data<float>();
    const auto unpack_column = [&](int64_t column, float* to) {
      const uint8_t* from = b.data<uint8_t>() + column * bytes;
      for (int64_t block = 0; block < blocks; ++block, from += block_ * bits_ / 8)
        unpack(from, scales.data<float>()[column * blocks + block], zero_point(column, block), to + block * block_);
    };
    if (rows < kFewRows) {
      for (int64_t column = 0; column < n_; ++column) {
        unpack_column(column, values);
        for (int64_t row = 0; row < rows; ++row)
          out[row * n_ + column] = dot(a.data<float>() + row * k_, values) + (bias ? bias->data<float>()[column] : 0.0f);
      }
      return {};
    }
    for (int64_t first = 0; first < n_; first += 8) {
      const int64_t columns = std::min<int64_t>(8, n_ - first);
      for (int64_t c = 0; c < columns; ++c) unpack_column(first + c, values + c * padded);
      pack_panels({values, k_, columns, 1, padded}, 1, panel.mutable_data<float>());
      ProductEnd end;
      end.c = out + first, end.c_stride = n_;
      end.bias = bias ? bias->data<float>() + first : nullptr;
      PY_ORT_TRY(multiply_panels(row_major(a.data<float>(), rows, k_), panel.data<float>(), columns, end));
    }
    return {};
  }

 private:
  // One block: (value - zero point) * scale. The lowest bits of a byte come first.
  void unpack(const uint8_t* from, float scale, float zero, float* to) const {
    const v128_t factor = simd::splat(scale), shift = simd::splat(-zero * scale);
    const auto put = [&](v128_t bytes, float* at) {  // 16 values
      const v128_t low = wasm_u16x8_extend_low_u8x16(bytes), high = wasm_u16x8_extend_high_u8x16(bytes);
      const v128_t words[] = {wasm_u32x4_extend_low_u16x8(low), wasm_u32x4_extend_high_u16x8(low), wasm_u32x4_extend_low_u16x8(high),
                              wasm_u32x4_extend_high_u16x8(high)};
      for (int i = 0; i < 4; ++i) simd::store(at + i * 4, simd::mul_add(wasm_f32x4_convert_u32x4(words[i]), factor, shift));
    };
    for (int64_t i = 0; i < block_; i += 16, to += 16) {
      if (bits_ == 8) {
        put(wasm_v128_load(from), to);
        from += 16;
      } else if (bits_ == 4) {
        const v128_t pairs = wasm_v128_load64_zero(from), mask = wasm_i8x16_splat(15);
        const v128_t low = wasm_v128_and(pairs, mask), high = wasm_u8x16_shr(pairs, 4);
        put(wasm_i8x16_shuffle(low, high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), to);
        from += 8;
      } else {
        for (int j = 0; j < 16; ++j) to[j] = (static_cast<float>(from[j / 4] >> (j % 4 * 2) & 3) - zero) * scale;
        from += 4;
      }
    }
  }

  float dot(const float* a, const float* b) const {
    v128_t sums[4] = {simd::splat(0), simd::splat(0), simd::splat(0), simd::splat(0)};
    int64_t k = 0;
    for (; k + 16 <= k_; k += 16)
      for (int i = 0; i < 4; ++i) sums[i] = simd::mul_add(simd::load(a + k + i * 4), simd::load(b + k + i * 4), sums[i]);
    float sum = simd::sum_lanes(simd::add(simd::add(sums[0], sums[1]), simd::add(sums[2], sums[3])));
    for (; k < k_; ++k) sum += a[k] * b[k];
    return sum;
  }

  int64_t k_ = 0, n_ = 0, bits_ = 4, block_ = 0;
};

PY_ORT_KERNEL(kMicrosoftDomain, "MatMulNBits",
              "float32,float16,bfloat16;uint8;float32,float16,bfloat16;uint8,float32,float16,bfloat16;int32;float32,float16,bfloat16",
              WithHalf<MatMulNBits>);

}  // namespace
}  // namespace py_ort
