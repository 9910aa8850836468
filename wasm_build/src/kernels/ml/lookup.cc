#include "kernels/ml/lookup.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/shared/lanes.h"

namespace py_ort::ml {
namespace {

// Strings unchanged; a number as the bytes of its int64 or, for a float, of its double (one NaN, one zero).
Status keys_of(const Tensor& tensor, std::vector<std::string>& out) {
  out.clear();
  if (tensor.dtype == DType::string_) {
    out.assign(tensor.strings(), tensor.strings() + tensor.count());
    return {};
  }
  const Lane lane = lane_of(tensor.dtype);
  const bool is_float = lane == Lane::f32 || lane == Lane::f64;
  Tensor wide;
  PY_ORT_TRY(cast(tensor, is_float ? DType::float64 : DType::int64, wide));
  for (int64_t i = 0, n = wide.count(); i < n; ++i) {
    char bytes[8];
    if (is_float) {
      double value = wide.data<double>()[i] + 0.0;
      if (value != value) value = std::numeric_limits<double>::quiet_NaN();
      std::memcpy(bytes, &value, sizeof bytes);
    } else {
      std::memcpy(bytes, wide.data<int64_t>() + i, sizeof bytes);
    }
    out.emplace_back(bytes, sizeof bytes);
  }
  return {};
}

}  // namespace

std::optional<Tensor> list_attribute(const Attributes& attributes, const std::string& prefix) {
  Tensor list;
  const auto fill = [&](DType dtype, const auto& values) {
    if (!Tensor::make(dtype, {static_cast<int64_t>(values.size())}, list).ok()) return false;
    using T = typename std::remove_cvref_t<decltype(values)>::value_type;
    if constexpr (std::is_same_v<T, std::string>) std::copy(values.begin(), values.end(), list.mutable_strings());
    else std::copy(values.begin(), values.end(), list.mutable_data<T>());
    return true;
  };
  if (attributes.has(prefix + "tensor")) return attributes.tensor(prefix + "tensor");
  if (auto strings = attributes.texts(prefix + "strings"); !strings.empty() && fill(DType::string_, strings))
    return list;
  if (auto floats = attributes.numbers(prefix + "floats"); !floats.empty() && fill(DType::float32, floats)) return list;
  for (const char* ending : {"int64s", "ints"})
    if (auto integers = attributes.integers(prefix + ending); !integers.empty() && fill(DType::int64, integers))
      return list;
  return std::nullopt;
}

Status Lookup::make(const Tensor& keys, Lookup& out, OfEqual counts) {
  std::vector<std::string> list;
  PY_ORT_TRY(keys_of(keys, list));
  for (size_t i = 0; i < list.size(); ++i) {
    const auto [place, is_new] = out.positions_.try_emplace(list[i], static_cast<int64_t>(i));
    if (!is_new && counts == OfEqual::last) place->second = static_cast<int64_t>(i);
  }
  out.size_ = static_cast<int64_t>(list.size());
  return {};
}

Status Lookup::find(const Tensor& elements, std::vector<int64_t>& out) const {
  std::vector<std::string> list;
  PY_ORT_TRY(keys_of(elements, list));
  out.clear();
  for (const std::string& key : list) {
    const auto found = positions_.find(key);
    out.push_back(found == positions_.end() ? -1 : found->second);
  }
  return {};
}

}  // namespace py_ort::ml
