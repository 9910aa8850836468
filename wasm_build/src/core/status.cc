#include "py_ort/status.h"

#include "py_ort/decimal.h"

namespace py_ort {

struct Status::Error {
  ErrorCode code;
  std::string message;
};

Status::Status(ErrorCode code, std::string message) : error_(new Error{code, std::move(message)}) {}
void Status::forget() { delete error_; }
ErrorCode Status::code() const { return error_ ? error_->code : ErrorCode::ok; }
const std::string& Status::message() const { return error_->message; }

void TextPart::append_to(std::string& out) const {
  switch (kind_) {
    case Kind::literal: out += pointer_; return;
    case Kind::text: out.append(pointer_, length_); return;
    case Kind::integer: out += std::to_string(integer_); return;
    case Kind::natural: out += std::to_string(static_cast<uint64_t>(integer_)); return;
    case Kind::real: out += to_text(real_, 8); return;
    case Kind::range: items_.append(out, items_.range); return;
  }
}

std::string text_of(std::span<const TextPart> parts) {
  std::string out;
  for (const TextPart& part : parts) part.append_to(out);
  return out;
}

Status failure_of(ErrorCode code, std::span<const TextPart> parts) { return {code, text_of(parts)}; }

}  // namespace py_ort
