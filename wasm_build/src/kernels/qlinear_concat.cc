// com.microsoft's QLinearConcat: joins quantised tensors, each brought to the result's scale and zero point.
#include <array>

#include "axes.h"
#include "integer_product.h"

namespace py_ort {
namespace {

class QLinearConcat {
 public:
  explicit QLinearConcat(const KernelInfo& info) : axis_(info.attributes.integer("axis", 0)) {}

  // Inputs: y's scale and zero point, then tensor, scale and zero point of each part.
  Status operator()(KernelContext& context) const {
    PerAxis y_scale, y_zero;
    PY_ORT_TRY(PerAxis::read(context.input(0), 1, "y_scale", y_scale));
    PY_ORT_TRY(PerAxis::read(context.input(1), 1, "y_zero_point", y_zero));
    PY_ORT_ENSURE(context.input_count() >= 5 && (context.input_count() - 2) % 3 == 0, "QLinearConcat's inputs come in threes after the first two, not ", context.input_count(), " in all");
    const Tensor& first = *context.input(2);
    int64_t axis;
    PY_ORT_TRY(normalize_axis(axis_, first.rank(), axis));
    Dims dims = first.dims;
    dims[static_cast<size_t>(axis)] = 0;
    for (size_t i = 2; i < context.input_count(); i += 3) {
      Dims like = context.input(i)->dims;
      PY_ORT_ENSURE(like.size() == dims.size(), "QLinearConcat cannot join the shapes ", first.dims, " and ", like);
      dims[static_cast<size_t>(axis)] += like[static_cast<size_t>(axis)];
      like[static_cast<size_t>(axis)] = first.dims[static_cast<size_t>(axis)];
      PY_ORT_ENSURE(like == first.dims, "QLinearConcat cannot join the shapes ", first.dims, " and ", context.input(i)->dims);
    }
    Tensor* y;
    PY_ORT_TRY(context.output(0, context.input(1)->dtype, dims, y));
    const int64_t outer = count_between(dims, 0, axis), inner = count_between(dims, axis + 1, first.rank()), row = dims[static_cast<size_t>(axis)] * inner;
    int64_t begin = 0;
    for (size_t i = 2; i < context.input_count(); i += 3) {
      const Tensor& x = *context.input(i);
      std::array<uint8_t, 256> table;
      PY_ORT_TRY(make_table(x, context.input(i + 1), context.input(i + 2), y_scale[0], y_zero.integer(0), y->dtype, table));
      const int64_t part = x.dims[static_cast<size_t>(axis)] * inner;
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t k = 0; k < part; ++k) y->mutable_data<uint8_t>()[o * row + begin + k] = table[x.data<uint8_t>()[o * part + k]];
      begin += part;
    }
    return {};
  }

 private:
  // What each of the 256 bytes of x becomes.
  static Status make_table(const Tensor& x, const Tensor* scale, const Tensor* zero, float y_scale, int32_t y_zero, DType to, std::array<uint8_t, 256>& table) {
    PerAxis x_scale, x_zero;
    PY_ORT_TRY(PerAxis::read(scale, 1, "a part's scale", x_scale));
    PY_ORT_TRY(PerAxis::read(zero, 1, "a part's zero point", x_zero));
    Tensor made;
    PY_ORT_TRY(Tensor::make(to, {256}, made));
    for (int32_t i = 0; i < 256; ++i) {
      const int32_t value = x.dtype == DType::uint8 ? i : static_cast<int8_t>(i);
      store_quantized(made, i, static_cast<float>(value - x_zero.integer(0)) * x_scale[0] / y_scale, y_zero);
    }
    std::copy_n(made.data<uint8_t>(), 256, table.begin());
    return {};
  }

  int64_t axis_;
};

PY_ORT_KERNEL(kMicrosoftDomain, "QLinearConcat", "float32;int8,uint8;int8,uint8,float32", QLinearConcat);

}  // namespace
}  // namespace py_ort
