#include "kernels/recurrent/quantized_operand.h"

#include "kernels/shared/lanes.h"

namespace py_ort {

void QuantizedOperand::pack(const Tensor& weights, const GateColumns& columns, IntegerPanels& out) {
  const int64_t k = weights.dims[1], row = columns.gates * columns.hidden;
  out.clear(k, columns.count());
  columns.for_each_gate([&](int64_t at, int64_t gate) {
    const int64_t first = gate / columns.gates * k * row + gate % columns.gates * columns.hidden;
    out.put(at, weights, first, columns.hidden, row, 1);
  });
  out.split();
}

Status QuantizedOperand::make(const IntegerPanels& panels, const GateColumns& columns, DType dtype, const Tensor& scale,
                              const Tensor* zero, QuantizedOperand& out) {
  const int64_t n = columns.gates * columns.hidden;
  // The numbers of all columns; zeros without a tensor.
  const auto read = [&](const Tensor& tensor, std::string_view what, std::vector<float>& values) -> Status {
    const int64_t each = tensor.rank() > 1 ? tensor.dim(1) : 1;
    PY_ORT_ENSURE(
        tensor.rank() > 0 && tensor.rank() < 3 && columns.directions <= tensor.dims[0] && (each == 1 || each == n),
        what, " of shape ", tensor.dims, " for weights of ", n, " columns");
    Tensor wide;
    PY_ORT_TRY(cast(tensor, DType::float32, wide));
    columns.for_each_gate([&](int64_t at, int64_t gate) {
      const float* from = wide.data<float>() + gate / columns.gates * each;
      for (int64_t j = 0; j < columns.hidden; ++j)
        values[static_cast<size_t>(at + j)] = from[each == 1 ? 0 : gate % columns.gates * columns.hidden + j];
    });
    return {};
  };
  out.panels_ = &panels, out.end_ = {};
  out.end_.form = I8End::floats;
  out.scales_.assign(static_cast<size_t>(columns.count()), 0.0f);
  PY_ORT_TRY(read(scale, "a scale", out.scales_));
  std::vector<float> zeros(out.scales_.size());
  if (zero) PY_ORT_TRY(read(*zero, "a zero point", zeros));
  out.end_.zeros(columns.count(), dtype,
                 [&](int64_t j) { return static_cast<int32_t>(zeros[static_cast<size_t>(j)]); });
  return {};
}

Status QuantizedOperand::multiply(const uint8_t* a, const DynamicRange& range, int64_t rows, const float* bias,
                                  float* c) const {
  IntegerEnd end = end_;
  end.float_bias = bias;
  end.scales(panels_->columns(), [&](int64_t j) { return range.scale * scales_[static_cast<size_t>(j)]; });
  I8Gemm g = from(0);
  end.apply(g);
  g.c_stride = panels_->columns(), g.rows = static_cast<int32_t>(rows);
  g.a = a, g.a_zero = static_cast<int32_t>(range.zero), g.c = c;
  return multiply_integers(g, *panels_);
}

I8Gemm QuantizedOperand::from(int64_t first) const {
  I8Gemm g;
  end_.apply(g, first);
  g.k = g.a_stride = panels_->rows();
  g.b_zeros = end_.b_zeros();
  panels_->apply(g);
  g.skip_columns(static_cast<int32_t>(first));
  return g;
}

}  // namespace py_ort
