#include <algorithm>

#include "abi/error.h"
#include "ep/cpu_kernels.h"
#include "py_ort/abi.h"
#include "py_ort/kernel_features.h"

namespace py_ort {

std::vector<KernelFeatures>& kernel_features() {
  static std::vector<KernelFeatures> entries;
  return entries;
}

namespace {

std::string types_json(const InputTypes& types) {
  std::string json = "[";
  for (size_t input = 0; input < types.size(); ++input) {
    json += input ? ",[" : "[";
    bool first = true;
    for (int i = 1; i <= static_cast<int>(DType::MAX) && !types.any(input); ++i) {
      if (!types.accepts(input, static_cast<DType>(i))) continue;
      if (!first) json += ',';
      first = false;
      append_json(json, dtype_name(static_cast<DType>(i)));
    }
    json += ']';
  }
  return json + "]";
}

std::string features_json(const KernelEntry& entry) {
  std::string json;
  for (const KernelFeatures& each : kernel_features()) {
    if (std::string_view(each.domain) != entry.domain || std::string_view(each.op_type) != entry.op_type) continue;
    for (std::string_view rest = each.names; !rest.empty();) {
      const size_t end = std::min(rest.find(','), rest.size());
      append_json(json += json.empty() ? "" : ",", rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return json.empty() ? json : ",\"features\":[" + json + "]";
}

std::string error_json(std::string_view message) {
  std::string json = "{\"error\":";
  append_json(json, message);
  return json + "}";
}

std::string manifest() {
  std::vector<KernelEntry> entries = kernel_registry();
  const auto less = [](const KernelEntry& a, const KernelEntry& b) {
    return std::pair<std::string_view, std::string_view>(a.domain, a.op_type) <
           std::pair<std::string_view, std::string_view>(b.domain, b.op_type);
  };
  std::sort(entries.begin(), entries.end(), less);
  for (size_t i = 1; i < entries.size(); ++i)
    if (!less(entries[i - 1], entries[i]))
      return error_json(to_text("two CPU kernels are registered for ", entries[i].domain, "::", entries[i].op_type));
  std::string json = "[";
  for (const KernelEntry& entry : entries) {
    InputTypes types;
    if (!InputTypes::parse(entry.types, types))
      return error_json(to_text("the CPU kernel of ", entry.op_type, " declares bad types: ", entry.types));
    append_json(json += json.size() > 1 ? ",{\"domain\":" : "{\"domain\":", entry.domain);
    append_json(json += ",\"op_type\":", entry.op_type);
    json += ",\"types\":" + types_json(types) + features_json(entry) + (entry.rare ? ",\"rare\":true}" : "}");
  }
  return json + "]";
}

}  // namespace
}  // namespace py_ort

const char* ort_kernel_manifest() {
  static const std::string json = py_ort::manifest();
  return json.c_str();
}
