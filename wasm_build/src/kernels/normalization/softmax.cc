// Softmax, LogSoftmax and Hardmax along one axis (opset 13).
#include <cmath>

#include "kernels/shared/axes.h"
#include "kernels/shared/half_precision.h"
#include "py_ort/microkernels.h"

namespace py_ort {
namespace {

enum class Kind : uint8_t { softmax, log_softmax, hardmax };

struct Shape { int64_t outer, n, inner; };

// Calls body(first element) for each line along the axis.
template <class Body>
void for_lines(const Shape& s, Body body) {
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t i = 0; i < s.inner; ++i) body(o * s.n * s.inner + i);
}

template <class T>
void hardmax(const Shape& s, const T* x, T* y) {
  for_lines(s, [&](int64_t first) {
    int64_t best = 0;
    for (int64_t k = 0; k < s.n; ++k) {
      if (x[first + k * s.inner] > x[first + best * s.inner]) best = k;
      y[first + k * s.inner] = 0;
    }
    y[first + best * s.inner] = 1;
  });
}

void softmax(const Shape& s, bool log_of_it, const double* x, double* y) {
  for_lines(s, [&](int64_t first) {
    double max = -INFINITY, sum = 0;
    for (int64_t k = 0; k < s.n; ++k) max = std::max(max, x[first + k * s.inner]);
    for (int64_t k = 0; k < s.n; ++k) sum += std::exp(x[first + k * s.inner] - max);
    for (int64_t k = 0; k < s.n; ++k) {
      const double shifted = x[first + k * s.inner] - max;
      y[first + k * s.inner] = log_of_it ? shifted - std::log(sum) : std::exp(shifted) / sum;
    }
  });
}

template <Kind kKind>
class Softmax {
 public:
  explicit Softmax(const KernelInfo& info) : axis_(info.attributes.integer("axis", -1)) {}

  Status operator()(KernelContext& context) const {
    const Tensor& x = *context.input(0);
    Tensor* y;
    if constexpr (kKind == Kind::hardmax) PY_ORT_TRY(context.output(0, x.dtype, x.dims, y));
    else PY_ORT_TRY(context.output(0, x.dtype, x.dims, y, {0}));
    Shape s{1, 1, 1};
    if (x.rank() > 0) {
      int64_t axis;
      PY_ORT_TRY(normalize_axis(axis_, x.rank(), axis));
      s = {count_between(x.dims, 0, axis), x.dims[static_cast<size_t>(axis)],
           count_between(x.dims, axis + 1, x.rank())};
    }
    if (x.count() == 0) return {};
    const bool wide = x.dtype == DType::float64;
    if constexpr (kKind == Kind::hardmax) {
      if (wide) hardmax(s, x.data<double>(), y->mutable_data<double>());
      else hardmax(s, x.data<float>(), y->mutable_data<float>());
    } else if (wide) {
      softmax(s, kKind == Kind::log_softmax, x.data<double>(), y->mutable_data<double>());
    } else {
      F32Softmax f;
      f.outer = static_cast<int32_t>(s.outer), f.n = static_cast<int32_t>(s.n), f.inner = static_cast<int32_t>(s.inner);
      f.log = kKind == Kind::log_softmax;
      f.x = x.data<float>(), f.y = y->mutable_data<float>();
      if (!run_microkernel(microkernels().f32_softmax, f))
        return out_of_memory("no memory for the scratch space of a softmax");
    }
    return {};
  }

 private:
  int64_t axis_;
};

constexpr const char* kTypes = "float32,float16,bfloat16,float64";
PY_ORT_KERNEL("", "Softmax", kTypes, WithHalf<Softmax<Kind::softmax>>);
PY_ORT_KERNEL("", "LogSoftmax", kTypes, WithHalf<Softmax<Kind::log_softmax>>);
PY_ORT_KERNEL("", "Hardmax", kTypes, WithHalf<Softmax<Kind::hardmax>>);

}  // namespace
}  // namespace py_ort
