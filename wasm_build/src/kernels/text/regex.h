// Regular expressions in RE2's syntax, for the longest matches: a set of states moves over the text, so the time of one
// is linear in its length.
#pragma once

#include <memory>
#include <vector>

#include "py_ort/status.h"

namespace py_ort {

class Regex {
 public:
  static Status compile(std::string_view pattern, Regex& out);
  bool full_match(std::string_view text) const { return longest(text, 0, kNothing) == text.size(); }
  // The first place at or after byte `from` where the expression matches something: bytes [begin, end), as many as can
  // be.
  bool find(std::string_view text, size_t from, size_t& begin, size_t& end) const;

  struct Range { uint32_t first, last; };
  // An instruction of the machine. `set`: one code point of the ranges (not of them when negated), then go on behind
  // it.
  struct Instruction {
    enum class Kind : uint8_t { set, split, begin, end, word_boundary, no_word_boundary, match } kind;
    std::vector<Range> ranges;
    bool negated = false;
    size_t next = 0, other = 0;  // split: both ways
  };

 private:
  static constexpr uint32_t kNothing = UINT32_MAX;  // before the first and after the last code point

  // Where the longest match that begins at byte `at`, behind code point `before`, ends; npos when there is none.
  size_t longest(std::string_view text, size_t at, uint32_t before) const;
  void follow(size_t at, uint32_t before, uint32_t after, std::vector<bool>& seen, std::vector<size_t>& states) const;
  std::vector<Instruction> program_;
};

}  // namespace py_ort
