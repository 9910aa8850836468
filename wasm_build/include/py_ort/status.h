// Errors without exceptions: every call that can fail returns a Status.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "py_ort/gen/types_generated.h"

namespace py_ort {

using schema::gen::ErrorCode;

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}
  bool ok() const { return code_ == ErrorCode::ok; }
  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  ErrorCode code_ = ErrorCode::ok;
  std::string message_;
};

// to_text("pads ", 3, " of ", name): a message from its parts. Anything with std::to_string, strings, and ranges of
// those.
inline void append_text(std::string& out, std::string_view text) { out += text; }
inline void append_text(std::string& out, const char* text) { out += text; }
template <class T>
void append_text(std::string& out, const T& part) {
  if constexpr (std::is_arithmetic_v<T>) {
    out += std::to_string(part);
  } else if constexpr (std::is_convertible_v<T, std::string_view>) {
    out += std::string_view(part);
  } else {
    out += '[';
    bool first = true;
    for (const auto& item : part) {
      if (!first) out += ',';
      first = false;
      append_text(out, item);
    }
    out += ']';
  }
}
template <class... Parts>
std::string to_text(const Parts&... parts) {
  std::string out;
  (append_text(out, parts), ...);
  return out;
}

template <class... Parts>
Status invalid_argument(const Parts&... parts) {
  return {ErrorCode::invalid_argument, to_text(parts...)};
}
template <class... Parts>
Status invalid_graph(const Parts&... parts) {
  return {ErrorCode::invalid_graph, to_text(parts...)};
}
template <class... Parts>
Status not_implemented(const Parts&... parts) {
  return {ErrorCode::not_implemented, to_text(parts...)};
}
template <class... Parts>
Status runtime_error(const Parts&... parts) {
  return {ErrorCode::runtime_exception, to_text(parts...)};
}
template <class... Parts>
Status out_of_memory(const Parts&... parts) {
  return {ErrorCode::out_of_memory, to_text(parts...)};
}

}  // namespace py_ort

// Returns from the function when `expression` is a failed Status.
#define PY_ORT_TRY(expression)                                                  \
  do {                                                                          \
    if (::py_ort::Status status_ = (expression); !status_.ok()) return status_; \
  } while (0)

// Returns a runtime error made of the further arguments when `condition` does not hold.
#define PY_ORT_ENSURE(condition, ...)                              \
  do {                                                             \
    if (!(condition)) return ::py_ort::runtime_error(__VA_ARGS__); \
  } while (0)
