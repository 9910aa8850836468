// ArgMax, ArgMin, CumSum, CumProd: a walk along one axis.
#include <functional>

#include "kernels/shared/axes.h"
#include "kernels/shared/dtypes.h"
#include "kernels/shared/lanes.h"

namespace py_ort {
namespace {

// A tensor as [outer, size, inner] around an axis.
struct Around { int64_t outer, size, inner; };
Around around(const Dims& dims, int64_t axis) {
  const auto rank = static_cast<int64_t>(dims.size());
  return {count_between(dims, 0, axis), dims[static_cast<size_t>(axis)], count_between(dims, axis + 1, rank)};
}

template <class T, class Better>
void arg_best(const T* x, int64_t* y, Around shape, bool last, Better better) {
  for (int64_t o = 0; o < shape.outer; ++o, x += shape.size * shape.inner)
    for (int64_t i = 0; i < shape.inner; ++i) {
      int64_t best = 0;
      T value = x[i];
      for (int64_t k = 1; k < shape.size; ++k) {
        const T other = x[k * shape.inner + i];
        // NaN ranks above any number, as in numpy.
        if (better(other, value) || (other != other && value == value) || (last && other == value)) {
          best = k;
          value = other;
        }
      }
      *y++ = best;
    }
}

class ArgBest {
 public:
  explicit ArgBest(const KernelInfo& info)
      : max_(info.op_type == "ArgMax"), keep_(info.attributes.integer("keepdims", 1) != 0),
        last_(info.attributes.integer("select_last_index", 0) != 0), axis_(info.attributes.integer("axis", 0)) {}
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    int64_t axis = 0;
    PY_ORT_TRY(normalize_axis(axis_, in.rank(), axis));
    Dims dims = in.dims;
    if (keep_) dims[axis] = 1;
    else dims.erase(dims.begin() + axis);
    PY_ORT_ENSURE(in.dim(axis) > 0 || element_count(dims) == 0, "no best element along the empty axis ", axis,
                  " of shape ", in.dims);
    Tensor wide;
    PY_ORT_TRY(widened(in, wide));
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, DType::int64, std::move(dims), out));
    if (out->count() == 0) return {};
    visit_lane(lane_of(in.dtype), [&]<class T>() {
      if (max_) arg_best(wide.data<T>(), out->mutable_data<int64_t>(), around(in.dims, axis), last_, std::greater<T>());
      else arg_best(wide.data<T>(), out->mutable_data<int64_t>(), around(in.dims, axis), last_, std::less<T>());
    });
    return {};
  }

 private:
  bool max_, keep_, last_;
  int64_t axis_;
};

class Cumulative {
 public:
  explicit Cumulative(const KernelInfo& info)
      : product_(info.op_type == "CumProd"), exclusive_(info.attributes.integer("exclusive", 0) != 0),
        reverse_(info.attributes.integer("reverse", 0) != 0) {}
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    int64_t axis = 0;
    PY_ORT_TRY(read_integer(*context.input(1), "the axis", axis));
    PY_ORT_TRY(normalize_axis(axis, in.rank(), axis));
    Tensor wide, sums, result;
    PY_ORT_TRY(widened(in, wide));
    PY_ORT_TRY(Tensor::make(wide.dtype, in.dims, sums));
    visit_lane(lane_of(in.dtype),
               [&]<class T>() { accumulate(wide.data<T>(), sums.mutable_data<T>(), around(in.dims, axis)); });
    PY_ORT_TRY(cast(sums, in.dtype, result));
    context.output(0, std::move(result));
    return {};
  }

 private:
  template <class T>
  void accumulate(const T* x, T* y, Around shape) const {
    const int64_t step = reverse_ ? -shape.inner : shape.inner;
    for (int64_t o = 0; o < shape.outer; ++o, x += shape.size * shape.inner, y += shape.size * shape.inner) {
      int64_t at = reverse_ ? (shape.size - 1) * shape.inner : 0;
      for (int64_t k = 0; k < shape.size; ++k, at += step)
        for (int64_t i = at; i < at + shape.inner; ++i) {
          // The previous result, combined with the previous element if that result excluded it. The first sum is its
          // element: adding it to zero would lose the sign of -0.
          if (k == 0) y[i] = exclusive_ ? static_cast<T>(product_) : x[i];
          else y[i] = combine(y[i - step], x[exclusive_ ? i - step : i]);
        }
    }
  }
  template <class T>
  T combine(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(product_ ? static_cast<U>(a) * static_cast<U>(b) : static_cast<U>(a) + static_cast<U>(b));
    } else {
      return product_ ? a * b : a + b;
    }
  }
  bool product_, exclusive_, reverse_;
};

PY_ORT_KERNEL("", "ArgMax", PY_ORT_NUMBERS, ArgBest);
PY_ORT_KERNEL("", "ArgMin", PY_ORT_NUMBERS, ArgBest);
PY_ORT_KERNEL("", "CumSum", PY_ORT_FLOATS ",int32,int64,uint32,uint64;int32,int64", Cumulative);
PY_ORT_KERNEL("", "CumProd", PY_ORT_FLOATS ",int32,int64,uint32,uint64;int32,int64", Cumulative);

}  // namespace
}  // namespace py_ort
