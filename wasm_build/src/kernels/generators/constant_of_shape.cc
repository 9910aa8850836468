// ConstantOfShape, EyeLike, Range, OneHot: tensors made from little.
#include <algorithm>
#include <cmath>

#include "kernels/shared/axes.h"
#include "kernels/shared/dtypes.h"
#include "kernels/shared/elements.h"
#include "kernels/shared/lanes.h"

namespace py_ort {
namespace {

// One element of the given dtype.
Status make_scalar(double value, DType dtype, Tensor& out) {
  Tensor scalar;
  PY_ORT_TRY(Tensor::make(DType::float64, {}, scalar));
  *scalar.mutable_data<double>() = value;
  return cast(scalar, dtype, out);
}

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

class EyeLike {
 public:
  explicit EyeLike(const KernelInfo& info)
      : dtype_(static_cast<DType>(info.attributes.integer("dtype", 0))), k_(info.attributes.integer("k", 0)) {}
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    PY_ORT_ENSURE(in.rank() == 2, "EyeLike needs a matrix, got shape ", in.dims);
    const DType dtype = dtype_ == DType::undefined ? in.dtype : dtype_;
    Tensor one;
    PY_ORT_TRY(make_scalar(1, dtype, one));
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, dtype, in.dims, out));
    fill_zero(*out);
    for (int64_t row = std::max<int64_t>(0, -k_); row < in.dim(0) && row + k_ < in.dim(1); ++row)
      copy_elements(one, 0, *out, row * in.dim(1) + row + k_, 1);
    return {};
  }

 private:
  DType dtype_;
  int64_t k_;
};

struct Range {
  Status operator()(KernelContext& context) const {
    const DType dtype = context.input(0)->dtype;
    Tensor start, limit, delta;
    PY_ORT_TRY(widened(*context.input(0), start));
    PY_ORT_TRY(widened(*context.input(1), limit));
    PY_ORT_TRY(widened(*context.input(2), delta));
    PY_ORT_ENSURE(start.count() == 1 && limit.count() == 1 && delta.count() == 1, "Range needs scalars, got shapes ",
                  start.dims, ", ", limit.dims, " and ", delta.dims);
    Tensor wide, result;
    PY_ORT_TRY(visit_lane(lane_of(dtype), [&]<class T>() -> Status {
      const T from = *start.data<T>(), to = *limit.data<T>(), step = *delta.data<T>();
      PY_ORT_ENSURE(step != 0, "Range from ", from, " to ", to, ": the step is 0");
      int64_t count = 0;
      if constexpr (std::is_floating_point_v<T>)
        count = static_cast<int64_t>(std::ceil((static_cast<double>(to) - from) / step));
      else if (step > 0) count = to > from ? static_cast<int64_t>((to - from - 1) / step + 1) : 0;
      else count = from > to ? static_cast<int64_t>((from - to - 1) / (T{0} - step) + 1) : 0;
      PY_ORT_TRY(Tensor::make(start.dtype, {std::max<int64_t>(count, 0)}, wide));
      T* out = wide.mutable_data<T>();
      for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(from + static_cast<T>(i) * step);
      return {};
    }));
    PY_ORT_TRY(cast(wide, dtype, result));
    context.output(0, std::move(result));
    return {};
  }
};

class OneHot {
 public:
  explicit OneHot(const KernelInfo& info) : axis_(info.attributes.integer("axis", -1)) {}
  Status operator()(KernelContext& context) const {
    const Tensor &indices = *context.input(0), &values = *context.input(2);
    int64_t depth = 0, axis = 0;
    PY_ORT_TRY(read_integer(*context.input(1), "OneHot's depth", depth));
    PY_ORT_ENSURE(depth >= 0, "OneHot's depth is ", depth);
    PY_ORT_ENSURE(values.count() == 2, "OneHot's values must be [off, on], but their shape is ", values.dims);
    PY_ORT_TRY(normalize_axis(axis_, indices.rank() + 1, axis));
    std::vector<int64_t> at;
    PY_ORT_TRY(read_integers(indices, at));
    Dims dims = indices.dims;
    dims.insert(dims.begin() + axis, depth);
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, values.dtype, std::move(dims), out));
    fill_elements(*out, values, 0);
    const int64_t inner = count_between(indices.dims, axis, indices.rank());
    for (size_t i = 0; i < at.size(); ++i) {
      const int64_t hot = at[i] < 0 ? at[i] + depth : at[i];
      const auto outer = static_cast<int64_t>(i) / inner, rest = static_cast<int64_t>(i) % inner;
      if (hot >= 0 && hot < depth) copy_elements(values, 1, *out, (outer * depth + hot) * inner + rest, 1);
    }
    return {};
  }

 private:
  int64_t axis_;
};

PY_ORT_KERNEL("", "ConstantOfShape", "int64", ConstantOfShape);
PY_ORT_KERNEL("", "EyeLike", "*", EyeLike);
PY_ORT_KERNEL("", "Range", PY_ORT_FLOATS ",int16,int32,int64", Range);
PY_ORT_KERNEL("", "OneHot", PY_ORT_NUMBERS ";" PY_ORT_NUMBERS ";*", OneHot);

}  // namespace
}  // namespace py_ort
