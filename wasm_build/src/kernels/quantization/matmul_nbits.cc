// com.microsoft's MatMulNBits: a matrix product with weights of 2, 4 or 8 bits in blocks of one scale and zero point
// each.
#include "kernels/quantization/block_product.h"
#include "kernels/shared/half_precision.h"

namespace py_ort {
namespace {

class MatMulNBits {
 public:
  static Status make(const KernelInfo& info, MatMulNBits& out) {
    const Attributes& a = info.attributes;
    out.k_ = a.integer("K", 0), out.n_ = a.integer("N", 0);
    out.bits_ = a.integer("bits", 4), out.block_ = a.integer("block_size", 0);
    if (out.bits_ != 2 && out.bits_ != 4 && out.bits_ != 8)
      return not_implemented("MatMulNBits with ", out.bits_, " bits (2, 4 and 8 are)");
    if (out.block_ < 16 || (out.block_ & (out.block_ - 1)))
      return invalid_graph("MatMulNBits's block_size must be a power of two and 16 or more, not ", out.block_);
    // Natively rows are rounded if there are kernels for it, which are fewer for 2 bits.
    const bool native = out.bits_ == 2 ? out.block_ >= 32 && out.block_ <= 128 : out.block_ <= 256;
    out.rounds_ = a.integer("accuracy_level", 0) == 4 && native;
    return {};
  }

  // Inputs: A, B [N, blocks, bytes of a block], scales [N, blocks], zero points (packed like B, or floats), group
  // indices, a bias.
  Status operator()(KernelContext& context) const {
    const Tensor &a = *context.input(0), &b = *context.input(1), &scales = *context.input(2), *zeros = context.input(3),
                 *bias = context.input(5);
    if (context.input(4) && context.input(4)->count() > 0) return not_implemented("MatMulNBits with g_idx");
    const int64_t blocks = (k_ + block_ - 1) / block_, bytes = blocks * block_ * bits_ / 8,
                  zero_bytes = (blocks * bits_ + 7) / 8;
    PY_ORT_ENSURE(a.rank() >= 1 && a.dims.back() == k_, "MatMulNBits of K = ", k_, " got A of shape ", a.dims);
    PY_ORT_ENSURE(b.count() == n_ * bytes && scales.count() == n_ * blocks, "MatMulNBits of K = ", k_, " and N = ", n_,
                  " got B of shape ", b.dims, " and scales of shape ", scales.dims);
    const bool float_zeros = zeros && zeros->dtype == DType::float32;
    PY_ORT_ENSURE(!zeros || zeros->count() == (float_zeros ? n_ * blocks : n_ * zero_bytes),
                  "MatMulNBits got zero points of shape ", zeros->dims, " for scales of shape ", scales.dims);
    PY_ORT_ENSURE(!bias || bias->count() == n_, "MatMulNBits got a bias of shape ", bias->dims, " for N = ", n_);
    Dims dims = a.dims;
    dims.back() = n_;
    Tensor* y;
    PY_ORT_TRY(context.output(0, a.dtype, dims, y));
    BlockProduct product;
    product.rows = static_cast<int32_t>(k_ ? a.count() / k_ : 0);
    product.n = static_cast<int32_t>(n_), product.k = static_cast<int32_t>(k_);
    product.bits = static_cast<int32_t>(bits_), product.block = static_cast<int32_t>(block_);
    product.integers = rounds_ && !float_zeros;
    product.a = a.data<float>(), product.b = b.data<uint8_t>(), product.scales = scales.data<float>();
    if (float_zeros) product.float_zeros = zeros->data<float>();
    else if (zeros) product.zeros = zeros->data<uint8_t>();
    product.bias = bias ? bias->data<float>() : nullptr;
    product.c = y->mutable_data<float>();
    return multiply_blocks(product);
  }

 private:
  int64_t k_ = 0, n_ = 0, bits_ = 4, block_ = 0;
  bool rounds_ = false;  // A to 8 bits by block
};

PY_ORT_KERNEL(kMicrosoftDomain, "MatMulNBits",
              "float32,float16,bfloat16;uint8;float32,float16,bfloat16;uint8,float32,float16,bfloat16;int32;float32,"
              "float16,bfloat16",
              WithHalf<MatMulNBits>);

}  // namespace
}  // namespace py_ort
