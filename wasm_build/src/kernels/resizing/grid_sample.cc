// GridSample (opset 20): images of one to three axes, sampled at a grid's places from -1 to 1.
#include <algorithm>
#include <cmath>

#include "kernels/shared/half_precision.h"
#include "kernels/shared/spatial.h"

namespace py_ort {
namespace {

enum class Mode : uint8_t { nearest, linear, cubic };
enum class Padding : uint8_t { zeros, border, reflection };

// x, mirrored at both ends until it is between them.
float reflect(float x, float low, float high) {
  const float range = high - low;
  if (range <= 0) return low;
  const float beyond = std::fabs(x - low);
  const float turns = std::floor(beyond / range), rest = beyond - turns * range;
  return static_cast<int64_t>(turns) % 2 == 0 ? low + rest : high - rest;
}

// The elements of one axis that contribute to a sample: -1 for those outside, which count as zero.
struct Taps {
  int count = 1;
  int64_t index[4];
  float weight[4];
};

class GridSample {
 public:
  static Status make(const KernelInfo& info, GridSample& out) {
    const std::string mode = info.attributes.text("mode", "linear"),
                      padding = info.attributes.text("padding_mode", "zeros");
    if (mode == "linear" || mode == "bilinear") out.mode_ = Mode::linear;
    else if (mode == "nearest") out.mode_ = Mode::nearest;
    else if (mode == "cubic" || mode == "bicubic") out.mode_ = Mode::cubic;
    else return invalid_graph("GridSample's mode cannot be ", mode);
    if (padding == "zeros") out.padding_ = Padding::zeros;
    else if (padding == "border") out.padding_ = Padding::border;
    else if (padding == "reflection") out.padding_ = Padding::reflection;
    else return invalid_graph("GridSample's padding_mode cannot be ", padding);
    out.align_corners_ = info.attributes.integer("align_corners", 0) != 0;
    return {};
  }

  Status operator()(KernelContext& context) const {
    const Tensor &x = *context.input(0), &grid = *context.input(1);
    Image image;
    PY_ORT_TRY(Image::of(x, false, image));
    const size_t rank = image.spatial.size();
    PY_ORT_ENSURE(rank <= 3 && grid.rank() == x.rank() && grid.dims[0] == image.batch &&
                      grid.dims.back() == static_cast<int64_t>(rank),
                  "a grid of shape ", grid.dims, " does not fit an image of shape ", x.dims);
    const Dims out_spatial(grid.dims.begin() + 1, grid.dims.end() - 1);
    Tensor* y;
    PY_ORT_TRY(context.output(0, x.dtype, Image::dims(false, image.batch, image.channels, out_spatial), y));
    const int64_t places = element_count(out_spatial), pixels = image.pixels();
    if (y->count() == 0) return {};
    const float* at = grid.data<float>();
    std::vector<int64_t> offsets;
    std::vector<float> weights;
    for (int64_t n = 0; n < image.batch; ++n) {
      for (int64_t place = 0; place < places; ++place, at += rank) {
        combine(image.spatial, at, offsets, weights);
        for (int64_t c = 0; c < image.channels; ++c) {
          const float* from = x.data<float>() + (n * image.channels + c) * pixels;
          float sum = 0;
          for (size_t i = 0; i < offsets.size(); ++i) sum += from[offsets[i]] * weights[i];
          y->mutable_data<float>()[(n * image.channels + c) * places + place] = sum;
        }
      }
    }
    return {};
  }

 private:
  Taps taps_of(int64_t size, float place) const {
    const auto length = static_cast<float>(size);
    const float low = align_corners_ ? 0 : -0.5f, high = align_corners_ ? length - 1 : length - 0.5f;
    float x = align_corners_ ? (place + 1) / 2 * (length - 1) : ((place + 1) * length - 1) / 2;
    if (mode_ == Mode::nearest) x = std::nearbyintf(x);
    if (mode_ == Mode::nearest && padding_ == Padding::border) x = std::clamp(x, 0.0f, length - 1);
    if (padding_ == Padding::reflection && (x < low || x > high)) x = reflect(x, low, high);
    Taps taps;
    if (!(std::fabs(x) < 1e9f)) {  // too far to matter, or NaN
      taps.index[0] = -1, taps.weight[0] = 0;
      return taps;
    }
    const auto floor = static_cast<int64_t>(std::floor(x));
    const float r = x - static_cast<float>(floor);
    int64_t first = floor;
    switch (mode_) {
      case Mode::nearest:
        first = static_cast<int64_t>(std::nearbyintf(x));
        taps.weight[0] = 1;
        break;
      case Mode::linear:
        taps.count = 2;
        taps.weight[0] = 1 - r, taps.weight[1] = r;
        break;
      case Mode::cubic: {
        constexpr float a = -0.75f;
        const auto near = [](float d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
        const auto far = [](float d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
        taps.count = 4, first = floor - 1;
        taps.weight[0] = far(1 + r), taps.weight[1] = near(r), taps.weight[2] = near(1 - r),
        taps.weight[3] = far(2 - r);
        break;
      }
    }
    for (int t = 0; t < taps.count; ++t) {
      int64_t i = first + t;
      if (padding_ == Padding::border) i = std::clamp<int64_t>(i, 0, size - 1);
      else if (padding_ == Padding::reflection) i = static_cast<int64_t>(reflect(static_cast<float>(i), low, high));
      taps.index[t] = i >= 0 && i < size ? i : -1;
    }
    return taps;
  }

  // The grid lists the last axis first.
  void combine(const Dims& spatial, const float* at, std::vector<int64_t>& offsets, std::vector<float>& weights) const {
    offsets.assign(1, 0);
    weights.assign(1, 1.0f);
    for (size_t axis = 0; axis < spatial.size(); ++axis) {
      const Taps taps = taps_of(spatial[axis], at[spatial.size() - 1 - axis]);
      std::vector<int64_t> more_offsets;
      std::vector<float> more_weights;
      for (size_t i = 0; i < offsets.size(); ++i)
        for (int t = 0; t < taps.count; ++t) {
          if (taps.index[t] < 0) continue;
          more_offsets.push_back(offsets[i] * spatial[axis] + taps.index[t]);
          more_weights.push_back(weights[i] * taps.weight[t]);
        }
      offsets.swap(more_offsets);
      weights.swap(more_weights);
    }
  }

  Mode mode_ = Mode::linear;
  Padding padding_ = Padding::zeros;
  bool align_corners_ = false;
};

PY_ORT_KERNEL("", "GridSample", "float32,float16,bfloat16", WithHalf<GridSample>);

}  // namespace
}  // namespace py_ort
