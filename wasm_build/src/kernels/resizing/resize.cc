// Resize (opset 19): nearest elements are gathered at once; linear and cubic interpolation runs axis by axis.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/shared/axes.h"
#include "kernels/shared/lanes.h"
#include "microkernels/target.h"
#include "kernels/resizing/resize_axis.h"
#include "kernels/shared/strided.h"

namespace py_ort {
namespace {

using PY_ORT_TARGET::load_some;
using PY_ORT_TARGET::load_splat;
using PY_ORT_TARGET::store_some;

// y[o, j, i] = sum over taps t of w[j, t] x[o, index[j, t], i].
void interpolate(const ResizeAxis& axis, int64_t outer, int64_t inner, const float* x, float* y) {
  for (int64_t o = 0; o < outer; ++o, x += axis.in * inner) {
    const int32_t* index = axis.indices.data();
    const float* weight = axis.weights.data();
    if (inner == 1 && axis.taps == 2) {
      for (int64_t j = 0; j < axis.out; ++j, index += 2, weight += 2)
        *y++ = x[index[0]] * weight[0] + x[index[1]] * weight[1];
      continue;
    }
    for (int64_t j = 0; j < axis.out; ++j, index += axis.taps, weight += axis.taps, y += inner) {
      if (inner == 1) {
        float sum = 0;
        for (int t = 0; t < axis.taps; ++t) sum += x[index[t]] * weight[t];
        *y = sum;
        continue;
      }
      PY_ORT_TARGET::for_vectors(0, inner, [&](int32_t i, int32_t left) {
        v128_t sum = simd::splat(0);
        for (int t = 0; t < axis.taps; ++t)
          sum = simd::mul_add(load_some(x + index[t] * inner + i, left), load_splat(weight + t), sum);
        store_some(y + i, sum, left);
      });
    }
  }
}

bool has_fractions(DType dtype) { return lane_of(dtype) == Lane::f32 || lane_of(dtype) == Lane::f64; }

// The same along three axes at once, in onnxruntime's order of additions.
void interpolate_block(const ResizeAxis (&axes)[3], const float* x, float* y) {
  const ResizeAxis &zs = axes[0], &ys = axes[1], &xs = axes[2];
  const float *wz = zs.weights.data(), *wy = ys.weights.data(), *wx = xs.weights.data();
  const int32_t *iz = zs.indices.data(), *iy = ys.indices.data(), *ix = xs.indices.data();
  for (int64_t k = 0; k < zs.out; ++k)
    for (int64_t j = 0; j < ys.out; ++j)
      for (int64_t i = 0; i < xs.out; ++i) {
        float sum = 0;
        for (int64_t c = k * zs.taps; c < (k + 1) * zs.taps; ++c)
          for (int64_t b = j * ys.taps; b < (j + 1) * ys.taps; ++b)
            for (int64_t a = i * xs.taps; a < (i + 1) * xs.taps; ++a)
              sum += wx[a] * wy[b] * wz[c] * x[(iz[c] * ys.in + iy[b]) * xs.in + ix[a]];
        *y++ = sum;
      }
}

// Saturates at a size beyond any memory.
int64_t whole(double size) { return static_cast<int64_t>(std::min(size, 0x1p62)); }

class Resize {
 public:
  static Status make(const KernelInfo& info, Resize& out) {
    const Attributes& a = info.attributes;
    PY_ORT_TRY(read_interpolation(a.text("mode", "nearest"), out.rule_.interpolation));
    PY_ORT_TRY(read_coordinates(a.text("coordinate_transformation_mode", "half_pixel"), out.rule_.coordinates));
    PY_ORT_TRY(read_nearest(a.text("nearest_mode", "round_prefer_floor"), out.rule_.nearest));
    out.rule_.antialias = a.integer("antialias", 0) != 0;
    out.rule_.exclude_outside = a.integer("exclude_outside", 0) != 0;
    out.rule_.cubic_a = static_cast<double>(a.number("cubic_coeff_a", -0.75f));
    out.extrapolation_ = a.number("extrapolation_value", 0);
    out.policy_ = a.text("keep_aspect_ratio_policy", "stretch");
    if (out.policy_ != "stretch" && out.policy_ != "not_larger" && out.policy_ != "not_smaller")
      return invalid_graph("keep_aspect_ratio_policy cannot be ", out.policy_);
    out.named_axes_ = a.has("axes");
    out.axes_ = a.integers("axes");
    return {};
  }

  Status operator()(KernelContext& context) const {
    const Tensor& x = *context.input(0);
    std::vector<ResizeAxis> axes(x.dims.size());
    PY_ORT_TRY(read_sizes(context, x, axes));
    Dims dims;
    for (const ResizeAxis& axis : axes) dims.push_back(axis.out);
    if (dims == x.dims) {  // as in onnxruntime, whatever the scales
      context.output(0, x);
      return {};
    }
    PY_ORT_ENSURE(x.count() > 0 || element_count(dims) == 0, "cannot resize an empty tensor of shape ", x.dims, " to ",
                  dims);
    Tensor* y;
    PY_ORT_TRY(context.output(0, x.dtype, dims, y));
    if (y->count() == 0) return {};
    if (in_blocks(x, axes)) return interpolate_blocks(x, axes, *y);
    for (ResizeAxis& axis : axes)
      if (rule_.interpolation == Interpolation::nearest || !axis.identity()) axis.make_table(rule_);
    return rule_.interpolation == Interpolation::nearest ? gather(x, axes, *y) : interpolate_axes(x, axes, *y);
  }

 private:
  // Reads scales and sizes of all axes from inputs 1 to 3.
  Status read_sizes(KernelContext& context, const Tensor& x, std::vector<ResizeAxis>& all) const {
    const auto given = [&](size_t i) {
      return context.input(i) && context.input(i)->count() > 0 ? context.input(i) : nullptr;
    };
    const Tensor *roi = given(1), *scales = given(2), *sizes = given(3);
    std::vector<int64_t> axes = axes_;
    if (!named_axes_) {
      axes.resize(x.dims.size());
      std::iota(axes.begin(), axes.end(), 0);
    }
    PY_ORT_TRY(distinct_axes(axes, x.rank()));
    for (size_t i = 0; i < all.size(); ++i) all[i].in = all[i].out = x.dims[i];
    const auto count = static_cast<int64_t>(axes.size());
    PY_ORT_ENSURE((scales != nullptr) != (sizes != nullptr) || x.rank() == 0,
                  "Resize needs scales or sizes, and not both");
    if (scales) {
      Tensor values;
      PY_ORT_TRY(cast(*scales, DType::float32, values));
      PY_ORT_ENSURE(values.count() == count, "Resize got ", values.count(), " scales for ", count, " axes");
      for (int64_t k = 0; k < count; ++k) {
        ResizeAxis& axis = all[static_cast<size_t>(axes[static_cast<size_t>(k)])];
        const float scale = values.data<float>()[k];
        PY_ORT_ENSURE(scale > 0, "Resize cannot scale by ", scale);
        axis.scale = static_cast<double>(scale);
        axis.out = whole(std::floor(static_cast<float>(axis.in) * scale));
      }
    } else if (sizes) {
      std::vector<int64_t> wanted;
      PY_ORT_TRY(read_integers(*sizes, wanted));
      PY_ORT_ENSURE(static_cast<int64_t>(wanted.size()) == count, "Resize got ", wanted.size(), " sizes for ", count,
                    " axes");
      take_sizes(axes, wanted, all);
    }
    if (roi && rule_.coordinates == Coordinates::tf_crop_and_resize) {
      Tensor values;
      PY_ORT_TRY(cast(*roi, DType::float32, values));
      PY_ORT_ENSURE(values.count() == 2 * count, "Resize's roi has ", values.count(),
                    " numbers, expected two for each of ", count, " axes");
      for (int64_t k = 0; k < count; ++k) {
        ResizeAxis& axis = all[static_cast<size_t>(axes[static_cast<size_t>(k)])];
        axis.crop_begin = values.data<float>()[k], axis.crop_end = values.data<float>()[k + count];
      }
    }
    return {};
  }

  void take_sizes(const std::vector<int64_t>& axes, const std::vector<int64_t>& wanted,
                  std::vector<ResizeAxis>& all) const {
    double common = policy_ == "not_larger" ? HUGE_VAL : 0;
    for (size_t k = 0; k < axes.size(); ++k) {
      ResizeAxis& axis = all[static_cast<size_t>(axes[k])];
      axis.out = wanted[k];
      axis.scale = axis.in ? static_cast<double>(axis.out) / static_cast<double>(axis.in) : 1;
      common = policy_ == "not_larger" ? std::min(common, axis.scale) : std::max(common, axis.scale);
    }
    if (policy_ == "stretch") return;
    for (int64_t k : axes) {
      ResizeAxis& axis = all[static_cast<size_t>(k)];
      axis.scale = common;
      axis.out = whole(std::floor(common * static_cast<double>(axis.in) + 0.5));
    }
  }

  Status gather(const Tensor& x, const std::vector<ResizeAxis>& axes, Tensor& y) const {
    const Dims steps = strides_of(x.dims);
    std::vector<std::vector<int64_t>> maps(axes.size());
    for (size_t d = 0; d < axes.size(); ++d) {
      for (size_t i = 0; i < axes[d].indices.size(); ++i) {
        const bool outside = !axes[d].outside.empty() && axes[d].outside[i];
        maps[d].push_back(outside ? -1 : axes[d].indices[i] * steps[d]);
      }
    }
    Tensor number, fill;
    PY_ORT_TRY(Tensor::make(DType::float32, {1}, number));
    *number.mutable_data<float>() = extrapolation_;
    PY_ORT_TRY(cast(number, x.dtype, fill));
    mapped_copy(x, maps, &fill, y);
    return {};
  }

  // True for images with two axes, or volumes, of integers. (For floats, one axis after the other is faster, and
  // differs less.)
  bool in_blocks(const Tensor& x, const std::vector<ResizeAxis>& axes) const {
    if (has_fractions(x.dtype) || rule_.interpolation != Interpolation::linear || rule_.antialias) return false;
    return std::all_of(axes.begin(), axes.end() - block_rank(x),
                       [](const ResizeAxis& axis) { return axis.identity(); });
  }

  static int64_t block_rank(const Tensor& x) { return std::min<int64_t>(x.rank(), x.rank() % 2 ? 3 : 2); }

  Status interpolate_blocks(const Tensor& x, std::vector<ResizeAxis>& all, Tensor& y) const {
    ResizeAxis axes[3];
    for (ResizeAxis& axis : axes) axis.in = axis.out = 1, axis.indices = {0}, axis.weights = {1};
    const int64_t count = block_rank(x);
    for (int64_t d = 0; d < count; ++d) {
      ResizeAxis& axis = all[all.size() - static_cast<size_t>(count - d)];
      axis.make_pairs(rule_);
      axes[3 - count + d] = axis;
    }
    Tensor from, to;
    PY_ORT_TRY(cast(x, DType::float32, from));
    PY_ORT_TRY(Tensor::make(DType::float32, y.dims, to));
    const int64_t outer = count_between(x.dims, 0, x.rank() - count);
    for (int64_t o = 0; o < outer; ++o)
      interpolate_block(axes, from.data<float>() + o * (x.count() / outer),
                        to.mutable_data<float>() + o * (y.count() / outer));
    extrapolate(all, to);
    return narrow(to, y);
  }

  static Status narrow(const Tensor& wide, Tensor& y) {
    Tensor made;
    PY_ORT_TRY(cast(wide, y.dtype, made));
    copy_elements(made, 0, y, 0, y.count());
    return {};
  }

  Status interpolate_axes(const Tensor& x, const std::vector<ResizeAxis>& axes, Tensor& y) const {
    Tensor current;
    PY_ORT_TRY(cast(x, DType::float32, current));
    // Shrinking axes come first; otherwise the last axes, whose elements are gathered one by one.
    std::vector<size_t> order;
    for (size_t d = axes.size(); d-- > 0;)
      if (!axes[d].identity()) order.push_back(d);
    // onnxruntime rounds integers between axes.
    const bool rounds = rule_.antialias && !has_fractions(y.dtype);
    if (!rounds)
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return axes[a].scale < axes[b].scale; });
    for (size_t d : order) {
      Dims dims = current.dims;
      dims[d] = axes[d].out;
      Tensor next = y;
      if (d != order.back() || y.dtype != DType::float32) PY_ORT_TRY(Tensor::make(DType::float32, dims, next));
      const auto axis = static_cast<int64_t>(d);
      interpolate(axes[d], count_between(dims, 0, axis), count_between(dims, axis + 1, current.rank()),
                  current.data<float>(), next.mutable_data<float>());
      if (rounds) round_to(y.dtype, next);
      current = std::move(next);
    }
    extrapolate(axes, current);
    return y.dtype == DType::float32 ? Status() : narrow(current, y);
  }

  // There, bytes round halves up, wider integers away from 0.
  static void round_to(DType dtype, Tensor& values) {
    float* each = values.mutable_data<float>();
    const bool byte = dtype == DType::uint8 || dtype == DType::int8;
    const float low = dtype == DType::uint8 ? 0 : -128, high = dtype == DType::uint8 ? 255 : 127;
    for (int64_t i = 0; i < values.count(); ++i)
      each[i] = byte ? std::clamp(std::floor(each[i] + 0.5f), low, high) : std::round(each[i]);
  }

  void extrapolate(const std::vector<ResizeAxis>& axes, Tensor& y) const {
    const Dims steps = strides_of(y.dims);
    for (size_t d = 0; d < axes.size(); ++d) {
      for (size_t i = 0; i < axes[d].outside.size(); ++i) {
        if (!axes[d].outside[i]) continue;
        const int64_t block = axes[d].out * steps[d];
        for (int64_t at = static_cast<int64_t>(i) * steps[d]; at < y.count(); at += block)
          std::fill_n(y.mutable_data<float>() + at, steps[d], extrapolation_);
      }
    }
  }

  ResizeRule rule_;
  float extrapolation_ = 0;
  std::string policy_;
  bool named_axes_ = false;
  std::vector<int64_t> axes_;
};

PY_ORT_KERNEL("", "Resize", "float32,float16,bfloat16,float64,int8,uint8,int16,uint16,int32,uint32,int64,uint64,bool;*",
              Resize);

}  // namespace
}  // namespace py_ort
