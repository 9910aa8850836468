// ConstantOfShape.
#include "kernels/shared/axes.h"
#include "kernels/shared/elements.h"

namespace py_ort {
namespace {

class ConstantOfShape {
 public:
  explicit ConstantOfShape(const KernelInfo& info) : value_(info.attributes.tensor("value")) {}
  Status operator()(KernelContext& context) const {
    Dims dims;
    PY_ORT_TRY(read_integers(context.input(0), dims));
    const DType dtype = value_ ? value_->dtype : DType::float32;
    Tensor result;
    if (!value_) {
      PY_ORT_TRY(Tensor::make(dtype, std::move(dims), result));
      fill_zero(result);
    } else if (is_sub_byte(dtype)) {
      Tensor value, bytes;
      PY_ORT_TRY(spread_bytes(*value_, value));
      PY_ORT_TRY(Tensor::make(DType::uint8, std::move(dims), bytes));
      fill_elements(bytes, value, 0);
      PY_ORT_TRY(gather_bits(bytes, dtype, result));
    } else {
      PY_ORT_TRY(Tensor::make(dtype, std::move(dims), result));
      fill_elements(result, *value_, 0);
    }
    context.output(0, std::move(result));
    return {};
  }

 private:
  std::optional<Tensor> value_;
};

PY_ORT_KERNEL("", "ConstantOfShape", "int64", ConstantOfShape);

}  // namespace
}  // namespace py_ort
