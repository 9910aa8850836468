// A regular expression's text as a tree.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/text/regex.h"

namespace py_ort {

struct RegexSet {
  std::vector<Regex::Range> ranges;
  bool negated = false;
};
struct RegexNode {
  enum class Type : uint8_t { set, sequence, choice, repeat, assertion } type = Type::sequence;
  RegexSet set;
  Regex::Instruction::Kind assertion{};
  int least = 0, most = 0;  // most -1: any number
  std::vector<RegexNode> children;
};

// Errors name the byte of the pattern.
Status parse_regex(std::string_view pattern, RegexNode& out);

}  // namespace py_ort
