#include "py_ort/webgpu_provider_options.h"

#include <cstddef>
#include <cstring>
#include <vector>

#include "abi/error.h"

namespace py_ort {
namespace {

using Options = OrtWebGPUProviderOptions;

// The texts of an enumeration.
using Values = std::vector<std::string_view>;

enum class Kind { number, flag, choice, text };

struct Option {
  std::string_view key;
  size_t offset;
  Kind kind;
  Values values;
  std::string_view initial;

  // The number of the first value. An enumeration's 0 is its default, and a separate value only if the default has no
  // text.
  int32_t first() const { return kind == Kind::choice && !values[0].empty(); }
};

const std::vector<Option>& table() {
  static const std::vector<Option> options = {
#include "py_ort/gen/webgpu_option_rows_generated.h"
  };
  return options;
}

constexpr std::string_view kPrefix = "ep.webgpuexecutionprovider.";

std::string_view without_prefix(std::string_view key) {
  if (key.size() <= kPrefix.size()) return key;
  for (size_t i = 0; i < kPrefix.size(); ++i)
    if ((key[i] >= 'A' && key[i] <= 'Z' ? key[i] + ('a' - 'A') : key[i]) != kPrefix[i]) return key;
  return key.substr(kPrefix.size());
}

const Option* find(std::string_view key) {
  for (const Option& option : table())
    if (option.key == key) return &option;
  return nullptr;
}

std::string listed(const Values& values) {
  std::string text;
  for (std::string_view value : values) {
    if (value.empty()) continue;
    if (!text.empty()) text += ", ";
    text += value;
  }
  return text;
}

void* field(Options& options, const Option& option) { return reinterpret_cast<char*>(&options) + option.offset; }

void set_text(Options& options, const Option& option, std::string_view value) {
  auto& place = *static_cast<const char**>(field(options, option));
  delete[] place;
  char* copy = new char[value.size() + 1];
  std::memcpy(copy, value.data(), value.size());
  copy[value.size()] = 0;
  place = copy;
}

// -1: not in the enumeration.
int32_t number_of(const Option& option, std::string_view value) {
  if (option.kind != Kind::number) {
    for (size_t i = 0; i < option.values.size(); ++i)
      if (option.values[i] == value) return static_cast<int32_t>(i) + option.first();
    return -1;
  }
  int64_t number = 0;
  for (char c : value) {
    if (c < '0' || c > '9' || number > 100'000'000) return -1;
    number = number * 10 + (c - '0');
  }
  return value.empty() ? -1 : static_cast<int32_t>(number);
}

Status set(Options& options, std::string_view given, std::string_view value) {
  const Option* option = find(without_prefix(given));
  if (!option) {
    Values keys;
    for (const Option& known : table()) keys.push_back(known.key);
    return invalid_argument("the webgpu provider has no option \"", given, "\"; it has ", listed(keys));
  }
  if (option->kind == Kind::text) {
    set_text(options, *option, value);
    return {};
  }
  const int32_t number = number_of(*option, value);
  if (number < 0) {
    const std::string wanted =
        option->kind == Kind::number ? "a whole number from 0" : to_text("one of ", listed(option->values));
    return invalid_argument("option ", option->key, " of the webgpu provider is ", wanted, ", not \"", value, "\"");
  }
  *static_cast<int32_t*>(field(options, *option)) = number;
  return {};
}

std::string get(const Options& options, const Option& option) {
  const void* place = field(const_cast<Options&>(options), option);
  if (option.kind == Kind::text) {
    const char* text = *static_cast<const char* const*>(place);
    return text ? text : std::string(option.initial);
  }
  const int32_t number = *static_cast<const int32_t*>(place);
  if (option.kind == Kind::number) return std::to_string(number);
  const auto i = static_cast<size_t>(number - option.first());
  return std::string(i < option.values.size() ? option.values[i] : option.initial);
}

}  // namespace
}  // namespace py_ort

using namespace py_ort;

OrtWebGPUProviderOptions* ort_webgpu_options_create() { return new OrtWebGPUProviderOptions{}; }

int ort_webgpu_options_append(OrtWebGPUProviderOptions* options, const char* const* keys, const char* const* values,
                              size_t count) {
  Status status;
  for (size_t i = 0; i < count && status.ok(); ++i) status = set(*options, keys[i], values[i]);
  return settle(std::move(status));
}

const char* ort_webgpu_options_get(const OrtWebGPUProviderOptions* options, const char* key) {
  static std::string value;
  const Option* option = find(without_prefix(key));
  if (!option) return nullptr;
  value = get(*options, *option);
  return value.c_str();
}

void ort_webgpu_options_release(OrtWebGPUProviderOptions* options) {
  if (!options) return;
  delete[] options->force_cpu_node_names;
  delete options;
}
