#include "kernels/shared/spatial.h"

#include <algorithm>

#include "kernels/shared/strided.h"

namespace py_ort {

Status SpatialAttributes::read(const Attributes& attributes, SpatialAttributes& out) {
  out.kernel = attributes.integers("kernel_shape");
  out.strides = attributes.integers("strides");
  out.dilations = attributes.integers("dilations");
  out.pads = attributes.integers("pads");
  out.ceil_mode = attributes.integer("ceil_mode", 0) != 0;
  const std::string mode = attributes.text("auto_pad", "NOTSET");
  if (mode == "NOTSET" || mode.empty()) out.auto_pad = AutoPad::none;
  else if (mode == "VALID") out.auto_pad = AutoPad::valid;
  else if (mode == "SAME_UPPER") out.auto_pad = AutoPad::same_upper;
  else if (mode == "SAME_LOWER") out.auto_pad = AutoPad::same_lower;
  else return invalid_graph("auto_pad cannot be ", mode);
  return {};
}

Status SpatialPlan::make(const SpatialAttributes& a, int64_t batch, const Dims& in, const Dims& kernel,
                         int64_t channels, SpatialPlan& plan, bool is_pool) {
  using AutoPad = SpatialAttributes::AutoPad;
  const size_t rank = in.size();
  if (rank < 1 || rank > 3) return not_implemented("windows over ", rank, " spatial axes (1 to 3 are)");
  const auto fits = [&](const Dims& values, size_t wanted) { return values.empty() || values.size() == wanted; };
  PY_ORT_ENSURE(kernel.size() == rank && fits(a.strides, rank) && fits(a.dilations, rank) && fits(a.pads, 2 * rank),
                "a window of kernel ", kernel, ", strides ", a.strides, ", dilations ", a.dilations, " and pads ",
                a.pads, " does not fit an image with ", rank, " spatial axes");
  plan.rank = static_cast<int>(rank);
  plan.out.resize(rank);
  Window& w = plan.window;
  w.batch = static_cast<int32_t>(batch);
  w.pixel_stride = static_cast<int32_t>(channels);
  for (int axis = 0; axis < 3; ++axis)
    w.in[axis] = w.out[axis] = w.kernel[axis] = w.stride[axis] = w.dilation[axis] = 1,
    w.pad[axis] = plan.pad_end[axis] = 0;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t stride = a.strides.empty() ? 1 : a.strides[i], dilation = a.dilations.empty() ? 1 : a.dilations[i];
    PY_ORT_ENSURE(kernel[i] > 0 && stride > 0 && dilation > 0, "kernel ", kernel, ", strides ", a.strides,
                  " and dilations ", a.dilations, " must be positive");
    const int64_t reach = (kernel[i] - 1) * dilation + 1;
    int64_t pad_begin = 0, pad_end = 0, out = 0;
    if (a.auto_pad == AutoPad::same_upper || a.auto_pad == AutoPad::same_lower) {
      out = (in[i] + stride - 1) / stride;
      const int64_t pads = std::max<int64_t>(0, (out - 1) * stride + reach - in[i]);
      pad_begin = a.auto_pad == AutoPad::same_upper ? pads / 2 : pads - pads / 2;
      pad_end = pads - pad_begin;
    } else {
      if (a.auto_pad == AutoPad::none && !a.pads.empty()) pad_begin = a.pads[i], pad_end = a.pads[i + rank];
      const int64_t room = in[i] + pad_begin + pad_end - reach;
      out = room / stride + 1;
      PY_ORT_ENSURE(room >= 0 || (is_pool && out >= 0), "a window of ", reach, " is larger than the padded image (",
                    in[i], " with pads ", pad_begin, " and ", pad_end, ") in spatial axis ", i);
      if (a.ceil_mode && room % stride > 0 && out * stride < in[i] + pad_begin)
        ++out;  // a window that would begin behind the image does not count
    }
    const size_t axis = i + 3 - rank;
    w.in[axis] = static_cast<int32_t>(in[i]), w.out[axis] = static_cast<int32_t>(out),
    w.kernel[axis] = static_cast<int32_t>(kernel[i]);
    w.stride[axis] = static_cast<int32_t>(stride), w.dilation[axis] = static_cast<int32_t>(dilation);
    w.pad[axis] = static_cast<int32_t>(pad_begin), plan.pad_end[axis] = static_cast<int32_t>(pad_end);
    plan.out[i] = out;
  }
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
