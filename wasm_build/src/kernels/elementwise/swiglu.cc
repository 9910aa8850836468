// Gated activations: one half is multiplied by a gate made from the other.
#include "kernels/elementwise/binary.h"
#include "kernels/elementwise/unary.h"
#include "kernels/shared/axes.h"
#include "kernels/shared/dtypes.h"
#include "kernels/shared/strided.h"

namespace py_ort {
namespace {

// swish(gate) * value.
class SwiGLU {
 public:
  explicit SwiGLU(const KernelInfo& info) : params_(unary_params(*find_unary("Swish"), info.attributes)) {}
  Status operator()(KernelContext& context) const {
    const Tensor &gate = *context.input(0), &value = *context.input(1);
    PY_ORT_ENSURE(gate.dims == value.dims, "SwiGLU needs equal shapes, got ", gate.dims, " and ", value.dims);
    // Wide intermediates, so that float16 is rounded once.
    Tensor wide_gate, wide_value, swish, product, result;
    PY_ORT_TRY(widened(gate, wide_gate));
    PY_ORT_TRY(widened(value, wide_value));
    PY_ORT_TRY(Tensor::make(wide_gate.dtype, gate.dims, swish));
    apply_unary(*find_unary("Swish"), params_, wide_gate, swish);
    PY_ORT_TRY(combine("Mul", swish, wide_value, product));
    PY_ORT_TRY(cast(product, gate.dtype, result));
    context.output(0, std::move(result));
    return {};
  }

 private:
  UnaryParams params_;
};

// left * gelu(right) of the halves of x + bias along the last axis.
struct BiasSplitGelu {
  Status operator()(KernelContext& context) const {
    Tensor sum, left, right, result;
    PY_ORT_TRY(combine("Add", *context.input(0), *context.input(1), sum));
    PY_ORT_ENSURE(sum.rank() >= 1 && sum.dim(-1) % 2 == 0, "BiasSplitGelu cannot halve the last axis of shape ",
                  sum.dims);
    const int64_t half = sum.dim(-1) / 2, rows = count_between(sum.dims, 0, sum.rank() - 1);
    Dims dims = sum.dims;
    dims.back() = half;
    PY_ORT_TRY(Tensor::make(sum.dtype, dims, left));
    PY_ORT_TRY(Tensor::make(sum.dtype, dims, right));
    strided_copy(sum, {0, {2 * half, 1}}, left, {0, {half, 1}}, {rows, half});
    strided_copy(sum, {half, {2 * half, 1}}, right, {0, {half, 1}}, {rows, half});
    apply_unary(*find_unary("Gelu"), {}, right, right);
    PY_ORT_TRY(combine("Mul", left, right, result));
    context.output(0, std::move(result));
    return {};
  }
};

PY_ORT_KERNEL("", "SwiGLU", "=" PY_ORT_FLOATS, SwiGLU);
PY_ORT_KERNEL(kMicrosoftDomain, "BiasSplitGelu", "=" PY_ORT_FLOATS, BiasSplitGelu);

}  // namespace
}  // namespace py_ort
