// Errors without exceptions: every call that can fail returns a Status.
#pragma once

#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "py_ort/gen/types_generated.h"

namespace py_ort {

using schema::gen::ErrorCode;

// One word, which functions return in a register: a thousand places test whether it is null.
class [[nodiscard]] [[clang::trivial_abi]] Status {
 public:
  Status() = default;
  Status(ErrorCode code, std::string message);
  Status(Status&& other) noexcept : error_(std::exchange(other.error_, nullptr)) {}
  Status& operator=(Status&& other) noexcept {
    std::swap(error_, other.error_);
    return *this;
  }
  ~Status() {
    if (error_) forget();
  }
  bool ok() const { return !error_; }
  ErrorCode code() const;
  const std::string& message() const;  // of an error

 private:
  struct Error;
  void forget();
  Error* error_ = nullptr;
};

// A part of a message: text, a number, or a range of numbers. It is read before the caller's statement ends. Parts have
// one C++ type, so that messages are data and need no code of their own.
class TextPart {
 public:
  TextPart(const char* text) : kind_(Kind::literal), pointer_(text) {}
  TextPart(std::string_view text)
      : kind_(Kind::text), length_(static_cast<uint32_t>(text.size())), pointer_(text.data()) {}
  template <std::integral T>
  TextPart(T number)
      : kind_(std::is_signed_v<T> ? Kind::integer : Kind::natural), integer_(static_cast<int64_t>(number)) {}
  template <std::floating_point T>
  TextPart(T number) : kind_(Kind::real), real_(number) {}
  template <class Range>
  TextPart(const Range& range) {
    if constexpr (std::is_convertible_v<const Range&, std::string_view>) {
      *this = TextPart(std::string_view(range));
    } else {
      kind_ = Kind::range;
      items_ = {&range, [](std::string& out, const void* range) {
        out += '[';
        bool first = true;
        for (const auto& item : *static_cast<const Range*>(range)) {
          if (!first) out += ',';
          first = false;
          TextPart(item).append_to(out);
        }
        out += ']';
      }};
    }
  }

  void append_to(std::string& out) const;

 private:
  struct Items {
    const void* range;
    void (*append)(std::string& out, const void* range);
  };
  enum class Kind : uint8_t { literal, text, integer, natural, real, range };
  Kind kind_;
  uint32_t length_;
  union {
    const char* pointer_;
    int64_t integer_;
    double real_;
    Items items_;
  };
};

std::string text_of(std::span<const TextPart> parts);
[[gnu::cold]] Status failure_of(ErrorCode code, std::span<const TextPart> parts);

// to_text("pads ", 3, " of ", name): a message from its parts.
template <class... Parts>
std::string to_text(const Parts&... parts) {
  const TextPart all[] = {TextPart(parts)...};
  return text_of(all);
}

template <ErrorCode code, class... Parts>
Status failure(const Parts&... parts) {
  const TextPart all[] = {TextPart(parts)...};
  return failure_of(code, all);
}
template <class... Parts>
Status invalid_argument(const Parts&... parts) {
  return failure<ErrorCode::invalid_argument>(parts...);
}
template <class... Parts>
Status invalid_graph(const Parts&... parts) {
  return failure<ErrorCode::invalid_graph>(parts...);
}
template <class... Parts>
Status not_implemented(const Parts&... parts) {
  return failure<ErrorCode::not_implemented>(parts...);
}
template <class... Parts>
Status runtime_error(const Parts&... parts) {
  return failure<ErrorCode::runtime_exception>(parts...);
}
template <class... Parts>
Status out_of_memory(const Parts&... parts) {
  return failure<ErrorCode::out_of_memory>(parts...);
}

}  // namespace py_ort

// Returns from the function if `expression` is a failed Status.
#define PY_ORT_TRY(expression)                                                  \
  do {                                                                          \
    if (::py_ort::Status status_ = (expression); !status_.ok()) return status_; \
  } while (0)

// Returns a runtime error with the text of the further arguments if `condition` is false.
#define PY_ORT_ENSURE(condition, ...)                              \
  do {                                                             \
    if (!(condition)) return ::py_ort::runtime_error(__VA_ARGS__); \
  } while (0)
