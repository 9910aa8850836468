// LabelEncoder, CategoryMapper, OneHotEncoder.
#include <algorithm>

#include "kernels/shared/elements.h"
#include "kernels/shared/lanes.h"
#include "kernels/ml/lookup.h"

namespace py_ort::ml {
namespace {

// A tensor of one element: the attribute's value, or ONNX's value for "not found".
Status default_value(const Attributes& attributes, DType dtype, Tensor& out) {
  if (auto given = attributes.tensor("default_tensor")) {
    out = std::move(*given);
    return {};
  }
  PY_ORT_TRY(Tensor::make(dtype == DType::string_ ? dtype : DType::float64, {1}, out));
  if (dtype == DType::string_) {
    out.mutable_strings()[0] = attributes.text("default_string", "_Unused");
    return {};
  }
  const bool is_float = lane_of(dtype) == Lane::f32 || lane_of(dtype) == Lane::f64;
  *out.mutable_data<double>() = is_float ? static_cast<double>(attributes.number("default_float", -0.0f))
                                         : static_cast<double>(attributes.integer("default_int64", -1));
  return cast(Tensor(out), dtype, out);
}

Status map_elements(KernelContext& context, const Lookup& lookup, const Tensor& values, const Tensor& otherwise) {
  const Tensor& in = *context.input(0);
  std::vector<int64_t> positions;
  PY_ORT_TRY(lookup.find(in, positions));
  Tensor* out = nullptr;
  PY_ORT_TRY(context.output(0, values.dtype, in.dims, out));
  for (size_t i = 0; i < positions.size(); ++i)
    copy_elements(positions[i] < 0 ? otherwise : values, std::max<int64_t>(positions[i], 0), *out,
                  static_cast<int64_t>(i), 1);
  return {};
}

class LabelEncoder {
 public:
  static Status make(const KernelInfo& info, LabelEncoder& out) {
    const auto keys = list_attribute(info.attributes, "keys_");
    auto values = list_attribute(info.attributes, "values_");
    if (!keys || !values || keys->count() != values->count())
      return invalid_graph("LabelEncoder needs as many keys as values");
    out.values_ = std::move(*values);
    PY_ORT_TRY(default_value(info.attributes, out.values_.dtype, out.otherwise_));
    return Lookup::make(*keys, out.lookup_, OfEqual::first);
  }
  Status operator()(KernelContext& context) const { return map_elements(context, lookup_, values_, otherwise_); }

 private:
  Lookup lookup_;
  Tensor values_, otherwise_;
};

// Strings to integers or integers to strings, depending on the input.
class CategoryMapper {
 public:
  static Status make(const KernelInfo& info, CategoryMapper& out) {
    const std::vector<int64_t> numbers = info.attributes.integers("cats_int64s");
    const std::vector<std::string> names = info.attributes.texts("cats_strings");
    if (numbers.size() != names.size())
      return invalid_graph("CategoryMapper has ", numbers.size(), " integers for ", names.size(), " strings");
    const auto count = static_cast<int64_t>(names.size());
    PY_ORT_TRY(Tensor::make(DType::string_, {count}, out.names_));
    PY_ORT_TRY(Tensor::make(DType::int64, {count}, out.numbers_));
    std::copy(names.begin(), names.end(), out.names_.mutable_strings());
    std::copy(numbers.begin(), numbers.end(), out.numbers_.mutable_data<int64_t>());
    PY_ORT_TRY(default_value(info.attributes, DType::string_, out.no_name_));
    PY_ORT_TRY(default_value(info.attributes, DType::int64, out.no_number_));
    PY_ORT_TRY(Lookup::make(out.names_, out.by_name_));
    return Lookup::make(out.numbers_, out.by_number_);
  }
  Status operator()(KernelContext& context) const {
    if (context.input(0)->dtype == DType::string_) return map_elements(context, by_name_, numbers_, no_number_);
    return map_elements(context, by_number_, names_, no_name_);
  }

 private:
  Lookup by_name_, by_number_;
  Tensor names_, numbers_, no_name_, no_number_;
};

class OneHotEncoder {
 public:
  static Status make(const KernelInfo& info, OneHotEncoder& out) {
    const auto categories = list_attribute(info.attributes, "cats_");
    if (!categories) return invalid_graph("OneHotEncoder has no categories");
    out.zeros_ = info.attributes.integer("zeros", 1) != 0;
    return Lookup::make(*categories, out.lookup_);
  }
  Status operator()(KernelContext& context) const {
    Tensor in = *context.input(0);
    if (in.dtype != DType::string_) PY_ORT_TRY(cast(Tensor(in), DType::int64, in));
    std::vector<int64_t> positions;
    PY_ORT_TRY(lookup_.find(in, positions));
    Dims dims = in.dims;
    dims.push_back(lookup_.size());
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, DType::float32, std::move(dims), out));
    fill_zero(*out);
    for (size_t i = 0; i < positions.size(); ++i) {
      PY_ORT_ENSURE(zeros_ || positions[i] >= 0, "OneHotEncoder: element ", i, " is in no category");
      if (positions[i] >= 0) out->mutable_data<float>()[static_cast<int64_t>(i) * lookup_.size() + positions[i]] = 1;
    }
    return {};
  }

 private:
  Lookup lookup_;
  bool zeros_ = true;
};

PY_ORT_KERNEL("ai.onnx.ml", "LabelEncoder", "*", LabelEncoder);
PY_ORT_KERNEL("ai.onnx.ml", "CategoryMapper", "string,int64", CategoryMapper);
PY_ORT_KERNEL("ai.onnx.ml", "OneHotEncoder", "string,int64,int32,float32,float64", OneHotEncoder);

}  // namespace
}  // namespace py_ort::ml
