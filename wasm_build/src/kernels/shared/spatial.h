// Common code of convolutions and pools: attributes of a sliding window, output sizes, channels-last views of an image.
#pragma once

#include "py_ort/kernel.h"
#include "py_ort/microkernels.h"

namespace py_ort {

struct SpatialAttributes {
  enum class AutoPad : uint8_t { none, valid, same_upper, same_lower };
  Dims kernel, strides, dilations, pads;  // as given; empty: ones (pads: zeros)
  Dims output_padding, output_shape;      // for transposed windows; empty: zeros, or the window's full reach
  AutoPad auto_pad = AutoPad::none;
  bool ceil_mode = false;

  static Status read(const Attributes& attributes, SpatialAttributes& out);
};

// A window along one axis, with all numbers known.
struct WindowAxis {
  int64_t in, kernel, stride, dilation, pad_begin, pad_end;
  int64_t out;  // its places; for a transposed window, the size of the result
};

// Computes pads and output sizes, along any number of axes; the only code for this. `kernel`: of the weights, or of the
// attributes for pools. A pool's window may be larger than the image: then there is no place, or one with the pixels
// that exist.
Status slide(const SpatialAttributes& attributes, const Dims& in, const Dims& kernel, std::vector<WindowAxis>& axes,
             bool is_pool = false);

// The same for windows that spread each element of `in`: ConvTranspose, MaxUnpool.
Status slide_transposed(const SpatialAttributes& attributes, const Dims& in, const Dims& kernel,
                        std::vector<WindowAxis>& axes);

// The window of an operator over one image, in the micro-kernels' form.
struct SpatialPlan {
  int rank = 0;     // spatial axes: 1 to 3
  Window window{};  // images with fewer than 3 axes have leading ones
  int32_t pad_end[3] = {};
  Dims out;                // spatial sizes of the result
  bool pointwise() const;  // True if each output pixel is made from the input pixel in its place.

  // By `slide`; channels: floats between pixels.
  static Status make(const SpatialAttributes& attributes, int64_t batch, const Dims& in, const Dims& kernel,
                     int64_t channels, SpatialPlan& plan, bool is_pool = false);
  // By `slide_transposed`. The window is that of the convolution whose transpose this is: its `out` are the input's
  // pixels, its `in` the result's. channels: floats between pixels of the result.
  static Status transposed(const SpatialAttributes& attributes, int64_t batch, const Dims& in, const Dims& kernel,
                           int64_t channels, SpatialPlan& plan);
};

// The sizes of an image [batch, channels, spatial…], or [batch, spatial…, channels].
struct Image {
  int64_t batch = 0, channels = 0;
  Dims spatial;
  int64_t pixels() const { return element_count(spatial); }
  // The shape of such an image with other sizes.
  static Dims dims(bool channels_last, int64_t batch, int64_t channels, const Dims& spatial);
  static Status of(const Tensor& tensor, bool channels_last, Image& out);
};

// [batch, channels, pixels] -> [batch, pixels, channels] and back, for any dtype. `to` has its dims already.
void swap_channels(const Tensor& from, Tensor& to, int64_t batch, int64_t channels, int64_t pixels,
                   bool to_channels_last);

// The image with channels last: `tensor` itself if it already is.
Status channels_last_of(const Tensor& tensor, const Image& image, bool channels_last, Tensor& out);

// Runs `body` with a channels-last output, whatever the layout of output `index` is.
template <class Body>
Status with_channels_last_output(KernelContext& context, size_t index, DType dtype, bool channels_last,
                                 const Image& image, Body body, std::initializer_list<size_t> over = {}) {
  Tensor* out;
  PY_ORT_TRY(
      context.output(index, dtype, Image::dims(channels_last, image.batch, image.channels, image.spatial), out, over));
  if (channels_last || image.channels == 1 || image.pixels() == 1) return body(*out);
  Tensor last;
  PY_ORT_TRY(Tensor::make(dtype, Image::dims(true, image.batch, image.channels, image.spatial), last));
  PY_ORT_TRY(body(last));
  swap_channels(last, *out, image.batch, image.channels, image.pixels(), false);
  return {};
}

}  // namespace py_ort
