// AveragePool and LpPool.
#include <cmath>

#include "kernels/shared/half_precision.h"
#include "kernels/pooling/pool.h"

namespace py_ort {
namespace {

template <bool kChannelsLast>
class AveragePool {
 public:
  static Status make(const KernelInfo& info, AveragePool& out) {
    out.count_padding_ = info.attributes.integer("count_include_pad", 0) != 0;
    return SpatialAttributes::read(info.attributes, out.spatial_);
  }

  Status operator()(KernelContext& context) const {
    return pool_image<kChannelsLast>(context, spatial_,
                                     [&](const SpatialPlan& plan, const Tensor& x, Tensor& y) -> Status {
      if (y.count() == 0) return {};
      if (x.dtype == DType::float64) {
        run<double>(plan, x, y);
        return {};
      }
      F32Pool pool;
      pool.window = &plan.window;
      pool.channels = plan.window.pixel_stride;
      pool.kind = F32Pool::average;
      pool.x = x.data<float>(), pool.y = y.mutable_data<float>();
      pool.count_padding = count_padding_;
      for (int axis = 0; axis < 3; ++axis) pool.pad_end[axis] = plan.pad_end[axis];
      if (!run_microkernel(microkernels().f32_pool, pool))
        return out_of_memory("no memory for the scratch space of AveragePool");
      return {};
    });
  }

 private:
  template <class T>
  void run(const SpatialPlan& plan, const Tensor& x, Tensor& y) const {
    const int64_t channels = plan.window.pixel_stride;
    for_windows(plan.window, x.data<T>(),
                [&](int32_t pixel, const PY_ORT_TARGET::OutputPixel& at, std::span<const T* const> taps) {
      T* to = y.mutable_data<T>() + pixel * channels;
      const double divisor =
          count_padding_ ? PY_ORT_TARGET::padded_taps(plan.window, at, plan.pad_end) : static_cast<double>(taps.size());
      for (int64_t c = 0; c < channels; ++c) {
        T sum = 0;
        for (const T* from : taps) sum += from[c];
        to[c] = divisor > 0 ? sum / static_cast<T>(divisor) : T{0};
      }
    });
  }

  SpatialAttributes spatial_;
  bool count_padding_ = false;
};

template <bool kChannelsLast>
class LpPool {
 public:
  static Status make(const KernelInfo& info, LpPool& out) {
    out.p_ = info.attributes.integer("p", 2);
    return SpatialAttributes::read(info.attributes, out.spatial_);
  }

  Status operator()(KernelContext& context) const {
    return pool_image<kChannelsLast>(context, spatial_,
                                     [&](const SpatialPlan& plan, const Tensor& x, Tensor& y) -> Status {
      if (y.count() == 0) return {};
      if (x.dtype == DType::float64) run<double>(plan, x, y);
      else run<float>(plan, x, y);
      return {};
    });
  }

 private:
  template <class T>
  void run(const SpatialPlan& plan, const Tensor& x, Tensor& y) const {
    const int64_t channels = plan.window.pixel_stride;
    const T p = static_cast<T>(p_);
    for_windows(plan.window, x.data<T>(),
                [&](int32_t pixel, const PY_ORT_TARGET::OutputPixel&, std::span<const T* const> taps) {
      T* to = y.mutable_data<T>() + pixel * channels;
      for (int64_t c = 0; c < channels; ++c) {
        T sum = 0;
        for (const T* from : taps)
          sum += p_ == 1 ? std::abs(from[c]) : p_ == 2 ? from[c] * from[c] : std::pow(std::abs(from[c]), p);
        to[c] = p_ == 1 ? sum : p_ == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p);
      }
    });
  }

  SpatialAttributes spatial_;
  int64_t p_ = 2;
};

constexpr const char* kTypes = "float32,float16,bfloat16,float64";
PY_ORT_KERNEL("", "AveragePool", kTypes, WithHalf<AveragePool<false>>);
PY_ORT_KERNEL(kNhwcDomain, "AveragePool", kTypes, WithHalf<AveragePool<true>>);
PY_ORT_KERNEL("", "LpPool", kTypes, WithHalf<LpPool<false>>);
PY_ORT_KERNEL(kNhwcDomain, "LpPool", kTypes, WithHalf<LpPool<true>>);

}  // namespace
}  // namespace py_ort
