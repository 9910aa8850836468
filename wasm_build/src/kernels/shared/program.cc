#include "kernels/shared/program.h"

#include <algorithm>
#include <cstdlib>

#include "py_ort/decimal.h"

namespace py_ort {

namespace {
constexpr size_t kMostNumbers = 2, kMostRegisters = 3;

Status parse_instruction(std::string_view line, Instruction& out) {
  for (size_t at = 0; at < line.size();) {
    const size_t end = std::min(line.find(' ', at), line.size());
    const std::string word(line.substr(at, end - at));
    at = end + 1;
    if (out.op.empty()) out.op = word;
    else if (size_t used; word[0] == '#') out.numbers.push_back(to_float(std::string_view(word).substr(1), used));
    else out.registers.push_back(std::atoi(word.c_str()));
  }
  if (out.op.empty() || out.numbers.size() > kMostNumbers || out.registers.size() > kMostRegisters)
    return invalid_graph("no instruction of a program: ", std::string(line));
  return {};
}
}  // namespace

Status parse_program(std::string_view text, std::vector<Instruction>& out) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(';', at), text.size());
    PY_ORT_TRY(parse_instruction(text.substr(at, end - at), out.emplace_back()));
    at = end + 1;
  }
  return {};
}

}  // namespace py_ort
