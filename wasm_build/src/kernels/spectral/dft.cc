// DFT (opset 20).
#include <algorithm>

#include "kernels/shared/axes.h"
#include "kernels/spectral/fft.h"
#include "kernels/shared/half_precision.h"

namespace py_ort {
namespace {

class DFT {
 public:
  explicit DFT(const KernelInfo& info)
      : inverse_(info.attributes.integer("inverse", 0) != 0), onesided_(info.attributes.integer("onesided", 0) != 0) {}

  // Inputs: x [..., n, ..., 1 or 2], the length, the axis.
  Status operator()(KernelContext& context) const {
    const Tensor& x = *context.input(0);
    PY_ORT_ENSURE(x.rank() >= 2 && (x.dims.back() == 1 || x.dims.back() == 2),
                  "DFT takes real or complex numbers in the last axis, not the shape ", x.dims);
    int64_t axis = -2;
    if (context.input(2)) PY_ORT_TRY(read_integer(*context.input(2), "DFT's axis", axis));
    PY_ORT_TRY(normalize_axis(axis, x.rank(), axis));
    PY_ORT_ENSURE(axis < x.rank() - 1, "DFT's axis cannot be the last one, which tells real from imaginary");
    const int64_t given = x.dims[static_cast<size_t>(axis)];
    const bool to_real = inverse_ && onesided_;  // from half of the spectrum of a real signal
    int64_t n = to_real ? 2 * (given - 1) : given;
    if (context.input(1)) PY_ORT_TRY(read_integer(*context.input(1), "DFT's length", n));
    PY_ORT_ENSURE(n > 0, "DFT's length cannot be ", n);
    const int64_t out = onesided_ && !inverse_ ? n / 2 + 1 : n, parts = x.dims.back(), out_parts = to_real ? 1 : 2;
    Dims dims = x.dims;
    dims[static_cast<size_t>(axis)] = out, dims.back() = out_parts;
    Tensor* y;
    PY_ORT_TRY(context.output(0, x.dtype, dims, y));
    const int64_t outer = count_between(x.dims, 0, axis), inner = count_between(x.dims, axis + 1, x.rank() - 1);
    const Fft fft(static_cast<size_t>(n));
    std::vector<Complex> line(static_cast<size_t>(n));
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t used = std::min(given, to_real ? n / 2 + 1 : n);
        std::fill(line.begin(), line.end(), Complex{});
        for (int64_t k = 0; k < used; ++k) {
          const int64_t at = ((o * given + k) * inner + i) * parts;
          const Complex value{number_at(x, at), parts == 2 ? number_at(x, at + 1) : 0};
          line[static_cast<size_t>(k)] = value;
          if (to_real && k > 0 && 2 * k != n) line[static_cast<size_t>(n - k)] = {value.re, -value.im};
        }
        if (to_real) {  // these must be real for a real result
          line[0].im = 0;
          if (n % 2 == 0) line[static_cast<size_t>(n / 2)].im = 0;
        }
        if (inverse_) fft.inverse(line);
        else fft.forward(line);
        for (int64_t k = 0; k < out; ++k) {
          const int64_t at = ((o * out + k) * inner + i) * out_parts;
          put_number(*y, at, line[static_cast<size_t>(k)].re);
          if (out_parts == 2) put_number(*y, at + 1, line[static_cast<size_t>(k)].im);
        }
      }
    }
    return {};
  }

 private:
  bool inverse_, onesided_;
};

PY_ORT_KERNEL("", "DFT", "float32,float16,bfloat16,float64;int32,int64", WithHalf<DFT>);

}  // namespace
}  // namespace py_ort
