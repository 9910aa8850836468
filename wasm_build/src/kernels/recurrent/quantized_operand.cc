#include "kernels/recurrent/quantized_operand.h"

#include "kernels/shared/lanes.h"

namespace py_ort {

Status QuantizedOperand::make(const IntegerPanels& panels, DType dtype, const Tensor& scale, const Tensor* zero,
                              int64_t direction, QuantizedOperand& out) {
  const int64_t n = panels.n;
  // Of the numbers of all directions, those of this one.
  const auto read = [&](const Tensor* tensor, std::string_view what, auto&& use) -> Status {
    if (!tensor) return {};
    const int64_t each = tensor->rank() > 1 ? tensor->dim(1) : 1;
    PY_ORT_ENSURE(tensor->rank() > 0 && tensor->rank() < 3 && direction < tensor->dims[0] && (each == 1 || each == n),
                  what, " of shape ", tensor->dims, " for weights of ", n, " columns");
    Tensor wide;
    PY_ORT_TRY(cast(*tensor, DType::float32, wide));
    use([values = wide.data<float>() + direction * each, each](int64_t j) { return values[each == 1 ? 0 : j]; });
    return {};
  };
  out.panels_ = &panels, out.end_ = {};
  out.end_.form = I8End::floats;
  PY_ORT_TRY(read(&scale, "a scale", [&](const auto& at) {
    for (int64_t j = 0; j < n; ++j) out.scales_.push_back(at(j));
  }));
  if (!zero) out.end_.zeros(n, dtype, [](int64_t) { return 0; });
  return read(zero, "a zero point", [&](const auto& at) {
    out.end_.zeros(n, dtype, [&](int64_t j) { return static_cast<int32_t>(at(j)); });
  });
}

Status QuantizedOperand::multiply(const uint8_t* a, const DynamicRange& range, int64_t rows, const float* bias,
                                  float* c) const {
  I8Gemm g;
  IntegerEnd end = end_;
  end.float_bias = bias;
  end.scales(panels_->n, [&](int64_t j) { return range.scale * scales_[static_cast<size_t>(j)]; });
  end.apply(g);
  g.b_zeros = end.b_zeros();
  g.k = g.a_stride = panels_->k, g.c_stride = panels_->n, g.rows = static_cast<int32_t>(rows);
  g.a = a, g.a_zero = static_cast<int32_t>(range.zero), g.c = c;
  return multiply_integers(g, *panels_);
}

}  // namespace py_ort
