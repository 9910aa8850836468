// Rotation of pairs of elements by an angle that grows with the position.
#pragma once

#include <vector>

#include "kernels/attention/attention_core.h"

namespace py_ort {

struct RotaryTable {
  const float *cos = nullptr, *sin = nullptr;  // [positions, half]
  int64_t half = 0;                            // rotated pairs in a head
  bool interleaved = false;                    // pairs are neighbors, otherwise `half` apart
  std::vector<int64_t> positions;              // [batch, rows]
};

// `to` may be `from`. The elements after the rotated pairs are copied.
void rotate_heads(const RotaryTable& table, const Heads& from, const Heads& to, int64_t batch, int64_t heads,
                  int64_t rows, int64_t size);
// The table from two caches with a column for each rotated pair; checks that all positions are in it.
Status check_rotary_caches(const Tensor& cos, const Tensor& sin, RotaryTable& table);

}  // namespace py_ort
