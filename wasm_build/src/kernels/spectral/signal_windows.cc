// HannWindow, HammingWindow, BlackmanWindow and MelWeightMatrix.
#include <cmath>

#include "kernels/shared/axes.h"
#include "kernels/shared/lanes.h"

namespace py_ort {
namespace {

constexpr double kPi = 3.14159265358979323846;

// Makes `values` the output, in the dtype of the attribute output_datatype.
Status put_as(KernelContext& context, const Tensor& values, DType dtype) {
  Tensor out;
  PY_ORT_TRY(cast(values, dtype, out));
  context.output(0, std::move(out));
  return {};
}

// c0 - c1 cos(t) + c2 cos(2 t), t from 0 to 2 pi.
struct Hann { static constexpr double c[] = {0.5, 0.5, 0}; };
struct Hamming { static constexpr double c[] = {25.0 / 46, 21.0 / 46, 0}; };
struct Blackman { static constexpr double c[] = {0.42, 0.5, 0.08}; };

template <class Shape>
class SignalWindow {
 public:
  explicit SignalWindow(const KernelInfo& info)
      : periodic_(info.attributes.integer("periodic", 1) != 0),
        dtype_(static_cast<DType>(info.attributes.integer("output_datatype", 1))) {}

  Status operator()(KernelContext& context) const {
    int64_t size;
    PY_ORT_TRY(read_integer(*context.input(0), "the window's size", size));
    Tensor values;
    PY_ORT_TRY(Tensor::make(DType::float64, {size}, values));
    const double period = static_cast<double>(periodic_ ? size : size - 1);
    for (int64_t i = 0; i < size; ++i) {
      const double t = period > 0 ? 2 * kPi * static_cast<double>(i) / period : 0;
      values.mutable_data<double>()[i] = Shape::c[0] - Shape::c[1] * std::cos(t) + Shape::c[2] * std::cos(2 * t);
    }
    return put_as(context, values, dtype_);
  }

 private:
  bool periodic_;
  DType dtype_;
};

// Triangles of equal width on the mel scale, as weights of a spectrum's bins.
class MelWeightMatrix {
 public:
  explicit MelWeightMatrix(const KernelInfo& info)
      : dtype_(static_cast<DType>(info.attributes.integer("output_datatype", 1))) {}

  Status operator()(KernelContext& context) const {
    int64_t bins, length, rate;
    PY_ORT_TRY(read_integer(*context.input(0), "num_mel_bins", bins));
    PY_ORT_TRY(read_integer(*context.input(1), "dft_length", length));
    PY_ORT_TRY(read_integer(*context.input(2), "sample_rate", rate));
    double edges[2];
    for (size_t i = 0; i < 2; ++i) {
      Tensor edge;
      PY_ORT_TRY(cast(*context.input(3 + i), DType::float64, edge));
      PY_ORT_ENSURE(edge.count() == 1, "the edges of the mel scale are one number each");
      edges[i] = 2595 * std::log10(1 + edge.data<double>()[0] / 700);
    }
    const int64_t rows = length / 2 + 1;
    Tensor values;
    PY_ORT_TRY(Tensor::make(DType::float64, {rows, bins}, values));
    double* to = values.mutable_data<double>();
    std::fill_n(to, rows * bins, 0.0);
    const double step = (edges[1] - edges[0]) / static_cast<double>(bins + 2);
    std::vector<int64_t> points;
    for (int64_t i = 0; i < bins + 2; ++i) {
      const double hertz = 700 * (std::pow(10, (edges[0] + static_cast<double>(i) * step) / 2595) - 1);
      points.push_back(
          static_cast<int64_t>(std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate))));
      PY_ORT_ENSURE(points.back() >= 0 && points.back() < rows, "the mel scale reaches bin ", points.back(),
                    " of a spectrum of ", rows);
    }
    for (int64_t i = 0; i < bins; ++i) {
      const int64_t left = points[static_cast<size_t>(i)], center = points[static_cast<size_t>(i) + 1],
                    right = points[static_cast<size_t>(i) + 2];
      if (left == center) to[center * bins + i] = 1;
      else
        for (int64_t j = left; j <= center; ++j)
          to[j * bins + i] = static_cast<double>(j - left) / static_cast<double>(center - left);
      for (int64_t j = center; j < right; ++j)
        to[j * bins + i] = static_cast<double>(right - j) / static_cast<double>(right - center);
    }
    return put_as(context, values, dtype_);
  }

 private:
  DType dtype_;
};

PY_ORT_KERNEL("", "HannWindow", "int32,int64", SignalWindow<Hann>);
PY_ORT_KERNEL("", "HammingWindow", "int32,int64", SignalWindow<Hamming>);
PY_ORT_KERNEL("", "BlackmanWindow", "int32,int64", SignalWindow<Blackman>);
PY_ORT_KERNEL("", "MelWeightMatrix", "int32,int64;int32,int64;int32,int64;float32,float16,float64,bfloat16",
              MelWeightMatrix);

}  // namespace
}  // namespace py_ort
