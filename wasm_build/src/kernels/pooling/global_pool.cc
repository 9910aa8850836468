// GlobalAveragePool, GlobalMaxPool and GlobalLpPool: one number per image and channel.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/shared/half_precision.h"
#include "kernels/shared/simd_math.h"
#include "kernels/shared/spatial.h"

namespace py_ort {
namespace {

// A pool's start, step for an element, and end after `count` elements. Each also exists for four floats at once, except
// Lp.
struct Average {
  explicit Average(const Attributes&) {}
  template <class T> T start() const { return 0; }
  template <class T> T add(T sum, T x) const { return sum + x; }
  v128_t add(v128_t sum, v128_t x) const { return simd::add(sum, x); }
  float merge(v128_t lanes) const { return simd::sum_lanes(lanes); }
  template <class T> T end(T sum, int64_t count) const { return sum / static_cast<T>(count); }
};
struct Maximum {
  explicit Maximum(const Attributes&) {}
  template <class T> T start() const { return -std::numeric_limits<T>::infinity(); }
  template <class T> T add(T best, T x) const { return std::max(best, x); }
  v128_t add(v128_t best, v128_t x) const { return wasm_f32x4_pmax(best, x); }
  float merge(v128_t lanes) const { return simd::max_lanes(lanes); }
  template <class T> T end(T best, int64_t) const { return best; }
};
struct Lp {
  explicit Lp(const Attributes& attributes) : p(static_cast<double>(attributes.integer("p", 2))) {}
  template <class T> T start() const { return 0; }
  template <class T> T add(T sum, T x) const { return sum + std::pow(std::abs(x), static_cast<T>(p)); }
  template <class T> T end(T sum, int64_t) const { return std::pow(sum, static_cast<T>(1 / p)); }
  double p;
};
template <class Pool>
concept HasLanes = requires(Pool pool, v128_t x) { pool.merge(x); };

// For the pixels of one image and channel, contiguous in memory.
template <class T, class Pool>
T pool_row(const Pool& pool, const T* x, int64_t count) {
  int64_t i = 0;
  T result = pool.template start<T>();
  if constexpr (std::is_same_v<T, float> && HasLanes<Pool>) {
    v128_t lanes = simd::splat(result);
    for (; i + 4 <= count; i += 4) lanes = pool.add(lanes, simd::load(x + i));
    if (i > 0) result = pool.merge(lanes);
  }
  for (; i < count; ++i) result = pool.add(result, x[i]);
  return pool.end(result, count);
}

// For all channels of one image, pixel after pixel.
template <class T, class Pool>
void pool_pixels(const Pool& pool, const T* x, int64_t pixels, int64_t channels, T* y) {
  std::fill_n(y, channels, pool.template start<T>());
  for (int64_t pixel = 0; pixel < pixels; ++pixel, x += channels) {
    int64_t c = 0;
    if constexpr (std::is_same_v<T, float> && HasLanes<Pool>)
      for (; c + 4 <= channels; c += 4) simd::store(y + c, pool.add(simd::load(y + c), simd::load(x + c)));
    for (; c < channels; ++c) y[c] = pool.add(y[c], x[c]);
  }
  for (int64_t c = 0; c < channels; ++c) y[c] = pool.end(y[c], pixels);
}

template <class Pool, bool kChannelsLast>
class GlobalPool {
 public:
  explicit GlobalPool(const KernelInfo& info) : pool_(info.attributes) {}

  Status operator()(KernelContext& context) const {
    const Tensor& x = *context.input(0);
    Image image;
    PY_ORT_TRY(Image::of(x, kChannelsLast, image));
    Tensor* y;
    PY_ORT_TRY(context.output(
        0, x.dtype, Image::dims(kChannelsLast, image.batch, image.channels, Dims(image.spatial.size(), 1)), y));
    if (x.dtype == DType::float64) run<double>(image, x, *y);
    else run<float>(image, x, *y);
    return {};
  }

 private:
  template <class T>
  void run(const Image& image, const Tensor& x, Tensor& y) const {
    const int64_t pixels = image.pixels(), rows = kChannelsLast ? image.batch : image.batch * image.channels;
    const int64_t step = kChannelsLast ? pixels * image.channels : pixels;
    for (int64_t row = 0; row < rows; ++row) {
      if constexpr (kChannelsLast)
        pool_pixels(pool_, x.data<T>() + row * step, pixels, image.channels,
                    y.mutable_data<T>() + row * image.channels);
      else y.mutable_data<T>()[row] = pool_row(pool_, x.data<T>() + row * step, pixels);
    }
  }

  Pool pool_;
};

constexpr const char* kTypes = "float32,float16,bfloat16,float64";
PY_ORT_KERNEL("", "GlobalAveragePool", kTypes, WithHalf<GlobalPool<Average, false>>);
PY_ORT_KERNEL(kNhwcDomain, "GlobalAveragePool", kTypes, WithHalf<GlobalPool<Average, true>>);
PY_ORT_KERNEL("", "GlobalMaxPool", kTypes, WithHalf<GlobalPool<Maximum, false>>);
PY_ORT_KERNEL(kNhwcDomain, "GlobalMaxPool", kTypes, WithHalf<GlobalPool<Maximum, true>>);
PY_ORT_KERNEL("", "GlobalLpPool", kTypes, WithHalf<GlobalPool<Lp, false>>);
PY_ORT_KERNEL(kNhwcDomain, "GlobalLpPool", kTypes, WithHalf<GlobalPool<Lp, true>>);

}  // namespace
}  // namespace py_ort
