// CausalConvWithState: convolves each channel separately, over the positions up to the current one; the state has the
// positions before the first.
#include <algorithm>
#include <cmath>

#include "kernels/shared/axes.h"
#include "kernels/shared/half_precision.h"

namespace py_ort {
namespace {

// Inputs: x, weights, bias, past state. With `channels_last`, x and states are [batch, positions, channels...]; with
// `state_window`, the states after the last positions are kept, the newest last.
class CausalConvWithState {
 public:
  explicit CausalConvWithState(const KernelInfo& info)
      : dilation_(info.attributes.integer("dilation", 1)), window_(info.attributes.integer("state_window", 0)),
        axes_(info.attributes.integer("ndim", 1)), last_(info.attributes.integer("channels_last", 0) != 0) {
    const std::string activation = info.attributes.text("activation", "none");
    silu_ = activation == "silu" || activation == "swish";
  }

  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), &weights = *context.input(1);
    const Tensor *bias = context.input_count() > 2 ? context.input(2) : nullptr,
                 *past = context.input_count() > 3 ? context.input(3) : nullptr;
    if (axes_ != 1) return not_implemented("CausalConvWithState with ", axes_, " spatial axes");
    PY_ORT_ENSURE(weights.rank() == 3 && weights.dim(1) == 1,
                  "CausalConvWithState needs weights [channels, 1, taps], got ", weights.dims);
    const int64_t channels = weights.dim(0), taps = weights.dim(2), states = (taps - 1) * dilation_;
    PY_ORT_ENSURE(x.rank() >= 3 &&
                      (last_ ? count_between(x.dims, 2, x.rank()) == channels : x.rank() == 3 && x.dim(1) == channels),
                  "CausalConvWithState of ", x.dims, " with weights ", weights.dims);
    const int64_t batch = x.dim(0), positions = last_ ? x.dim(1) : x.dim(2), slots = std::max<int64_t>(1, window_);
    Dims own = x.dims;
    own[last_ ? 1 : 2] = states;
    const int64_t size = element_count(own);
    Dims dims = own;
    if (window_ > 0) dims.insert(dims.begin(), window_);
    PY_ORT_ENSURE(!past || past->dims == dims, "CausalConvWithState has a past state of shape ", past->dims,
                  " that should be ", dims);
    Tensor *y = nullptr, *present = nullptr;
    PY_ORT_TRY(context.output(0, DType::float32, x.dims, y));
    PY_ORT_TRY(context.output(1, DType::float32, dims, present));
    const float* old = past ? past->data<float>() + (slots - 1) * size : nullptr;
    // Steps from position to position, for both x and states.
    const int64_t step = last_ ? channels : 1;
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t c = 0; c < channels; ++c) {
        const auto begin = [&](int64_t length) {
          return last_ ? b * length * channels + c : (b * channels + c) * length;
        };
        const float* in = x.data<float>() + begin(positions);
        const auto at = [&](int64_t position) -> float {
          if (position >= 0) return in[position * step];
          return old ? old[begin(states) + (position + states) * step] : 0;
        };
        const float *w = weights.data<float>() + c * taps, start = bias ? bias->data<float>()[c] : 0;
        float* out = y->mutable_data<float>() + begin(positions);
        for (int64_t t = 0; t < positions; ++t) {
          float sum = start;
          for (int64_t tap = 0; tap < taps; ++tap) sum += w[tap] * at(t - (taps - 1 - tap) * dilation_);
          out[t * step] = silu_ ? sum / (1 + std::exp(-sum)) : sum;
        }
        for (int64_t slot = 0; slot < slots; ++slot) {
          const int64_t after = positions + slot + 1 - slots;  // positions that the state has seen
          float* to = present->mutable_data<float>() + slot * size + begin(states);
          for (int64_t s = 0; s < states; ++s)
            to[s * step] = after > 0 || slot + 1 == slots ? at(after - states + s) : 0;
        }
      }
    return {};
  }

 private:
  int64_t dilation_, window_, axes_;
  bool last_, silu_ = false;
};

PY_ORT_KERNEL("", "CausalConvWithState", "float32,float16,bfloat16", WithHalf<CausalConvWithState>);

}  // namespace
}  // namespace py_ort
