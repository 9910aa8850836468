// com.microsoft QLinearSigmoid, QLinearLeakyRelu, QLinearWhere: an operator on floats between dequantizing its inputs
// and quantizing its output.
// ByteTable: a table that passes made from several such operators on one tensor.
#include <cmath>

#include "kernels/shared/dtypes.h"
#include "kernels/shared/lanes.h"
#include "kernels/quantization/quantization.h"
#include "py_ort/gen/dialect.h"
#include "py_ort/integer_products.h"

namespace py_ort {
namespace {

struct Quantization {
  const Tensor* scale = nullptr;
  const Tensor* zero_point = nullptr;
};

Status read_scalar(const Tensor* given, float otherwise, float& out) {
  out = otherwise;
  if (!given) return {};
  PY_ORT_ENSURE(given->count() == 1, "only one scale and one zero point per tensor are supported here, got shape ",
                given->dims);
  Tensor wide;
  PY_ORT_TRY(cast(*given, DType::float32, wide));
  out = *wide.data<float>();
  return {};
}

Status dequantize(const Tensor& x, Quantization q, Tensor& out) {
  float scale = 1, zero = 0;
  PY_ORT_TRY(read_scalar(q.scale, 1, scale));
  PY_ORT_TRY(read_scalar(q.zero_point, 0, zero));
  PY_ORT_TRY(cast(x, DType::float32, out));
  float* y = out.mutable_data<float>();
  for (int64_t i = 0, n = out.count(); i < n; ++i) y[i] = (y[i] - zero) * scale;
  return {};
}

// `x` is overwritten.
Status quantize(Tensor& x, Quantization q, DType dtype, Tensor& out) {
  IntegerRange range{};
  float scale = 1, zero = 0;
  PY_ORT_ENSURE(quantized_range(dtype, range), "no quantized integers: ", dtype_name(dtype));
  PY_ORT_TRY(read_scalar(q.scale, 1, scale));
  PY_ORT_TRY(read_scalar(q.zero_point, 0, zero));
  float* y = x.mutable_data<float>();
  for (int64_t i = 0, n = x.count(); i < n; ++i) {
    const float rounded = std::nearbyint(y[i] / scale) + zero;
    y[i] = rounded < range.low ? range.low : rounded > range.high ? range.high : rounded;
  }
  return cast(x, dtype, out);
}

// The places of each operator's inputs: indices of data inputs, each followed by its scale and zero point; and those of
// the output.
struct Form {
  std::string_view op_type, float_op;
  std::vector<size_t> data, plain;  // plain: passed unchanged
  size_t output_scale;
};
const Form* find_form(std::string_view op_type) {
  static const Form forms[] = {
      {"QLinearSigmoid", "Sigmoid", {0}, {}, 3},
      {"QLinearLeakyRelu", "LeakyRelu", {0}, {}, 3},
      {"QLinearWhere", "Where", {1, 4}, {0}, 7},
  };
  for (const Form& form : forms)
    if (form.op_type == op_type) return &form;
  return nullptr;
}

class QLinear {
 public:
  static Status make(const KernelInfo& info, QLinear& out) {
    out.form_ = *find_form(info.op_type);
    KernelInfo inner = info;
    inner.domain = "";
    inner.op_type = out.form_.float_op;
    const KernelEntry* entry = find_kernel("", inner.op_type);
    return entry ? entry->make(inner, out.kernel_)
                 : not_implemented(info.op_type, " needs ", inner.op_type, ", which is not in this build");
  }
  Status operator()(KernelContext& context) const {
    const Tensor& x = *context.input(form_.data[0]);
    const Tensor* zero_point = context.input(form_.output_scale + 1);
    const DType to = zero_point ? zero_point->dtype : x.dtype;
    std::vector<Value> values(form_.data.size());
    std::vector<const Value*> inputs;
    for (const size_t i : form_.plain) inputs.push_back(context.input_value(i));
    for (size_t k = 0; k < values.size(); ++k) {
      const size_t i = form_.data[k];
      Tensor x;
      PY_ORT_TRY(dequantize(*context.input(i), {context.input(i + 1), context.input(i + 2)}, x));
      values[k] = Value::of(std::move(x));
      inputs.push_back(&values[k]);
    }
    Value result;
    Value* output = &result;
    KernelContext inner(inputs, {&output, 1});
    PY_ORT_TRY(kernel_->run(inner));
    Tensor quantized;
    PY_ORT_TRY(quantize(result.tensor, {context.input(form_.output_scale), zero_point}, to, quantized));
    context.output(0, std::move(quantized));
    return {};
  }

 private:
  Form form_;
  std::unique_ptr<Kernel> kernel_;
};

struct ByteTable {
  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), &table = *context.input(1);
    Tensor* y = nullptr;
    PY_ORT_TRY(context.output(0, table.dtype, x.dims, y, {0}));
    I8Map m;
    m.a = x.data<uint8_t>(), m.b = table.data<uint8_t>(), m.y = y->mutable_data<uint8_t>();
    m.n = x.count();
    run_microkernel(microkernels().i8_map, m);
    return {};
  }
};

PY_ORT_KERNEL(dialect::kInternalDomain, dialect::kByteTable, "int8,uint8", ByteTable);
PY_ORT_KERNEL(kMicrosoftDomain, "QLinearSigmoid", "*", QLinear);
PY_ORT_KERNEL(kMicrosoftDomain, "QLinearLeakyRelu", "*", QLinear);
PY_ORT_KERNEL(kMicrosoftDomain, "QLinearWhere", "*", QLinear);

}  // namespace
}  // namespace py_ort
