#include "kernels/resizing/resize_axis.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace py_ort {

namespace {
template <class Enum, size_t N>
Status look_up(const char* what, const std::pair<const char*, Enum> (&names)[N], const std::string& text, Enum& out) {
  for (const auto& [name, value] : names) {
    if (text != name) continue;
    out = value;
    return {};
  }
  return invalid_graph("Resize's ", what, " cannot be ", text);
}

// The cubic convolution kernel.
double cubic(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// x, or the adjacent border if x differs from it only by rounding.
float on_border(float x) {
  const float border = std::floor(x) + 0.5f;
  return std::abs(x - border) <= 1e-6f ? border : x;
}
}  // namespace

Status read_interpolation(const std::string& text, Interpolation& out) {
  static constexpr std::pair<const char*, Interpolation> names[] = {
      {"nearest", Interpolation::nearest}, {"linear", Interpolation::linear}, {"cubic", Interpolation::cubic}};
  return look_up("mode", names, text, out);
}
Status read_coordinates(const std::string& text, Coordinates& out) {
  static constexpr std::pair<const char*, Coordinates> names[] = {
      {"half_pixel", Coordinates::half_pixel},
      {"half_pixel_symmetric", Coordinates::half_pixel_symmetric},
      {"pytorch_half_pixel", Coordinates::pytorch_half_pixel},
      {"align_corners", Coordinates::align_corners},
      {"asymmetric", Coordinates::asymmetric},
      {"tf_half_pixel_for_nn", Coordinates::tf_half_pixel_for_nn},
      {"tf_crop_and_resize", Coordinates::tf_crop_and_resize}};
  return look_up("coordinate_transformation_mode", names, text, out);
}
Status read_nearest(const std::string& text, Nearest& out) {
  static constexpr std::pair<const char*, Nearest> names[] = {{"round_prefer_floor", Nearest::round_prefer_floor},
                                                              {"round_prefer_ceil", Nearest::round_prefer_ceil},
                                                              {"floor", Nearest::floor},
                                                              {"ceil", Nearest::ceil}};
  return look_up("nearest_mode", names, text, out);
}

// The place in the input from which output element i is made. It is rounded like onnxruntime's: if it is on the border
// between two elements, nearest then chooses the same one.
float ResizeAxis::source(const ResizeRule& rule, int64_t i) const {
  const auto x = static_cast<float>(i), length = static_cast<float>(in), factor = static_cast<float>(scale),
             resized = static_cast<float>(out);
  const float half_pixel = (x + 0.5f) / factor - 0.5f;
  switch (rule.coordinates) {
    case Coordinates::half_pixel: return half_pixel;
    case Coordinates::half_pixel_symmetric: {
      const float shift = length / 2 * (1 - resized / (factor * length));
      return static_cast<float>(static_cast<double>(shift) +
                                (static_cast<double>(i) + 0.5) / static_cast<double>(factor) - 0.5);
    }
    case Coordinates::pytorch_half_pixel: return out > 1 ? half_pixel : 0;
    case Coordinates::align_corners: {
      // For interpolation, ONNX's tests expect the unrounded length.
      const float last =
          rule.interpolation == Interpolation::nearest ? resized : static_cast<float>(scale * static_cast<double>(in));
      return out == 1 ? 0 : x * (length - 1) / (last - 1);
    }
    case Coordinates::asymmetric: return x / factor;
    case Coordinates::tf_half_pixel_for_nn: return (x + 0.5f) / factor;
    case Coordinates::tf_crop_and_resize: break;
  }
  return out > 1 ? crop_begin * (length - 1) + x * (crop_end - crop_begin) * (length - 1) / (resized - 1)
                 : 0.5f * (crop_begin + crop_end) * (length - 1);
}

// Appends the window around x for linear and cubic interpolation.
void ResizeAxis::add_window(const ResizeRule& rule, double x) {
  const double narrowing = rule.antialias ? std::min(scale, 1.0) : 1.0,
               reach = rule.interpolation == Interpolation::linear ? 1 : 2;
  // The window around x in (base, base + 1]: as wide as the filter, and stretched if several input elements contribute
  // to one.
  const double base = std::ceil(x) - 1;
  const auto begin = static_cast<int64_t>(std::floor(-reach / narrowing)) + 1;
  taps = static_cast<int>(2 - 2 * begin);
  double sum = 0;
  const size_t first = weights.size();
  for (int64_t i = begin; i < begin + taps; ++i) {
    const double distance = (base + static_cast<double>(i) - x) * narrowing;
    double weight = rule.interpolation == Interpolation::linear ? std::max(0.0, 1 - std::abs(distance))
                                                                : cubic(distance, rule.cubic_a);
    const int64_t index = static_cast<int64_t>(base) + i;
    if (rule.exclude_outside && (index < 0 || index >= in)) weight = 0;
    sum += weight;
    indices.push_back(static_cast<int32_t>(std::clamp<int64_t>(index, 0, in - 1)));
    weights.push_back(static_cast<float>(weight));
  }
  if ((rule.antialias || rule.exclude_outside) && sum != 0)
    for (size_t i = first; i < weights.size(); ++i) weights[i] = static_cast<float>(weights[i] / sum);
}

void ResizeAxis::make_pairs(const ResizeRule& rule) {
  taps = 2;
  const auto last = static_cast<float>(in - 1);
  for (int64_t i = 0; i < out; ++i) {
    const float place = identity() ? static_cast<float>(i) : source(rule, i), x = std::clamp(place, 0.0f, last);
    if (rule.coordinates == Coordinates::tf_crop_and_resize) outside.push_back(place < 0 || place > last);
    const auto below = static_cast<int32_t>(x), above = std::min(below + 1, static_cast<int32_t>(in - 1));
    indices.insert(indices.end(), {below, above});
    const float behind = x - static_cast<float>(below);
    if (below == above) weights.insert(weights.end(), {0.5f, 0.5f});
    else weights.insert(weights.end(), {static_cast<float>(above) - x, behind});
  }
}

void ResizeAxis::make_table(const ResizeRule& rule) {
  if (rule.interpolation == Interpolation::nearest && identity()) {
    indices.resize(static_cast<size_t>(out));
    std::iota(indices.begin(), indices.end(), 0);
    return;
  }
  for (int64_t i = 0; i < out; ++i) {
    const float x = source(rule, i);
    if (rule.coordinates == Coordinates::tf_crop_and_resize) outside.push_back(x < 0 || x > static_cast<float>(in - 1));
    if (rule.interpolation != Interpolation::nearest) {
      add_window(rule, static_cast<double>(x));
      continue;
    }
    float at = 0;
    switch (rule.nearest) {
      case Nearest::round_prefer_floor: at = std::ceil(on_border(x) - 0.5f); break;
      case Nearest::round_prefer_ceil: at = std::floor(on_border(x) + 0.5f); break;
      case Nearest::floor: at = std::floor(x); break;
      case Nearest::ceil: at = std::ceil(x); break;
    }
    indices.push_back(static_cast<int32_t>(std::clamp(at, 0.0f, static_cast<float>(in - 1))));
  }
}

}  // namespace py_ort
