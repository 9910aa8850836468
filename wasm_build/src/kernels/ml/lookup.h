// Maps elements of any dtype to positions in a list, for LabelEncoder and similar operators.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "py_ort/kernel.h"

namespace py_ort::ml {

// A tensor from the attribute that is present: PREFIX + "strings", "int64s" (or "ints"), "floats" or "tensor".
std::optional<Tensor> list_attribute(const Attributes& attributes, const std::string& prefix);

// Selects one of several equal keys.
enum class OfEqual { last, first };

class Lookup {
 public:
  static Status make(const Tensor& keys, Lookup& out, OfEqual counts = OfEqual::last);
  // The position of each element among the keys; -1: not found.
  Status find(const Tensor& elements, std::vector<int64_t>& out) const;
  int64_t size() const { return size_; }

 private:
  std::unordered_map<std::string, int64_t> positions_;
  int64_t size_ = 0;
};

}  // namespace py_ort::ml
