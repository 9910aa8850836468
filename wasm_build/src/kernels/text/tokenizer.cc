// com.microsoft Tokenizer: the tokens of each string, padded to equal numbers.
#include "py_ort/kernel.h"
#include "kernels/text/regex.h"
#include "kernels/text/utf8.h"

namespace py_ort {
namespace {

using Tokens = std::vector<std::string_view>;

class Tokenizer {
 public:
  static Status make(const KernelInfo& info, Tokenizer& out) {
    const Attributes& a = info.attributes;
    out.mark_ = a.integer("mark", 0) != 0;
    out.padding_ = a.text("pad_value", "");
    out.least_ = a.integer("mincharnum", 1);
    const std::vector<std::string> separators = a.texts("separators");
    const std::string expression = a.text("tokenexp", "");
    if (out.least_ < 1) return invalid_graph("Tokenizer's mincharnum is ", out.least_, ", and must be positive");
    if (separators.empty() && expression.empty()) return invalid_graph("Tokenizer needs separators or tokenexp");
    if (separators.empty()) return Regex::compile(expression, out.expression_.emplace_back());
    if (separators == std::vector<std::string>{""}) return {};  // each character
    for (const std::string& separator : separators)
      PY_ORT_TRY(Regex::compile(separator, out.separators_.emplace_back()));
    return {};
  }

  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    PY_ORT_ENSURE(in.rank() == 1 || in.rank() == 2, "Tokenizer needs strings of shape [C] or [N, C], got ", in.dims);
    std::vector<Tokens> rows;
    size_t most = 0;
    for (int64_t i = 0; i < in.count(); ++i) {
      rows.push_back(tokens(in.strings()[i]));
      most = std::max(most, rows.back().size());
    }
    // Without any token there are no marks either.
    const auto width = static_cast<int64_t>(most ? most + (mark_ ? 2 : 0) : 0);
    Dims dims = in.dims;
    if (in.count() > 0) dims.push_back(width);
    else dims.back() = 0;
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, DType::string_, std::move(dims), out));
    if (width == 0) return {};
    std::string* to = out->mutable_strings();
    for (const Tokens& row : rows) {
      std::string* const end = to + width;
      if (mark_) *to++ = "\x02";
      for (const std::string_view token : row) *to++ = token;
      if (mark_) *to++ = "\x03";
      for (; to < end; ++to) *to = padding_;
    }
    return {};
  }

 private:
  Tokens tokens(std::string_view text) const {
    Tokens found;
    if (!expression_.empty()) found = matches(expression_[0], text);
    else if (!separators_.empty()) found = between(text);
    else found = characters(text);
    std::erase_if(found,
                  [&](std::string_view token) { return static_cast<int64_t>(characters(token).size()) < least_; });
    return found;
  }
  static Tokens characters(std::string_view text) {
    Tokens found;
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      next_code_point(text, at);
      found.push_back(text.substr(begin, at - begin));
    }
    return found;
  }
  static Tokens matches(const Regex& regex, std::string_view text) {
    Tokens found;
    size_t begin = 0, end = 0;
    while (regex.find(text, end, begin, end)) found.push_back(text.substr(begin, end - begin));
    return found;
  }
  // One separator after the other splits the results of the previous ones.
  Tokens between(std::string_view text) const {
    Tokens found{text};
    for (const Regex& separator : separators_) {
      Tokens parts;
      for (const std::string_view token : found) {
        size_t start = 0, begin = 0, end = 0;
        for (; separator.find(token, end, begin, end); start = end) parts.push_back(token.substr(start, begin - start));
        parts.push_back(token.substr(start));
      }
      found.swap(parts);
    }
    return found;
  }

  bool mark_ = false;
  int64_t least_ = 1;
  std::string padding_;
  std::vector<Regex> separators_, expression_;  // expression_ has at most one
};

PY_ORT_KERNEL(kMicrosoftDomain, "Tokenizer", "string", Tokenizer);

}  // namespace
}  // namespace py_ort
