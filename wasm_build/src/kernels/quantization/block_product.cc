#include "kernels/quantization/block_product.h"

#include <algorithm>
#include <cmath>

#include "py_ort/tensor.h"

namespace py_ort {
namespace {

// The form by columns subtracts sums times zero points from products with unshifted weights: infinities would become
// NaN.
bool has_finite_sums(const BlockProduct& product) {
  const float* sums = product.row_sums();
  return std::all_of(sums, sums + static_cast<size_t>(product.rows) * product.blocks(),
                     [](float sum) { return std::fabs(sum) < 1e30f; });
}

}  // namespace

Status multiply_blocks(BlockProduct product) {
  if (product.rows == 0 || product.n == 0) return {};
  const Microkernels& kernels = microkernels();
  Tensor prepared;
  if (product.needs_rows()) {
    PY_ORT_TRY(Tensor::make(DType::uint8, {static_cast<int64_t>(product.prepared_bytes())}, prepared));
    product.prepared = prepared.mutable_data<uint8_t>();
    run_microkernel(kernels.block_rows, &product, 0, product.rows);
    product.tiles = !product.integers && !has_finite_sums(product);
  }
  if (!run_microkernel(product.few() ? kernels.block_columns : kernels.block_tiles, product))
    return out_of_memory("no memory for the scratch space of a product with weights of few bits");
  return {};
}

}  // namespace py_ort
