// com.microsoft's QLinearConcat: bytes with the result's scale and zero point are copied, others are looked up.
#include <array>
#include <cstring>

#include "kernels/quantization/integer_product.h"
#include "kernels/shared/axes.h"

namespace py_ort {
namespace {

// Inputs: the result's scale and zero point, then each tensor with its own.
class QLinearConcat {
 public:
  explicit QLinearConcat(const KernelInfo& info) : axis_(info.attributes.integer("axis", 0)) {}

  Status operator()(KernelContext& context) const {
    PY_ORT_ENSURE(context.input_count() >= 5, "QLinearConcat of nothing");
    const Tensor& first = *context.input(2);
    int64_t axis = 0;
    PY_ORT_TRY(normalize_axis(axis_, first.rank(), axis));
    PerAxis y_scale, y_zero;
    PY_ORT_TRY(PerAxis::read(context.input(0), 1, "y_scale", y_scale));
    PY_ORT_TRY(PerAxis::read(context.input(1), 1, "y_zero_point", y_zero));
    const DType dtype = context.input(1) ? context.input(1)->dtype : first.dtype;
    Dims dims = first.dims;
    dims[axis] = 0;
    std::vector<Source> sources;
    for (size_t i = 2; i < context.input_count(); i += 3) {
      const Tensor& x = *context.input(i);
      PY_ORT_ENSURE(x.rank() == first.rank(), "QLinearConcat of shapes ", first.dims, " and ", x.dims);
      for (int64_t d = 0; d < x.rank(); ++d)
        PY_ORT_ENSURE(d == axis || x.dims[d] == first.dims[d], "QLinearConcat of shapes ", first.dims, " and ", x.dims,
                      " along axis ", axis);
      dims[axis] += x.dims[axis];
      PerAxis scale, zero;
      PY_ORT_TRY(PerAxis::read(context.input(i + 1), 1, "a scale", scale));
      PY_ORT_TRY(PerAxis::read(context.input(i + 2), 1, "a zero point", zero));
      Source source{x.data<uint8_t>(), static_cast<size_t>(count_between(x.dims, axis, x.rank())), {}, false};
      source.same = x.dtype == dtype && scale[0] == y_scale[0] && zero[0] == y_zero[0];
      if (!source.same)
        PY_ORT_TRY(fill(source, x.dtype, scale[0], zero.integer(0), dtype, y_scale[0], y_zero.integer(0)));
      sources.push_back(source);
    }
    Tensor* y;
    PY_ORT_TRY(context.output(0, dtype, dims, y));
    uint8_t* to = y->mutable_data<uint8_t>();
    for (int64_t outer = y->count() == 0 ? 0 : count_between(dims, 0, axis); outer > 0; --outer)
      for (Source& source : sources) {
        if (source.same) std::memcpy(to, source.at, source.length);
        else
          for (size_t i = 0; i < source.length; ++i) to[i] = source.table[source.at[i]];
        source.at += source.length, to += source.length;
      }
    return {};
  }

 private:
  struct Source {
    const uint8_t* at;
    size_t length;  // of a run
    std::array<uint8_t, 256> table;
    bool same;
  };

  static Status fill(Source& source, DType from, float scale, int32_t zero, DType to, float y_scale, int32_t y_zero) {
    Tensor results;
    PY_ORT_TRY(Tensor::make(to, {256}, results));
    for (int32_t byte = 0; byte < 256; ++byte) {
      const int32_t value = from == DType::uint8 ? byte : static_cast<int8_t>(byte);
      store_quantized(results, byte, static_cast<float>(value - zero) * scale / y_scale, y_zero);
    }
    std::memcpy(source.table.data(), results.data<uint8_t>(), 256);
    return {};
  }

  int64_t axis_;
};

PY_ORT_KERNEL(kMicrosoftDomain, "QLinearConcat", "float32;int8,uint8;int8,uint8,float32", QLinearConcat);

}  // namespace
}  // namespace py_ort
