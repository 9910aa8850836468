#include "kernels/text/regex.h"

#include <algorithm>

#include "kernels/text/regex_parser.h"
#include "kernels/text/utf8.h"

namespace py_ort {
namespace {

using Instruction = Regex::Instruction;
using Kind = Instruction::Kind;
using Range = Regex::Range;

// Appends the instructions of `node`; its continuation follows them.
void emit(const RegexNode& node, std::vector<Instruction>& program) {
  const auto split = [&] {
    program.push_back({Kind::split, {}, false, program.size() + 1, program.size() + 1});
    return program.size() - 1;
  };
  switch (node.type) {
    case RegexNode::Type::set:
      program.push_back({Kind::set, node.set.ranges, node.set.negated, program.size() + 1, 0});
      break;
    case RegexNode::Type::assertion: program.push_back({node.assertion, {}, false, program.size() + 1, 0}); break;
    case RegexNode::Type::sequence:
      for (const RegexNode& child : node.children) emit(child, program);
      break;
    case RegexNode::Type::choice: {
      std::vector<size_t> jumps;
      for (size_t i = 0; i < node.children.size(); ++i) {
        const bool last = i + 1 == node.children.size();
        const size_t start = last ? 0 : split();
        emit(node.children[i], program);
        if (last) break;
        jumps.push_back(split());
        program[start].other = program.size();
      }
      for (const size_t jump : jumps) program[jump].next = program[jump].other = program.size();
      break;
    }
    case RegexNode::Type::repeat:
      for (int i = 0; i < node.least; ++i) emit(node.children[0], program);
      if (node.most < 0) {
        const size_t start = split();
        emit(node.children[0], program);
        const size_t back = split();
        program[back].next = program[back].other = start;
        program[start].other = program.size();
      } else {
        std::vector<size_t> starts;
        for (int i = node.least; i < node.most; ++i) {
          starts.push_back(split());
          emit(node.children[0], program);
        }
        for (const size_t start : starts) program[start].other = program.size();
      }
      break;
  }
}

bool is_word(uint32_t c) { return c == '_' || (c < 128 && std::isalnum(static_cast<int>(c))); }

}  // namespace

Status Regex::compile(std::string_view pattern, Regex& out) {
  RegexNode root;
  PY_ORT_TRY(parse_regex(pattern, root));
  out.program_.clear();
  emit(root, out.program_);
  out.program_.push_back({Kind::match, {}, false, 0, 0});
  return {};
}

void Regex::follow(size_t at, uint32_t before, uint32_t after, std::vector<bool>& seen,
                   std::vector<size_t>& states) const {
  std::vector<size_t> open{at};
  while (!open.empty()) {
    const size_t here = open.back();
    open.pop_back();
    if (seen[here]) continue;
    seen[here] = true;
    const Instruction& instruction = program_[here];
    const bool boundary = is_word(before) != is_word(after);
    switch (instruction.kind) {
      case Kind::set:
      case Kind::match: states.push_back(here); break;
      case Kind::split: open.insert(open.end(), {instruction.next, instruction.other}); break;
      case Kind::begin:
        if (before == kNothing) open.push_back(instruction.next);
        break;
      case Kind::end:
        if (after == kNothing) open.push_back(instruction.next);
        break;
      case Kind::word_boundary:
        if (boundary) open.push_back(instruction.next);
        break;
      case Kind::no_word_boundary:
        if (!boundary) open.push_back(instruction.next);
        break;
    }
  }
}

size_t Regex::longest(std::string_view text, size_t at, uint32_t before) const {
  size_t found = std::string_view::npos;
  std::vector<bool> seen(program_.size());
  std::vector<size_t> states, reached;
  size_t behind = at;  // `current`, which begins at `at`
  const auto next = [&] { return behind < text.size() ? next_code_point(text, behind) : kNothing; };
  uint32_t current = next();
  follow(0, before, current, seen, states);
  while (!states.empty()) {
    if (std::any_of(states.begin(), states.end(), [&](size_t state) { return program_[state].kind == Kind::match; }))
      found = at;
    if (current == kNothing) break;
    at = behind;
    const uint32_t after = next();
    std::fill(seen.begin(), seen.end(), false);
    reached.clear();
    for (const size_t state : states) {
      const Instruction& instruction = program_[state];
      if (instruction.kind != Kind::set) continue;
      const bool inside = std::any_of(instruction.ranges.begin(), instruction.ranges.end(),
                                      [&](Range r) { return current >= r.first && current <= r.last; });
      if (inside != instruction.negated) follow(instruction.next, current, after, seen, reached);
    }
    states.swap(reached);
    current = after;
  }
  return found;
}

bool Regex::find(std::string_view text, size_t from, size_t& begin, size_t& end) const {
  uint32_t before = kNothing;
  if (from > 0) {
    size_t at = from - 1;
    while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80) --at;
    before = next_code_point(text, at);
  }
  for (size_t at = from; at < text.size();) {
    const size_t stop = longest(text, at, before);
    if (stop != std::string_view::npos && stop > at) {
      begin = at;
      end = stop;
      return true;
    }
    before = next_code_point(text, at);
  }
  return false;
}

}  // namespace py_ort
