// RandomNormal, RandomUniform, their Like forms, Bernoulli, Multinomial, Dropout.
#include <cmath>
#include <cstring>
#include <ctime>
#include <numbers>

#include "kernels/shared/dtypes.h"
#include "kernels/shared/lanes.h"
#include "py_ort/kernel.h"

namespace py_ort {
namespace {

// SplitMix64. With the attribute `seed` every run of a kernel returns the same numbers; without it, each run returns
// different ones.
class Random {
 public:
  Random(bool seeded, float seed) {
    static uint64_t runs = static_cast<uint64_t>(std::time(nullptr)) << 20;
    if (seeded) std::memcpy(&state_, &seed, sizeof seed);
    else state_ = ++runs * 0x9e3779b97f4a7c15u;
  }
  uint64_t bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // [0, 1)
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  uint64_t state_ = 0;
};

struct Seed {
  explicit Seed(const KernelInfo& info)
      : given(info.attributes.has("seed")), value(info.attributes.number("seed", 0)) {}
  Random random() const { return {given, value}; }
  bool given;
  float value;
};

class RandomTensor {
 public:
  explicit RandomTensor(const KernelInfo& info)
      : normal_(info.op_type.starts_with("RandomNormal")), like_(info.op_type.ends_with("Like")),
        shape_(info.attributes.integers("shape")), dtype_(static_cast<DType>(info.attributes.integer("dtype", 0))),
        seed_(info) {
    first_ = normal_ ? info.attributes.number("mean", 0) : info.attributes.number("low", 0);
    scale_ = normal_ ? info.attributes.number("scale", 1) : info.attributes.number("high", 1) - first_;
  }
  Status operator()(KernelContext& context) const {
    DType dtype = dtype_;
    if (dtype == DType::undefined) dtype = like_ ? context.input(0)->dtype : DType::float32;
    Tensor wide, result;
    PY_ORT_TRY(Tensor::make(DType::float64, like_ ? context.input(0)->dims : shape_, wide));
    Random random = seed_.random();
    for (int64_t i = 0, n = wide.count(); i < n; ++i)
      wide.mutable_data<double>()[i] = first_ + scale_ * (normal_ ? random.normal() : random.uniform());
    PY_ORT_TRY(cast(wide, dtype, result));
    context.output(0, std::move(result));
    return {};
  }

 private:
  bool normal_, like_;
  Dims shape_;
  DType dtype_;
  Seed seed_;
  double first_ = 0, scale_ = 1;
};

class Bernoulli {
 public:
  explicit Bernoulli(const KernelInfo& info)
      : dtype_(static_cast<DType>(info.attributes.integer("dtype", 0))), seed_(info) {}
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    Tensor probabilities, draws, result;
    PY_ORT_TRY(cast(in, DType::float64, probabilities));
    PY_ORT_TRY(Tensor::make(DType::bool_, in.dims, draws));
    Random random = seed_.random();
    for (int64_t i = 0, n = in.count(); i < n; ++i)
      draws.mutable_data<uint8_t>()[i] = random.uniform() < probabilities.data<double>()[i];
    PY_ORT_TRY(cast(draws, dtype_ == DType::undefined ? in.dtype : dtype_, result));
    context.output(0, std::move(result));
    return {};
  }

 private:
  DType dtype_;
  Seed seed_;
};

// Draws classes by the unnormalized log probabilities of each row: the largest after adding Gumbel noise.
class Multinomial {
 public:
  explicit Multinomial(const KernelInfo& info)
      : dtype_(static_cast<DType>(info.attributes.integer("dtype", 6))),
        samples_(info.attributes.integer("sample_size", 1)), seed_(info) {}
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    PY_ORT_ENSURE(in.rank() == 2 && in.dim(1) > 0, "Multinomial needs log probabilities [batch, classes], got shape ",
                  in.dims);
    Tensor logits, draws, result;
    PY_ORT_TRY(cast(in, DType::float64, logits));
    PY_ORT_TRY(Tensor::make(DType::int64, {in.dim(0), samples_}, draws));
    Random random = seed_.random();
    for (int64_t i = 0, n = draws.count(); i < n; ++i) {
      const double* row = logits.data<double>() + i / samples_ * in.dim(1);
      int64_t best = 0;
      double most = -INFINITY;
      for (int64_t c = 0; c < in.dim(1); ++c) {
        const double value = row[c] - std::log(-std::log(random.uniform() + 0x1p-54));
        if (value > most) {
          most = value;
          best = c;
        }
      }
      draws.mutable_data<int64_t>()[i] = best;
    }
    PY_ORT_TRY(cast(draws, dtype_, result));
    context.output(0, std::move(result));
    return {};
  }

 private:
  DType dtype_;
  int64_t samples_;
  Seed seed_;
};

// Has an effect only in training; Python removes all others.
class Dropout {
 public:
  explicit Dropout(const KernelInfo& info) : seed_(info) {}
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    Tensor ratio, kept, mask;
    double drop = 0.5;
    if (context.input(1)) {
      PY_ORT_TRY(cast(*context.input(1), DType::float64, ratio));
      PY_ORT_ENSURE(ratio.count() == 1, "Dropout's ratio must be a scalar, got shape ", ratio.dims);
      drop = *ratio.data<double>();
    }
    const bool training = context.input(2) && *context.input(2)->data<uint8_t>();
    PY_ORT_TRY(Tensor::make(DType::bool_, in.dims, mask));
    auto* keep = mask.mutable_data<uint8_t>();
    std::memset(keep, 1, static_cast<size_t>(in.count()));
    kept = in;
    if (training && drop > 0) {
      Random random = seed_.random();
      Tensor wide, scaled;
      PY_ORT_TRY(cast(in, DType::float64, wide));
      PY_ORT_TRY(Tensor::make(DType::float64, in.dims, scaled));
      for (int64_t i = 0, n = in.count(); i < n; ++i) {
        keep[i] = random.uniform() >= drop;
        scaled.mutable_data<double>()[i] = keep[i] ? wide.data<double>()[i] / (1 - drop) : 0;
      }
      PY_ORT_TRY(cast(scaled, in.dtype, kept));
    }
    context.output(0, std::move(kept));
    context.output(1, std::move(mask));
    return {};
  }

 private:
  Seed seed_;
};

PY_ORT_KERNEL("", "Dropout", PY_ORT_FLOATS ";*", Dropout);
PY_ORT_KERNEL("", "RandomNormal", "*", RandomTensor);
PY_ORT_KERNEL("", "RandomNormalLike", "~*", RandomTensor);
PY_ORT_KERNEL("", "RandomUniform", "*", RandomTensor);
PY_ORT_KERNEL("", "RandomUniformLike", "~*", RandomTensor);
PY_ORT_KERNEL("", "Bernoulli", PY_ORT_FLOATS, Bernoulli);
PY_ORT_KERNEL("", "Multinomial", PY_ORT_FLOATS, Multinomial);

}  // namespace
}  // namespace py_ort
