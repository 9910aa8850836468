// Regular expressions in RE2's syntax, with the longest matches. A set of states moves over the text, so that a match
// needs time linear in its length.
#pragma once

#include <memory>
#include <vector>

#include "py_ort/status.h"

namespace py_ort {

class Regex {
 public:
  static Status compile(std::string_view pattern, Regex& out);
  bool full_match(std::string_view text) const { return longest(text, 0, kNothing) == text.size(); }
  // The first match at or after byte `from`: bytes [begin, end), as many as possible.
  bool find(std::string_view text, size_t from, size_t& begin, size_t& end) const;

  struct Range { uint32_t first, last; };
  // An instruction of the machine. `set`: one code point of the ranges (outside of them if negated), then the next
  // instruction.
  struct Instruction {
    enum class Kind : uint8_t { set, split, begin, end, word_boundary, no_word_boundary, match } kind;
    std::vector<Range> ranges;
    bool negated = false;
    size_t next = 0, other = 0;  // split: both are continued
  };

 private:
  static constexpr uint32_t kNothing = UINT32_MAX;  // before the first and after the last code point

  // The end of the longest match that begins at byte `at`, after code point `before`; npos if there is none.
  size_t longest(std::string_view text, size_t at, uint32_t before) const;
  void follow(size_t at, uint32_t before, uint32_t after, std::vector<bool>& seen, std::vector<size_t>& states) const;
  std::vector<Instruction> program_;
};

}  // namespace py_ort
