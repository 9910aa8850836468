// Resize along one axis: the input elements of each output element, and their weights. Several axes are resized one
// after the other.
#pragma once

#include <string>
#include <vector>

#include "py_ort/status.h"

namespace py_ort {

enum class Interpolation : uint8_t { nearest, linear, cubic };
enum class Coordinates : uint8_t {
  half_pixel,
  half_pixel_symmetric,
  pytorch_half_pixel,
  align_corners,
  asymmetric,
  tf_half_pixel_for_nn,
  tf_crop_and_resize
};
enum class Nearest : uint8_t { round_prefer_floor, round_prefer_ceil, floor, ceil };

Status read_interpolation(const std::string& text, Interpolation& out);
Status read_coordinates(const std::string& text, Coordinates& out);
Status read_nearest(const std::string& text, Nearest& out);

struct ResizeRule {
  Interpolation interpolation = Interpolation::nearest;
  Coordinates coordinates = Coordinates::half_pixel;
  Nearest nearest = Nearest::round_prefer_floor;
  bool antialias = false, exclude_outside = false;
  double cubic_a = -0.75;
};

struct ResizeAxis {
  int64_t in = 0, out = 0;
  double scale = 1;                    // as requested: out may differ from in * scale
  float crop_begin = 0, crop_end = 1;  // tf_crop_and_resize
  // For output element i: elements [i * taps, (i + 1) * taps) of both.
  int taps = 1;
  std::vector<int32_t> indices;  // within [0, in)
  std::vector<float> weights;    // empty for nearest
  std::vector<bool> outside;     // tf_crop_and_resize: the output elements to extrapolate; otherwise empty

  // As in onnxruntime, even if tf_crop_and_resize would crop.
  bool identity() const { return in == out && scale == 1; }
  void make_table(const ResizeRule& rule);
  // For linear interpolation of integers, which truncates fractions: like onnxruntime, as the last bit matters.
  void make_pairs(const ResizeRule& rule);

 private:
  float source(const ResizeRule& rule, int64_t i) const;
  void add_window(const ResizeRule& rule, double x);
};

}  // namespace py_ort
