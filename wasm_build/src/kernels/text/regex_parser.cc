#include "kernels/text/regex_parser.h"

#include <algorithm>
#include <cwctype>

#include "kernels/text/utf8.h"

namespace py_ort {
namespace {

using Kind = Regex::Instruction::Kind;
using Range = Regex::Range;

constexpr uint32_t kLast = 0x10ffff;
constexpr int kMostRepeats = 1000;  // RE2's limit

bool named_class(char name, std::vector<Range>& out) {
  switch (name) {
    case 'd': out = {{'0', '9'}}; return true;
    case 'w': out = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}; return true;
    case 's': out = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}}; return true;
    default: return false;
  }
}
bool posix_class(std::string_view name, std::vector<Range>& out) {
  static const std::pair<std::string_view, std::vector<Range>> classes[] = {
      {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
      {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
      {"ascii", {{0, 127}}},
      {"blank", {{'\t', '\t'}, {' ', ' '}}},
      {"cntrl", {{0, 31}, {127, 127}}},
      {"digit", {{'0', '9'}}},
      {"graph", {{'!', '~'}}},
      {"lower", {{'a', 'z'}}},
      {"print", {{' ', '~'}}},
      {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
      {"space", {{'\t', '\r'}, {' ', ' '}}},
      {"upper", {{'A', 'Z'}}},
      {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
      {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}}};
  for (const auto& [known, ranges] : classes)
    if (known == name) return out = ranges, true;
  return false;
}
void add_complement(std::vector<Range> ranges, std::vector<Range>& out) {
  std::sort(ranges.begin(), ranges.end(), [](Range a, Range b) { return a.first < b.first; });
  uint32_t next = 0;
  for (const Range range : ranges) {
    if (range.first > next) out.push_back({next, range.first - 1});
    next = std::max(next, range.last + 1);
  }
  if (next <= kLast) out.push_back({next, kLast});
}

class Parser {
 public:
  explicit Parser(std::string_view pattern) : pattern_(pattern) {}
  Status parse(RegexNode& out) {
    PY_ORT_TRY(choice(out));
    return at_ == pattern_.size() ? Status{} : broken("unmatched )");
  }

 private:
  struct Flags { bool ignore_case = false, dot_all = false, multi_line = false; };

  bool more() const { return at_ < pattern_.size(); }
  bool take(std::string_view text) {
    if (pattern_.substr(at_, text.size()) != text) return false;
    at_ += text.size();
    return true;
  }
  template <class... Parts>
  Status broken(const Parts&... parts) const {
    return invalid_graph("the regular expression '", pattern_, "' is broken at ", at_, ": ", to_text(parts...));
  }

  Status choice(RegexNode& out) {
    const Flags flags = flags_;  // flags set inside a group end with it
    out.type = RegexNode::Type::choice;
    do { PY_ORT_TRY(sequence(out.children.emplace_back())); } while (take("|"));
    flags_ = flags;
    return {};
  }
  Status sequence(RegexNode& out) {
    while (more() && pattern_[at_] != '|' && pattern_[at_] != ')') {
      RegexNode item;
      bool nothing = false;
      PY_ORT_TRY(atom(item, nothing));
      if (nothing) continue;
      PY_ORT_TRY(repeats(item));
      out.children.push_back(std::move(item));
    }
    return {};
  }
  Status repeats(RegexNode& item) {
    for (;;) {
      int least = 0, most = -1;
      if (take("*")) {
      } else if (take("+")) {
        least = 1;
      } else if (take("?")) {
        most = 1;
      } else if (!counted(least, most)) {
        return {};
      }
      if (least > kMostRepeats || most > kMostRepeats || (most >= 0 && most < least))
        return broken("a repetition of ", least, " to ", most);
      (void)take("?");  // fewest first: makes no difference to the longest match
      RegexNode repeat;
      repeat.type = RegexNode::Type::repeat;
      repeat.least = least;
      repeat.most = most;
      repeat.children.push_back(std::move(item));
      item = std::move(repeat);
    }
  }
  // {n}, {n,} or {n,m}; anything else is a literal brace.
  bool counted(int& least, int& most) {
    size_t at = at_;
    const auto number = [&](int& out) {
      const size_t start = at;
      for (out = 0; at < pattern_.size() && pattern_[at] >= '0' && pattern_[at] <= '9'; ++at)
        out = std::min(out * 10 + (pattern_[at] - '0'), kMostRepeats + 1);
      return at > start;
    };
    if (at >= pattern_.size() || pattern_[at++] != '{' || !number(least)) return false;
    most = least;
    if (at < pattern_.size() && pattern_[at] == ',') {
      ++at;
      if (!number(most)) most = -1;
    }
    if (at >= pattern_.size() || pattern_[at] != '}') return false;
    at_ = at + 1;
    return true;
  }
  Status atom(RegexNode& out, bool& nothing) {
    if (take("(")) return group(out, nothing);
    if (take("[")) return bracket(out);
    if (take(".")) return set(out, {flags_.dot_all ? std::vector<Range>{} : std::vector<Range>{{'\n', '\n'}}, true});
    if (take("^") || take("\\A")) return assertion(out, Kind::begin);
    if (take("$") || take("\\z")) return assertion(out, Kind::end);
    if (take("\\b")) return assertion(out, Kind::word_boundary);
    if (take("\\B")) return assertion(out, Kind::no_word_boundary);
    if (pattern_[at_] == '*' || pattern_[at_] == '+' || pattern_[at_] == '?') return broken("nothing to repeat");
    RegexSet one;
    PY_ORT_TRY(character(one.ranges));
    return set(out, std::move(one));
  }
  Status assertion(RegexNode& out, Kind kind) {
    if (flags_.multi_line && (kind == Kind::begin || kind == Kind::end))
      return not_implemented("the regular expression '", pattern_, "' uses (?m), which is not supported");
    out.type = RegexNode::Type::assertion;
    out.assertion = kind;
    return {};
  }
  Status set(RegexNode& out, RegexSet set) {
    if (flags_.ignore_case) {
      std::vector<Range> both;
      for (const Range range : set.ranges)
        for (uint32_t c = range.first; c <= std::min(range.last, 0x24ffu); ++c) {  // no cases beyond this bound matter
          both.push_back({static_cast<uint32_t>(std::towlower(c)), static_cast<uint32_t>(std::towlower(c))});
          both.push_back({static_cast<uint32_t>(std::towupper(c)), static_cast<uint32_t>(std::towupper(c))});
        }
      set.ranges.insert(set.ranges.end(), both.begin(), both.end());
    }
    out.type = RegexNode::Type::set;
    out.set = std::move(set);
    return {};
  }
  Status group(RegexNode& out, bool& nothing) {
    const Flags before = flags_;
    if (take("?P<") || take("?<")) {
      const size_t end = pattern_.find('>', at_);
      if (end == std::string_view::npos) return broken("a group's name does not end");
      at_ = end + 1;
    } else if (take("?")) {
      bool on = true;
      for (; more() && pattern_[at_] != ':' && pattern_[at_] != ')'; ++at_) {
        switch (pattern_[at_]) {
          case '-': on = false; break;
          case 'i': flags_.ignore_case = on; break;
          case 's': flags_.dot_all = on; break;
          case 'm': flags_.multi_line = on; break;
          case 'U': break;
          default: return broken("an unknown flag, '", pattern_.substr(at_, 1), "'");
        }
      }
      if (take(")")) {  // for the rest of the enclosing group
        nothing = true;
        return {};
      }
      if (!take(":")) return broken("a group does not end");
    }
    PY_ORT_TRY(choice(out));
    flags_ = before;
    return take(")") ? Status{} : broken("a group does not end");
  }
  // One character, or a class such as \d, as ranges.
  Status character(std::vector<Range>& out) {
    if (!take("\\")) {
      const uint32_t code = next_code_point(pattern_, at_);
      out.push_back({code, code});
      return {};
    }
    if (!more()) return broken("a backslash at the end");
    const char c = pattern_[at_];
    std::vector<Range> ranges;
    if (named_class(static_cast<char>(c | 0x20), ranges)) {
      ++at_;
      if (c & 0x20) out.insert(out.end(), ranges.begin(), ranges.end());
      else add_complement(ranges, out);
      return {};
    }
    uint32_t code = 0;
    if (c == 'x') {
      ++at_;
      const bool braces = take("{");
      size_t digits = 0;
      for (; more() && std::isxdigit(static_cast<unsigned char>(pattern_[at_])) && (braces || digits < 2);
           ++at_, ++digits)
        code = std::min<uint32_t>(
            code * 16 +
                static_cast<uint32_t>(pattern_[at_] <= '9' ? pattern_[at_] - '0' : (pattern_[at_] | 0x20) - 'a' + 10),
            kLast + 1);
      if (digits == 0 || code > kLast || (braces && !take("}"))) return broken("\\x without a character's number");
    } else if (static constexpr std::string_view letters = "tnrfva", codes = "\t\n\r\f\v\a";
               letters.find(c) != letters.npos) {
      code = static_cast<uint8_t>(codes[letters.find(c)]);
      ++at_;
    } else if (std::isalnum(static_cast<unsigned char>(c))) {
      return not_implemented("the regular expression '", pattern_, "' uses \\", pattern_.substr(at_, 1),
                             ", which is not supported");
    } else {
      code = next_code_point(pattern_, at_);
    }
    out.push_back({code, code});
    return {};
  }
  Status bracket(RegexNode& out) {
    RegexSet result;
    result.negated = take("^");
    for (bool first = true; first || !more() || pattern_[at_] != ']'; first = false) {
      if (!more()) return broken("a class does not end");
      if (take("[:")) {
        const bool negated = take("^");
        const size_t end = pattern_.find(":]", at_);
        std::vector<Range> ranges;
        if (end == std::string_view::npos || !posix_class(pattern_.substr(at_, end - at_), ranges))
          return broken("an unknown class");
        at_ = end + 2;
        if (negated) add_complement(ranges, result.ranges);
        else result.ranges.insert(result.ranges.end(), ranges.begin(), ranges.end());
        continue;
      }
      std::vector<Range> low;
      PY_ORT_TRY(character(low));
      const bool single = low.size() == 1 && low[0].first == low[0].last;
      if (single && at_ + 1 < pattern_.size() && pattern_[at_] == '-' && pattern_[at_ + 1] != ']') {
        ++at_;
        std::vector<Range> high;
        PY_ORT_TRY(character(high));
        if (high.size() != 1 || high[0].first < low[0].first) return broken("a range that ends before it starts");
        low[0].last = high[0].first;
      }
      result.ranges.insert(result.ranges.end(), low.begin(), low.end());
    }
    ++at_;
    return set(out, std::move(result));
  }

  std::string_view pattern_;
  size_t at_ = 0;
  Flags flags_;
};

}  // namespace

Status parse_regex(std::string_view pattern, RegexNode& out) { return Parser(pattern).parse(out); }

}  // namespace py_ort
