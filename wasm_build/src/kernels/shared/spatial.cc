#include "kernels/shared/spatial.h"

#include <algorithm>

#include "kernels/shared/strided.h"

namespace py_ort {

Status SpatialAttributes::read(const Attributes& attributes, SpatialAttributes& out) {
  out.kernel = attributes.integers("kernel_shape");
  out.strides = attributes.integers("strides");
  out.dilations = attributes.integers("dilations");
  out.pads = attributes.integers("pads");
  out.output_padding = attributes.integers("output_padding");
  out.output_shape = attributes.integers("output_shape");
  out.ceil_mode = attributes.integer("ceil_mode", 0) != 0;
  const std::string mode = attributes.text("auto_pad", "NOTSET");
  if (mode == "NOTSET" || mode.empty()) out.auto_pad = AutoPad::none;
  else if (mode == "VALID") out.auto_pad = AutoPad::valid;
  else if (mode == "SAME_UPPER") out.auto_pad = AutoPad::same_upper;
  else if (mode == "SAME_LOWER") out.auto_pad = AutoPad::same_lower;
  else return invalid_graph("auto_pad cannot be ", mode);
  return {};
}

namespace {

// The limit of each number of a window, and of its padded image: places are counted in 32 bits.
constexpr int64_t kMost = INT32_MAX;

bool small(const Dims& values) {
  return std::all_of(values.begin(), values.end(), [](int64_t value) { return value >= -kMost && value <= kMost; });
}

int64_t number(const Dims& values, size_t i, int64_t otherwise) { return i < values.size() ? values[i] : otherwise; }

// The axes without pads and results.
Status axes_of(const SpatialAttributes& a, const Dims& in, const Dims& kernel, std::vector<WindowAxis>& axes) {
  const size_t rank = in.size();
  const auto fits = [](const Dims& values, size_t wanted) { return values.empty() || values.size() == wanted; };
  PY_ORT_ENSURE(kernel.size() == rank && fits(a.strides, rank) && fits(a.dilations, rank) && fits(a.pads, 2 * rank),
                "a window of kernel ", kernel, ", strides ", a.strides, ", dilations ", a.dilations, " and pads ",
                a.pads, " does not fit an image with ", rank, " spatial axes");
  PY_ORT_ENSURE(small(kernel) && small(a.strides) && small(a.dilations) && small(a.pads) && small(a.output_padding),
                "kernel ", kernel, ", strides ", a.strides, ", dilations ", a.dilations, ", pads ", a.pads,
                " and output_padding ", a.output_padding, " must be below 2^31");
  axes.clear();
  for (size_t i = 0; i < rank; ++i) {
    const int64_t stride = number(a.strides, i, 1), dilation = number(a.dilations, i, 1);
    PY_ORT_ENSURE(kernel[i] > 0 && stride > 0 && dilation > 0, "kernel ", kernel, ", strides ", a.strides,
                  " and dilations ", a.dilations, " must be positive");
    axes.push_back({in[i], kernel[i], stride, dilation, 0, 0, 0});
  }
  return {};
}

Status in_reach(size_t i, int64_t reach, int64_t padded) {
  PY_ORT_ENSURE(reach <= kMost && padded <= kMost, "a window of ", reach, " over a padded image of ", padded,
                " in spatial axis ", i, ": sizes must be below 2^31");
  return {};
}

bool is_same(const SpatialAttributes& a) {
  return a.auto_pad == SpatialAttributes::AutoPad::same_upper || a.auto_pad == SpatialAttributes::AutoPad::same_lower;
}

// An odd total puts the extra one at the end with SAME_UPPER, otherwise at the beginning: even with an output_shape and
// no auto_pad.
void split_pads(const SpatialAttributes& a, int64_t pads, WindowAxis& axis) {
  axis.pad_begin = a.auto_pad == SpatialAttributes::AutoPad::same_upper ? pads / 2 : pads - pads / 2;
  axis.pad_end = pads - axis.pad_begin;
}

void given_pads(const SpatialAttributes& a, size_t i, size_t rank, WindowAxis& axis) {
  if (a.auto_pad != SpatialAttributes::AutoPad::none) return;
  axis.pad_begin = number(a.pads, i, 0);
  axis.pad_end = number(a.pads, i + rank, 0);
}

Status rank_is_known(size_t rank) {
  return rank < 1 || rank > 3 ? not_implemented("windows over ", rank, " spatial axes (1 to 3 are)") : Status{};
}

// Images with fewer than 3 axes have leading ones.
void place_window(const std::vector<WindowAxis>& axes, int64_t batch, int64_t channels, bool transposed,
                  SpatialPlan& plan) {
  const size_t rank = axes.size();
  plan.rank = static_cast<int>(rank);
  plan.out.clear();
  Window& w = plan.window;
  w.batch = static_cast<int32_t>(batch);
  w.pixel_stride = static_cast<int32_t>(channels);
  for (int i = 0; i < 3; ++i)
    w.in[i] = w.out[i] = w.kernel[i] = w.stride[i] = w.dilation[i] = 1, w.pad[i] = plan.pad_end[i] = 0;
  for (size_t i = 0; i < rank; ++i) {
    const WindowAxis& axis = axes[i];
    const size_t at = i + 3 - rank;
    w.in[at] = static_cast<int32_t>(transposed ? axis.out : axis.in);
    w.out[at] = static_cast<int32_t>(transposed ? axis.in : axis.out);
    w.kernel[at] = static_cast<int32_t>(axis.kernel);
    w.stride[at] = static_cast<int32_t>(axis.stride), w.dilation[at] = static_cast<int32_t>(axis.dilation);
    w.pad[at] = static_cast<int32_t>(axis.pad_begin), plan.pad_end[at] = static_cast<int32_t>(axis.pad_end);
    plan.out.push_back(axis.out);
  }
}

}  // namespace

Status slide(const SpatialAttributes& a, const Dims& in, const Dims& kernel, std::vector<WindowAxis>& axes,
             bool is_pool) {
  PY_ORT_TRY(axes_of(a, in, kernel, axes));
  for (size_t i = 0; i < axes.size(); ++i) {
    WindowAxis& axis = axes[i];
    const int64_t reach = (axis.kernel - 1) * axis.dilation + 1;
    if (is_same(a)) {
      axis.out = (axis.in + axis.stride - 1) / axis.stride;
      split_pads(a, std::max<int64_t>(0, (axis.out - 1) * axis.stride + reach - axis.in), axis);
      PY_ORT_TRY(in_reach(i, reach, axis.in + axis.pad_begin + axis.pad_end));
      continue;
    }
    given_pads(a, i, axes.size(), axis);
    PY_ORT_TRY(in_reach(i, reach, axis.in + axis.pad_begin + axis.pad_end));
    const int64_t room = axis.in + axis.pad_begin + axis.pad_end - reach;
    // A factor per channel may have become a window of 1, with an empty image.
    const bool is_empty = !is_pool && reach == 1 && room == -1;
    axis.out = is_empty ? 0 : room / axis.stride + 1;
    PY_ORT_ENSURE(room >= 0 || is_empty || (is_pool && axis.out >= 0), "a window of ", reach,
                  " is larger than the padded image (", axis.in, " with pads ", axis.pad_begin, " and ", axis.pad_end,
                  ") in spatial axis ", i);
    if (a.ceil_mode && room % axis.stride > 0 && axis.out * axis.stride < axis.in + axis.pad_begin)
      ++axis.out;  // a window that would begin past the image does not count
  }
  return {};
}

Status slide_transposed(const SpatialAttributes& a, const Dims& in, const Dims& kernel, std::vector<WindowAxis>& axes) {
  PY_ORT_TRY(axes_of(a, in, kernel, axes));
  const size_t rank = axes.size();
  // An output_shape may include batch and channels.
  const Dims wanted(
      a.output_shape.size() > rank ? a.output_shape.end() - static_cast<ptrdiff_t>(rank) : a.output_shape.begin(),
      a.output_shape.end());
  PY_ORT_ENSURE(wanted.empty() || wanted.size() == rank, "output_shape ", wanted, " does not fit ", rank,
                " spatial axes");
  for (size_t i = 0; i < rank; ++i) {
    WindowAxis& axis = axes[i];
    const int64_t reach = (axis.kernel - 1) * axis.dilation + 1, steps = axis.stride * (axis.in - 1);
    PY_ORT_TRY(in_reach(i, reach, steps));
    const int64_t full = steps + number(a.output_padding, i, 0) + reach;
    if (!wanted.empty() || is_same(a)) {
      axis.out = wanted.empty() ? axis.in * axis.stride : wanted[i];
      const int64_t pads = std::max<int64_t>(0, full - axis.out);
      split_pads(a, pads, axis);
      if (wanted.empty()) axis.out = full - pads;  // a kernel smaller than the stride yields less than requested
    } else {
      given_pads(a, i, rank, axis);
      axis.out = full - axis.pad_begin - axis.pad_end;
    }
    PY_ORT_ENSURE(axis.out > 0 || axis.in == 0, "the pads leave nothing of spatial axis ", i, " (", full,
                  " before them)");
    PY_ORT_TRY(in_reach(i, reach, axis.out));
    axis.out = std::max<int64_t>(0, axis.out);
  }
  return {};
}

bool SpatialPlan::pointwise() const {
  bool alone = window.taps() == 1;
  for (int axis = 0; axis < 3; ++axis)
    alone = alone && window.stride[axis] == 1 && window.pad[axis] == 0 && pad_end[axis] == 0;
  return alone;
}

Status SpatialPlan::make(const SpatialAttributes& attributes, int64_t batch, const Dims& in, const Dims& kernel,
                         int64_t channels, SpatialPlan& plan, bool is_pool) {
  PY_ORT_TRY(rank_is_known(in.size()));
  std::vector<WindowAxis> axes;
  PY_ORT_TRY(slide(attributes, in, kernel, axes, is_pool));
  place_window(axes, batch, channels, false, plan);
  return {};
}

Status SpatialPlan::transposed(const SpatialAttributes& attributes, int64_t batch, const Dims& in, const Dims& kernel,
                               int64_t channels, SpatialPlan& plan) {
  PY_ORT_TRY(rank_is_known(in.size()));
  std::vector<WindowAxis> axes;
  PY_ORT_TRY(slide_transposed(attributes, in, kernel, axes));
  place_window(axes, batch, channels, true, plan);
  return {};
}

Dims Image::dims(bool channels_last, int64_t batch, int64_t channels, const Dims& spatial) {
  Dims dims{batch};
  if (!channels_last) dims.push_back(channels);
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  if (channels_last) dims.push_back(channels);
  return dims;
}

Status Image::of(const Tensor& tensor, bool channels_last, Image& out) {
  PY_ORT_ENSURE(tensor.rank() >= 3, "expected an image with batch, channels and spatial axes, got the shape ",
                tensor.dims);
  out.batch = tensor.dims[0];
  out.channels = channels_last ? tensor.dims.back() : tensor.dims[1];
  if (channels_last) out.spatial.assign(tensor.dims.begin() + 1, tensor.dims.end() - 1);
  else out.spatial.assign(tensor.dims.begin() + 2, tensor.dims.end());
  return {};
}

void swap_channels(const Tensor& from, Tensor& to, int64_t batch, int64_t channels, int64_t pixels,
                   bool to_channels_last) {
  const int64_t image = channels * pixels;
  const StridedView first{0, {image, pixels, 1}}, last{0, {image, 1, channels}};  // steps along batch, channel, pixel
  strided_copy(from, to_channels_last ? first : last, to, to_channels_last ? last : first, {batch, channels, pixels});
}

Status channels_last_of(const Tensor& tensor, const Image& image, bool channels_last, Tensor& out) {
  const Dims dims = Image::dims(true, image.batch, image.channels, image.spatial);
  if (channels_last || image.channels == 1 || image.pixels() == 1) {
    out = tensor.reshaped(dims);
    return {};
  }
  PY_ORT_TRY(Tensor::make(tensor.dtype, dims, out));
  swap_channels(tensor, out, image.batch, image.channels, image.pixels(), true);
  return {};
}

}  // namespace py_ort
