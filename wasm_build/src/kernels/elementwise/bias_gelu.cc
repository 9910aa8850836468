// com.microsoft BiasGelu, FastGelu, BiasAdd, BiasSplitGelu, and SwiGLU: an activation with an addition or a product
// around it.
#include "kernels/shared/axes.h"
#include "kernels/elementwise/binary.h"
#include "kernels/shared/dtypes.h"
#include "kernels/shared/strided.h"
#include "kernels/elementwise/unary.h"

namespace py_ort {
namespace {

// a op b, in `a`'s dtype.
Status combine(const char* op_type, const Tensor& a, const Tensor& b, Tensor& out) {
  Broadcast broadcast;
  PY_ORT_TRY(Broadcast::make({&a.dims, &b.dims}, broadcast));
  PY_ORT_TRY(Tensor::make(a.dtype, broadcast.dims, out));
  apply_binary(*arithmetic_loops(op_type), broadcast, a, b, out);
  return {};
}

// `x` with element i of what is flat in memory raised by bias[i % length], whatever the axes are.
Status add_flat(const Tensor& x, const Tensor& bias, Tensor& out) {
  PY_ORT_ENSURE(bias.count() > 0 || x.count() == 0, "the bias is empty, and X has ", x.count(), " elements");
  Tensor periods = bias, sum;
  if (bias.count() > 0 && x.count() % bias.count() != 0) {
    PY_ORT_TRY(Tensor::make(x.dtype, {x.count()}, periods));
    for (int64_t at = 0; at < x.count(); at += bias.count()) {
      const int64_t length = std::min(bias.count(), x.count() - at);
      strided_copy(bias, {0, {1}}, periods, {at, {1}}, {length});
    }
  }
  const int64_t period = std::max<int64_t>(periods.count(), 1);
  PY_ORT_TRY(combine("Add", x.reshaped({x.count() / period, period}), periods.reshaped({periods.count()}), sum));
  out = sum.reshaped(x.dims);
  return {};
}

struct BiasGelu {
  Status operator()(KernelContext& context) const {
    Tensor sum, result;
    PY_ORT_TRY(combine("Add", *context.input(0), *context.input(1), sum));
    PY_ORT_TRY(Tensor::make(sum.dtype, sum.dims, result));
    apply_unary(*find_unary("Gelu"), {}, sum, result);
    context.output(0, std::move(result));
    return {};
  }
};

// The bias may be missing; onnxruntime reads it flat.
struct FastGelu {
  Status operator()(KernelContext& context) const {
    Tensor sum = *context.input(0), result;
    if (context.input(1)) PY_ORT_TRY(add_flat(*context.input(0), *context.input(1), sum));
    PY_ORT_TRY(Tensor::make(sum.dtype, sum.dims, result));
    apply_unary(*find_unary("GeluTanh"), {}, sum, result);
    context.output(0, std::move(result));
    return {};
  }
};

// x + bias + skip, with x [N, S, C].
struct BiasAdd {
  Status operator()(KernelContext& context) const {
    Tensor sum, result;
    PY_ORT_TRY(combine("Add", *context.input(0), *context.input(1), sum));
    PY_ORT_TRY(combine("Add", sum, *context.input(2), result));
    context.output(0, std::move(result));
    return {};
  }
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

// swish(gate) * value.
class SwiGLU {
 public:
  explicit SwiGLU(const KernelInfo& info) : params_(unary_params(*find_unary("Swish"), info.attributes)) {}
  Status operator()(KernelContext& context) const {
    const Tensor &gate = *context.input(0), &value = *context.input(1);
    PY_ORT_ENSURE(gate.dims == value.dims, "SwiGLU needs equal shapes, got ", gate.dims, " and ", value.dims);
    // Wide in between, so that float16 is rounded once.
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

PY_ORT_KERNEL(kMicrosoftDomain, "BiasGelu", PY_ORT_FLOATS, BiasGelu);
PY_ORT_KERNEL(kMicrosoftDomain, "FastGelu", PY_ORT_FLOATS, FastGelu);
PY_ORT_KERNEL(kMicrosoftDomain, "BiasAdd", PY_ORT_FLOATS, BiasAdd);
PY_ORT_KERNEL(kMicrosoftDomain, "BiasSplitGelu", PY_ORT_FLOATS, BiasSplitGelu);
PY_ORT_KERNEL("", "SwiGLU", PY_ORT_FLOATS, SwiGLU);

}  // namespace
}  // namespace py_ort
