// The places of a sliding window's taps.
#pragma once

#include "microkernels/target.h"
#include "py_ort/microkernels.h"

namespace py_ort::PY_ORT_TARGET {

// The place of one output pixel, walked in row order.
struct OutputPixel {
  int32_t batch, at[3];
  OutputPixel(const Window& w, int32_t index) {
    for (int axis = 2; axis >= 0; --axis) {
      at[axis] = index % w.out[axis];
      index /= w.out[axis];
    }
    batch = index;
  }
  void next(const Window& w) {
    for (int axis = 2; axis >= 0; --axis) {
      if (++at[axis] < w.out[axis]) return;
      at[axis] = 0;
    }
    ++batch;
  }
};

// Calls visit(row) for each row of the window at `o`, in order: the start of the image's row, or null outside of the
// image.
template <class T, class Visit>
[[gnu::always_inline]] inline void for_window_rows(const Window& w, const OutputPixel& o, const T* image,
                                                   const Visit& visit) {
  const auto inside = [&](int axis, int32_t i) { return static_cast<uint32_t>(i) < static_cast<uint32_t>(w.in[axis]); };
  for (int32_t k0 = 0; k0 < w.kernel[0]; ++k0) {
    const int32_t i0 = o.at[0] * w.stride[0] - w.pad[0] + k0 * w.dilation[0];
    const int32_t plane = o.batch * w.in[0] + i0;
    for (int32_t k1 = 0; k1 < w.kernel[1]; ++k1) {
      const int32_t i1 = o.at[1] * w.stride[1] - w.pad[1] + k1 * w.dilation[1];
      const bool here = inside(0, i0) && inside(1, i1);
      visit(here ? image + static_cast<size_t>((plane * w.in[1] + i1) * w.in[2]) * w.pixel_stride : nullptr);
    }
  }
}

// Calls place(tap, pixel) for each tap of the window at `o`: pixel is null outside of the image.
template <class T, class Place>
[[gnu::always_inline]] inline void for_taps(const Window& w, const OutputPixel& o, const T* image, const Place& place) {
  const int32_t first = o.at[2] * w.stride[2] - w.pad[2];
  int32_t tap = 0;
  for_window_rows(w, o, image, [&](const T* row) {
    for (int32_t k2 = 0; k2 < w.kernel[2]; ++k2, ++tap) {
      const int32_t i2 = first + k2 * w.dilation[2];
      const bool inside = row && static_cast<uint32_t>(i2) < static_cast<uint32_t>(w.in[2]);
      place(tap, inside ? row + static_cast<size_t>(i2) * w.pixel_stride : nullptr);
    }
  });
}

// The number of taps before `place`, in an axis, of a window that begins at `begin`.
inline int32_t taps_before(const Window& w, int axis, int64_t begin, int64_t place) {
  const int64_t dilation = w.dilation[axis], distance = place - begin;
  const int64_t count = dilation == 1 ? distance : (distance + dilation - 1) / dilation;
  return count < 0 ? 0 : count < w.kernel[axis] ? static_cast<int32_t>(count) : w.kernel[axis];
}

inline int64_t window_begin(const Window& w, const OutputPixel& o, int axis) {
  return int64_t{o.at[axis]} * w.stride[axis] - w.pad[axis];
}

// Calls visit(pixel) for each tap of the window at `o` inside the image, in order, and skips the others.
template <class T, class Visit>
[[gnu::always_inline]] inline void for_taps_inside(const Window& w, const OutputPixel& o, const T* image,
                                                   const Visit& visit) {
  int32_t from[3], to[3], first[3];
  for (int axis = 0; axis < 3; ++axis) {
    const int64_t begin = window_begin(w, o, axis);
    from[axis] = taps_before(w, axis, begin, 0), to[axis] = taps_before(w, axis, begin, w.in[axis]);
    if (from[axis] >= to[axis]) return;
    first[axis] = static_cast<int32_t>(begin + int64_t{from[axis]} * w.dilation[axis]);
  }
  int32_t i0 = first[0];
  for (int32_t k0 = from[0]; k0 < to[0]; ++k0, i0 += w.dilation[0]) {
    int32_t i1 = first[1];
    for (int32_t k1 = from[1]; k1 < to[1]; ++k1, i1 += w.dilation[1]) {
      const int32_t row = ((o.batch * w.in[0] + i0) * w.in[1] + i1) * w.in[2];
      int32_t i2 = first[2];
      for (int32_t k2 = from[2]; k2 < to[2]; ++k2, i2 += w.dilation[2])
        visit(image + static_cast<size_t>(row + i2) * w.pixel_stride);
    }
  }
}

// True if the windows at `o` and the next count - 1 places are in one row, and no column of them leaves the image.
inline bool columns_inside(const Window& w, const OutputPixel& o, int32_t count) {
  const int32_t first = o.at[2] * w.stride[2] - w.pad[2];
  const int32_t last = first + (w.kernel[2] - 1) * w.dilation[2] + (count - 1) * w.stride[2];
  return o.at[2] + count <= w.out[2] && first >= 0 && last < w.in[2];
}

// For the windows at `o` and the next count - 1 places: the taps before and after this range are above and below the
// image, and count as 0, whatever the weights are. All taps if the places are not in one row of one plane.
struct TapRange {
  int32_t begin = 0, end;
  TapRange(const Window& w, const OutputPixel& o, int32_t count) : end(w.taps()) {
    if (w.kernel[0] != 1 || o.at[2] + count > w.out[2]) return;
    const int32_t first = o.at[1] * w.stride[1] - w.pad[1];
    int32_t above = 0, within = w.kernel[1];
    while (above < within && first + above * w.dilation[1] < 0) ++above;
    while (above < within && first + (within - 1) * w.dilation[1] >= w.in[1]) --within;
    begin = above * w.kernel[2], end = within * w.kernel[2];
  }
};

// The taps of the windows at `o` and the next count - 1 places: taps[tap * P + place]; `zeros` outside of the image.
// `o` advances past them.
template <int P, class T>
[[gnu::always_inline]] inline void locate_taps(const Window& w, OutputPixel& o, int32_t count, const T* image,
                                               const T* zeros, const T** taps) {
  if (count == P && columns_inside(w, o, P)) {  // one window after the other, a step apart
    const size_t step = static_cast<size_t>(w.stride[2]) * w.pixel_stride;
    for_taps(w, o, image, [&](int32_t tap, const T* from) {
      for (int32_t p = 0; p < P; ++p) taps[tap * P + p] = from ? from + p * step : zeros;
    });
    for (int32_t p = 0; p < P; ++p) o.next(w);
    return;
  }
  for (int32_t p = 0; p < count; ++p, o.next(w))
    for_taps(w, o, image, [&](int32_t tap, const T* from) { taps[tap * P + p] = from ? from : zeros; });
}

// How many taps of the window at `o` lie inside of the padded image.
inline double padded_taps(const Window& w, const OutputPixel& o, const int32_t* pad_end) {
  double count = 1;
  for (int axis = 0; axis < 3; ++axis)
    count *= taps_before(w, axis, window_begin(w, o, axis), int64_t{w.in[axis]} + pad_end[axis]);
  return count;
}

}  // namespace py_ort::PY_ORT_TARGET
