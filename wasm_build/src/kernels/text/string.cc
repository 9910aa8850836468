// StringConcat, StringSplit, StringNormalizer.
#include <algorithm>
#include <cwctype>

#include "kernels/shared/broadcast.h"
#include "py_ort/kernel.h"
#include "kernels/text/utf8.h"

namespace py_ort {
namespace {

struct StringConcat {
  Status operator()(KernelContext& context) const {
    const Tensor &a = *context.input(0), &b = *context.input(1);
    Broadcast broadcast;
    PY_ORT_TRY(Broadcast::make({&a.dims, &b.dims}, broadcast));
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, DType::string_, broadcast.dims, out));
    broadcast.for_each_row([&](const Broadcast::Offsets& offsets, int64_t at) {
      for (int64_t i = 0; i < broadcast.inner; ++i)
        out->mutable_strings()[at + i] =
            a.strings()[offsets[0] + i * broadcast.steps[0]] + b.strings()[offsets[1] + i * broadcast.steps[1]];
    });
    return {};
  }
};

class StringSplit {
 public:
  explicit StringSplit(const KernelInfo& info)
      : delimiter_(info.attributes.text("delimiter", "")), most_(info.attributes.integer("maxsplit", INT64_MAX)) {}
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    const int64_t count = in.count();
    std::vector<std::vector<std::string>> parts;
    size_t longest = 0;
    for (int64_t i = 0; i < count; ++i) {
      parts.push_back(delimiter_.empty() ? by_space(in.strings()[i]) : by_delimiter(in.strings()[i]));
      longest = std::max(longest, parts.back().size());
    }
    Dims dims = in.dims;
    dims.push_back(static_cast<int64_t>(longest));
    Tensor *out = nullptr, *lengths = nullptr;
    PY_ORT_TRY(context.output(0, DType::string_, std::move(dims), out));
    PY_ORT_TRY(context.output(1, DType::int64, in.dims, lengths));
    for (int64_t i = 0; i < count; ++i) {
      lengths->mutable_data<int64_t>()[i] = static_cast<int64_t>(parts[i].size());
      std::move(parts[i].begin(), parts[i].end(), out->mutable_strings() + i * static_cast<int64_t>(longest));
    }
    return {};
  }

 private:
  std::vector<std::string> by_delimiter(const std::string& text) const {
    std::vector<std::string> parts;
    if (text.empty()) return parts;
    size_t at = 0;
    for (int64_t splits = 0; splits < most_; ++splits) {
      const size_t end = text.find(delimiter_, at);
      if (end == std::string::npos) break;
      parts.push_back(text.substr(at, end - at));
      at = end + delimiter_.size();
    }
    parts.push_back(text.substr(at));
    return parts;
  }
  // Splits at runs of white space, like Python's split(), without empty strings at the ends.
  std::vector<std::string> by_space(const std::string& text) const {
    static constexpr const char* space = " \t\n\r\f\v";
    std::vector<std::string> parts;
    size_t at = text.find_first_not_of(space);
    while (at != std::string::npos) {
      const size_t end = static_cast<int64_t>(parts.size()) < most_ ? text.find_first_of(space, at) : std::string::npos;
      if (end == std::string::npos) {
        parts.push_back(text.substr(at, text.find_last_not_of(space) + 1 - at));
        break;
      }
      parts.push_back(text.substr(at, end - at));
      at = text.find_first_not_of(space, end);
    }
    return parts;
  }
  std::string delimiter_;
  int64_t most_;
};

enum class Case : uint8_t { none, lower, upper };
std::string change_case(const std::string& text, Case to) {
  if (to == Case::none) return text;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const uint32_t code = next_code_point(text, at);
    append_code_point(out, to == Case::lower ? std::towlower(code) : std::towupper(code));
  }
  return out;
}

// Removes stop words and changes case. The attribute `locale` is ignored: case mapping is Unicode's.
class StringNormalizer {
 public:
  static Status make(const KernelInfo& info, StringNormalizer& out) {
    const std::string action = info.attributes.text("case_change_action", "NONE");
    out.case_ = action == "LOWER" ? Case::lower : action == "UPPER" ? Case::upper : Case::none;
    // If case does not matter, strings are compared in one case.
    out.compared_in_ = info.attributes.integer("is_case_sensitive", 0) != 0 ? Case::none : Case::lower;
    for (const std::string& word : info.attributes.texts("stopwords"))
      out.stop_words_.push_back(change_case(word, out.compared_in_));
    const bool known = action == "LOWER" || action == "UPPER" || action == "NONE";
    return known ? Status{}
                 : invalid_graph("StringNormalizer's case_change_action must be LOWER, UPPER or NONE, not '", action,
                                 "'");
  }
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    PY_ORT_ENSURE(in.rank() == 1 || (in.rank() == 2 && in.dim(0) == 1),
                  "StringNormalizer needs shape [C] or [1, C], got ", in.dims);
    std::vector<std::string> kept;
    for (int64_t i = 0; i < in.count(); ++i) {
      const std::string& word = in.strings()[i];
      const std::string compared = change_case(word, compared_in_);
      if (std::find(stop_words_.begin(), stop_words_.end(), compared) == stop_words_.end())
        kept.push_back(change_case(word, case_));
    }
    if (kept.empty()) kept.emplace_back();  // never an empty tensor
    Dims dims = in.dims;
    dims.back() = static_cast<int64_t>(kept.size());
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, DType::string_, std::move(dims), out));
    std::move(kept.begin(), kept.end(), out->mutable_strings());
    return {};
  }

 private:
  Case case_ = Case::none, compared_in_ = Case::none;
  std::vector<std::string> stop_words_;
};

PY_ORT_KERNEL("", "StringConcat", "string", StringConcat);
PY_ORT_KERNEL("", "StringSplit", "string", StringSplit);
PY_ORT_KERNEL("", "StringNormalizer", "string", StringNormalizer);

}  // namespace
}  // namespace py_ort
