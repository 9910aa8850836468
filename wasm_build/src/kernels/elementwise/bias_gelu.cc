// BiasGelu, FastGelu and BiasAdd of com.microsoft: an addition, then an activation.
#include "kernels/shared/axes.h"
#include "kernels/elementwise/binary.h"
#include "kernels/shared/dtypes.h"
#include "kernels/shared/strided.h"
#include "kernels/elementwise/unary.h"

namespace py_ort {
namespace {

// Adds bias[i % length] to element i of `x`, flat in memory, whatever the axes are.
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
    Tensor sum;
    PY_ORT_TRY(combine("Add", *context.input(0), *context.input(1), sum));
    apply_unary(*find_unary("Gelu"), {}, sum, sum);
    context.output(0, std::move(sum));
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

PY_ORT_KERNEL(kMicrosoftDomain, "BiasGelu", PY_ORT_FLOATS, BiasGelu);
PY_ORT_KERNEL(kMicrosoftDomain, "FastGelu", PY_ORT_FLOATS, FastGelu);
PY_ORT_KERNEL(kMicrosoftDomain, "BiasAdd", PY_ORT_FLOATS, BiasAdd);

}  // namespace
}  // namespace py_ort
