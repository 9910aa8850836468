// STFT.
#include "kernels/shared/axes.h"
#include "kernels/shared/half_precision.h"
#include "kernels/spectral/fft.h"

namespace py_ort {
namespace {

class STFT {
 public:
  explicit STFT(const KernelInfo& info) : onesided_(info.attributes.integer("onesided", 1) != 0) {}

  // Inputs: signal [batch, length, 1 or 2], the step between frames, a window, the length of frames.
  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), *window = context.input(2);
    PY_ORT_ENSURE(x.rank() == 3 || x.rank() == 2, "STFT takes a signal [batch, length, 1 or 2], not the shape ",
                  x.dims);
    const int64_t length = x.dims[1], parts = x.rank() == 3 ? x.dims[2] : 1;
    int64_t step, n = window ? window->count() : length;
    PY_ORT_TRY(read_integer(*context.input(1), "STFT's frame_step", step));
    if (context.input(3)) PY_ORT_TRY(read_integer(*context.input(3), "STFT's frame_length", n));
    PY_ORT_ENSURE(step > 0 && n > 0 && n <= length && (!window || window->count() == n), "STFT cannot cut frames of ",
                  n, " with a step of ", step, " from a signal of shape ", x.dims);
    PY_ORT_ENSURE(!onesided_ || parts == 1, "STFT of a complex signal has no one-sided result");
    const int64_t frames = 1 + (length - n) / step, out = onesided_ ? n / 2 + 1 : n;
    Tensor* y;
    PY_ORT_TRY(context.output(0, x.dtype, {x.dims[0], frames, out, 2}, y));
    const Fft fft(static_cast<size_t>(n));
    std::vector<Complex> line(static_cast<size_t>(n));
    int64_t to = 0;
    for (int64_t b = 0; b < x.dims[0]; ++b) {
      for (int64_t frame = 0; frame < frames; ++frame) {
        for (int64_t k = 0; k < n; ++k) {
          const int64_t at = (b * length + frame * step + k) * parts;
          const double weight = window ? number_at(*window, k) : 1;
          line[static_cast<size_t>(k)] = {number_at(x, at) * weight, parts == 2 ? number_at(x, at + 1) * weight : 0};
        }
        fft.forward(line);
        for (int64_t k = 0; k < out; ++k) {
          put_number(*y, to++, line[static_cast<size_t>(k)].re);
          put_number(*y, to++, line[static_cast<size_t>(k)].im);
        }
      }
    }
    return {};
  }

 private:
  bool onesided_;
};

PY_ORT_KERNEL("", "STFT", "float32,float16,bfloat16,float64;int32,int64;float32,float16,bfloat16,float64;int32,int64",
              WithHalf<STFT>);

}  // namespace
}  // namespace py_ort
