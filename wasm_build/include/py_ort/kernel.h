// The interface of a CPU kernel. docs/cpu_kernels.md explains it with an example.
#pragma once

#include <concepts>

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "py_ort/gen/dialect.h"
#include "py_ort/gen/plan_generated.h"
#include "py_ort/status.h"
#include "py_ort/tensor.h"

namespace py_ort {

// A node's attributes, in the form that Python's lowering produces. Callers supply the defaults.
class Attributes {
 public:
  explicit Attributes(const schema::gen::Attributes* table = nullptr) : table_(table) {}
  bool has(std::string_view name) const { return find(name) != nullptr; }
  int64_t integer(std::string_view name, int64_t otherwise) const;
  float number(std::string_view name, float otherwise) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  // A view of a text; valid as long as the plan and `otherwise` are.
  std::string_view view(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> integers(std::string_view name, std::vector<int64_t> otherwise = {}) const;
  std::vector<float> numbers(std::string_view name, std::vector<float> otherwise = {}) const;
  std::vector<std::string> texts(std::string_view name) const;
  std::optional<Tensor> tensor(std::string_view name) const;

 private:
  const schema::gen::Attribute* find(std::string_view name) const;
  const schema::gen::Attributes* table_;
};

// Facts about a node when its kernel is made, once per session.
struct KernelInfo {
  std::string_view op_type, domain, name;
  int since_version = 0;
  Attributes attributes;
  size_t input_count = 0, output_count = 0;
  std::vector<bool> wanted_outputs;
};

// An input that may be omitted: then it is null. Reading a missing input ends the kernel with an error. A kernel need
// not check for inputs that every valid node has.
class Input {
 public:
  Input(const Tensor* tensor) : tensor_(tensor) {}
  operator const Tensor*() const { return tensor_; }
  const Tensor& operator*() const { return tensor_ ? *tensor_ : missing(); }
  const Tensor* operator->() const { return &**this; }

 private:
  [[noreturn]] static const Tensor& missing();
  const Tensor* tensor_;
};
struct MissingInput {};  // thrown

// A node's inputs and outputs in one run. Inputs are CPU tensors, unless the operator declared them as shape inputs.
class KernelContext {
 public:
  // `ending`: for each input, true if no later node needs it; empty: all false.
  KernelContext(std::span<const Value* const> inputs, std::span<Value* const> outputs,
                std::span<const uint8_t> ending = {})
      : inputs_(inputs), outputs_(outputs), ending_(ending) {}
  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return outputs_.size(); }
  // Null if omitted, or not a tensor.
  Input input(size_t i) const {
    const Value* value = input_value(i);
    return value && value->kind == Value::Kind::tensor ? &value->tensor : nullptr;
  }
  const Value* input_value(size_t i) const { return i < inputs_.size() ? inputs_[i] : nullptr; }
  bool wants(size_t i) const { return i < outputs_.size() && outputs_[i]; }
  // Makes output i. An unwanted output is made too, and dropped. `out` stays valid until the kernel returns. `over`:
  // inputs whose memory the output may reuse, if they end here and have its dtype and size. Allowed only if the kernel
  // reads each element of such an input before it writes the element of the same place, and not again.
  Status output(size_t i, DType dtype, Dims dims, Tensor*& out, std::initializer_list<size_t> over = {});
  // Output i is an existing tensor (a view, or an input passed through): no copy.
  void output(size_t i, Tensor tensor);
  void output_value(size_t i, Value value);

 private:
  std::span<const Value* const> inputs_;
  bool ends(size_t i) const;

  std::span<Value* const> outputs_;
  std::span<const uint8_t> ending_;
  std::vector<std::unique_ptr<Value>> dropped_;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual Status run(KernelContext& context) const = 0;
};

// A registry entry. `types`: the accepted dtypes of each input, inputs separated by ';', dtypes by ',' or "*" for all.
// The last entry applies to all further inputs. Inputs whose dtypes begin with "=" share one dtype; "~": only dtype and
// dims are read. Python reads these from the manifest to place nodes.
struct KernelEntry {
  const char* domain;
  const char* op_type;
  const char* types;
  Status (*make)(const KernelInfo& info, std::unique_ptr<Kernel>& out);
  bool may_run_microkernels;
  bool rare;  // its code is in rare_kernels.wasm
};
// For the kernels of a file, unless it includes microkernels.h, directly or indirectly.
constexpr bool may_run_microkernels(...) { return false; }
// Defined by the build (cmake/rare_kernels.cmake) for the files whose code it moves to rare_kernels.wasm.
#ifdef PY_ORT_RARE
inline constexpr bool kRareKernels = true;
#else
inline constexpr bool kRareKernels = false;
#endif
std::vector<KernelEntry>& kernel_registry();
const KernelEntry* find_kernel(std::string_view domain, std::string_view op_type);

namespace detail {
template <class K>
struct KernelOf final : Kernel {
  KernelOf() = default;
  explicit KernelOf(const KernelInfo& info) : k(info) {}
  Status run(KernelContext& context) const override { return k(context); }
  K k;
};
struct Registration {
  explicit Registration(KernelEntry entry) { kernel_registry().push_back(entry); }
};
template <class K>
Status make_kernel(const KernelInfo& info, std::unique_ptr<Kernel>& out) {
  if constexpr (requires(K k) {
                  { K::make(info, k) } -> std::same_as<Status>;
                }) {
    auto made = std::make_unique<KernelOf<K>>();  // stays there: moving it would add code to each download
    PY_ORT_TRY(K::make(info, made->k));
    out = std::move(made);
  } else if constexpr (std::is_constructible_v<K, const KernelInfo&>) {
    out = std::make_unique<KernelOf<K>>(info);
  } else {
    out = std::make_unique<KernelOf<K>>();
  }
  return {};
}
}  // namespace detail

#define PY_ORT_CONCAT_(a, b) a##b
#define PY_ORT_CONCAT(a, b) PY_ORT_CONCAT_(a, b)
// PY_ORT_KERNEL("", "Softmax", "float32,float16", Softmax): Softmax is callable with (KernelContext&) const -> Status
// and is made from (const KernelInfo&), from `static Status make(const KernelInfo&, Softmax&)` if making it can fail,
// or from nothing.
#define PY_ORT_KERNEL(domain, op_type, types, ...)                                                      \
  static const ::py_ort::detail::Registration PY_ORT_CONCAT(                                            \
      registration_, __COUNTER__)({domain, op_type, types, &::py_ort::detail::make_kernel<__VA_ARGS__>, \
                                   ::py_ort::may_run_microkernels(0), ::py_ort::kRareKernels})

inline constexpr const char* kNhwcDomain = dialect::kNhwcDomain;
inline constexpr const char* kMicrosoftDomain = "com.microsoft";

}  // namespace py_ort
