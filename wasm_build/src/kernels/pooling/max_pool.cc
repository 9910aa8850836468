// MaxPool, with the indices of the maxima if requested.
#include <wasm_simd128.h>

#include "kernels/shared/half_precision.h"
#include "kernels/pooling/pool.h"

namespace py_ort {
namespace {

// For each channel; without a tap, the smallest value of the type.
template <class T>
[[gnu::noinline]] void largest_bytes(std::span<const T* const> taps, int64_t channels, T* to) {
  constexpr T kLeast = std::numeric_limits<T>::lowest();
  int64_t c = 0;
  for (; c + 16 <= channels; c += 16) {
    v128_t best = wasm_i8x16_splat(static_cast<int8_t>(kLeast));
    for (const T* from : taps) {
      const v128_t x = wasm_v128_load(from + c);
      best = std::is_signed_v<T> ? wasm_i8x16_max(best, x) : wasm_u8x16_max(best, x);
    }
    wasm_v128_store(to + c, best);
  }
  for (; c < channels; ++c) {
    T best = kLeast;
    for (const T* from : taps) best = std::max(best, from[c]);
    to[c] = best;
  }
}

template <bool kChannelsLast>
class MaxPool {
 public:
  static constexpr size_t kNarrowedOutputs = 1;

  static Status make(const KernelInfo& info, MaxPool& out) {
    out.column_major_ = info.attributes.integer("storage_order", 0) != 0;
    return SpatialAttributes::read(info.attributes, out.spatial_);
  }

  Status operator()(KernelContext& context) const {
    return pool_image<kChannelsLast>(context, spatial_,
                                     [&](const SpatialPlan& plan, const Tensor& x, Tensor& y) -> Status {
      Tensor* indices = nullptr;
      if (context.wants(1))
        PY_ORT_TRY(context.output(1, DType::int64,
                                  Image::dims(kChannelsLast, plan.window.batch, plan.window.pixel_stride, plan.out),
                                  indices));
      if (y.count() == 0) return {};
      if (!indices && x.dtype == DType::float32) {
        F32Pool pool;
        pool.window = &plan.window;
        pool.channels = plan.window.pixel_stride;
        pool.x = x.data<float>(), pool.y = y.mutable_data<float>();
        if (!run_microkernel(microkernels().f32_pool, pool))
          return out_of_memory("no memory for the scratch space of MaxPool");
        return {};
      }
      switch (x.dtype) {
        case DType::float32: return run<float>(plan, x, y, indices);
        case DType::float64: return run<double>(plan, x, y, indices);
        case DType::int8: return run<int8_t>(plan, x, y, indices);
        case DType::uint8: return run<uint8_t>(plan, x, y, indices);
        default: return not_implemented("MaxPool of ", dtype_name(x.dtype));
      }
    });
  }

 private:
  template <class T>
  Status run(const SpatialPlan& plan, const Tensor& x, Tensor& y, Tensor* indices) const {
    const int64_t channels = plan.window.pixel_stride;
    std::vector<int64_t> where(static_cast<size_t>(channels));  // pixel of each channel's maximum
    const int64_t pixels_out = element_count(plan.out);
    for_windows(plan.window, x.data<T>(),
                [&](int32_t pixel, const PY_ORT_TARGET::OutputPixel& at, std::span<const T* const> taps) {
      T* best = y.mutable_data<T>() + pixel * channels;
      if constexpr (std::is_integral_v<T>)
        if (!indices) return largest_bytes(taps, channels, best);
      for (int64_t c = 0; c < channels; ++c) best[c] = std::numeric_limits<T>::lowest();
      for (size_t t = 0; t < taps.size(); ++t) {
        const T* from = taps[t];
        const int64_t source = (from - x.data<T>()) / channels;
        for (int64_t c = 0; c < channels; ++c) {
          if (t > 0 && !(from[c] > best[c])) continue;
          best[c] = from[c];
          where[static_cast<size_t>(c)] = source;
        }
      }
      if (!indices) return;
      int64_t* to = indices->mutable_data<int64_t>();
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t index = flat_index(plan.window, where[static_cast<size_t>(c)], at.batch, c, channels);
        if constexpr (kChannelsLast) to[pixel * channels + c] = index;
        else to[(at.batch * channels + c) * pixels_out + pixel % pixels_out] = index;
      }
    });
    return {};
  }

  // ONNX counts elements of the whole channels-first tensor; within an image it counts by rows or by columns.
  int64_t flat_index(const Window& w, int64_t pixel, int64_t batch, int64_t channel, int64_t channels) const {
    const int64_t size = int64_t{w.in[0]} * w.in[1] * w.in[2];
    int64_t within = pixel - batch * size;
    if (column_major_) {
      const int64_t i2 = within % w.in[2], i1 = within / w.in[2] % w.in[1], i0 = within / w.in[2] / w.in[1];
      within = i0 + w.in[0] * (i1 + w.in[1] * i2);
    }
    return (batch * channels + channel) * size + within;
  }

  SpatialAttributes spatial_;
  bool column_major_ = false;
};

constexpr const char* kTypes = "float32,float16,bfloat16,float64,int8,uint8";
PY_ORT_KERNEL("", "MaxPool", kTypes, WithHalf<MaxPool<false>>);
PY_ORT_KERNEL(kNhwcDomain, "MaxPool", kTypes, WithHalf<MaxPool<true>>);

}  // namespace
}  // namespace py_ort
