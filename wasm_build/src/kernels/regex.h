// Regular expressions in RE2's syntax, for full matches: a set of states moves over the text, so the time is linear in its length.
#pragma once

#include <memory>
#include <vector>

#include "py_ort/status.h"

namespace py_ort {

class Regex {
 public:
  static Status compile(std::string_view pattern, Regex& out);
  bool full_match(std::string_view text) const;

  struct Range { uint32_t first, last; };
  // An instruction of the machine. `set`: one code point of the ranges (not of them when negated), then go on behind it.
  struct Instruction {
    enum class Kind : uint8_t { set, split, begin, end, word_boundary, no_word_boundary, match } kind;
    std::vector<Range> ranges;
    bool negated = false;
    size_t next = 0, other = 0;  // split: both ways
  };

 private:
  void follow(size_t at, uint32_t before, uint32_t after, std::vector<bool>& seen, std::vector<size_t>& states) const;
  std::vector<Instruction> program_;
};

}  // namespace py_ort
