// Common code of pools: the walk over a channels-last image, for any element type.
#pragma once

#include <vector>

#include "microkernels/window.h"
#include "kernels/shared/spatial.h"

namespace py_ort {

// Calls body(output pixel, its place, pixels below the window inside the image).
template <class T, class Body>
void for_windows(const Window& window, const T* x, Body body) {
  std::vector<const T*> taps(static_cast<size_t>(window.taps_inside()));
  PY_ORT_TARGET::OutputPixel at(window, 0);
  const int32_t pixels = window.pixels_out();
  for (int32_t pixel = 0; pixel < pixels; ++pixel, at.next(window)) {
    size_t count = 0;
    PY_ORT_TARGET::for_taps_inside(window, at, x, [&](const T* from) { taps[count++] = from; });
    body(pixel, at, std::span<const T* const>(taps.data(), count));
  }
}

// A pool as an operator: transposes the image, makes the output, and calls run(plan, channels-last x, channels-last y).
template <bool kChannelsLast, class Run>
Status pool_image(KernelContext& context, const SpatialAttributes& attributes, Run run) {
  const Tensor& x = *context.input(0);
  Image image;
  PY_ORT_TRY(Image::of(x, kChannelsLast, image));
  SpatialPlan plan;
  PY_ORT_TRY(SpatialPlan::make(attributes, image.batch, image.spatial, attributes.kernel, image.channels, plan, true));
  Tensor input;
  PY_ORT_TRY(channels_last_of(x, image, kChannelsLast, input));
  return with_channels_last_output(context, 0, x.dtype, kChannelsLast, {image.batch, image.channels, plan.out},
                                   [&](Tensor& y) -> Status { return run(plan, input, y); });
}

}  // namespace py_ort
