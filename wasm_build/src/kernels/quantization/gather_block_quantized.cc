// com.microsoft GatherBlockQuantized: rows of a table quantized in blocks, dequantized while they are gathered.
#include <algorithm>
#include <vector>

#include "kernels/shared/axes.h"
#include "kernels/shared/derived.h"
#include "kernels/shared/elements.h"
#include "kernels/shared/lanes.h"
#include "kernels/shared/strided.h"

namespace py_ort {
namespace {

class GatherBlockQuantized {
 public:
  static Status make(const KernelInfo& info, GatherBlockQuantized& out) {
    out.gather_axis_ = info.attributes.integer("gather_axis", 0);
    out.quantize_axis_ = info.attributes.integer("quantize_axis", 1);
    out.block_size_ = info.attributes.integer("block_size", 128);
    out.bits_ = info.attributes.integer("bits", 4);
    if (out.block_size_ < 1 || (out.bits_ != 4 && out.bits_ != 8))
      return invalid_graph("GatherBlockQuantized has block_size ", out.block_size_, " and bits ", out.bits_);
    return {};
  }
  Status operator()(KernelContext& context) const {
    Tensor data = *context.input(0);
    const Tensor &indices = *context.input(1), &scale = *context.input(2);
    const Tensor* zero_point = context.input(3);
    // uint8 holds `bits` per element: two per byte along the last axis, or one, with 128 as zero.
    const bool bytes = data.dtype == DType::uint8;
    const auto zero = static_cast<float>(bytes ? 1 << (bits_ - 1) : 0);
    if (bytes && bits_ == 4 && data.rank() > 0) {
      data.dtype = DType::uint4;
      data.dims.back() *= 2;
    }
    int64_t gather = 0, quantize = 0;
    PY_ORT_TRY(normalize_axis(gather_axis_, data.rank(), gather));
    PY_ORT_TRY(normalize_axis(quantize_axis_, data.rank(), quantize));
    Dims expected = data.dims;
    expected[quantize] = (expected[quantize] + block_size_ - 1) / block_size_;
    PY_ORT_ENSURE(scale.dims == expected, "GatherBlockQuantized: scales of shape ", scale.dims, ", expected ",
                  expected);
    Tensor zeros, values, result;
    if (zero_point) {
      zeros = *zero_point;
      if (data.dtype == DType::uint4 && bytes) {
        zeros.dtype = DType::uint4;
        zeros.dims.back() *= 2;
        if (zeros.dims.back() != expected.back()) {
          const Tensor* kept;
          PY_ORT_TRY(
              trimmed_.get(*zero_point, kept, [&](Tensor& out) { return trimmed(zeros, expected.back(), out); }));
          zeros = *kept;
        }
      }
      PY_ORT_ENSURE(zeros.dims == expected, "GatherBlockQuantized: zero points of shape ", zero_point->dims,
                    " for scales of shape ", scale.dims);
    }
    std::vector<int64_t> at;
    PY_ORT_TRY(read_integers(indices, at));
    PY_ORT_TRY(normalize_indices(at, data.dim(gather), "indices"));
    Dims dims(data.dims.begin(), data.dims.begin() + gather);
    dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
    dims.insert(dims.end(), data.dims.begin() + gather + 1, data.dims.end());
    PY_ORT_TRY(Tensor::make(DType::float32, dims, values));
    const int64_t outer = count_between(data.dims, 0, gather),
                  length = count_between(data.dims, gather + 1, data.rank());
    // The place of an element's scale. A row's scales are contiguous.
    const int64_t inner = count_between(data.dims, quantize + 1, data.rank()), size = data.dims[quantize];
    const auto scale_of = [&](int64_t i) {
      return (i / inner / size * expected[quantize] + i / inner % size / block_size_) * inner + i % inner;
    };
    float* to = values.mutable_data<float>();
    std::vector<int32_t> row, row_zeros;
    std::vector<float> row_scales;
    const int32_t* z = nullptr;
    for (int64_t o = 0; o < outer && length > 0; ++o)
      for (const int64_t index : at) {
        const int64_t first = (o * data.dim(gather) + index) * length, first_scale = scale_of(first),
                      count = scale_of(first + length - 1) + 1 - first_scale;
        const int32_t* x = read(data, first, length, row);
        const float* s = read(scale, first_scale, count, row_scales);
        if (zero_point) z = read(zeros, first_scale, count, row_zeros);
        for (int64_t i = 0; i < length;) {
          const int64_t place = (first + i) / inner % size;
          int64_t block = scale_of(first + i) - first_scale;
          // One scale for the rest of a block, or one for each element up to the next place.
          const int64_t left = inner == 1 ? std::min(block_size_ - place % block_size_, size - place)
                                          : inner - (first + i) % inner,
                        step = inner == 1 ? 0 : 1;
          for (const int64_t end = std::min(i + left, length); i < end; ++i, block += step)
            *to++ = (static_cast<float>(x[i]) - (z ? static_cast<float>(z[block]) : zero)) * s[block];
        }
      }
    PY_ORT_TRY(cast(values, scale.dtype, result));
    context.output(0, std::move(result));
    return {};
  }

 private:
  // Elements [first, first + count), widened. Reading begins at an even element: a byte has two.
  template <class T>
  static const T* read(const Tensor& from, int64_t first, int64_t count, std::vector<T>& scratch) {
    const int64_t even = first / 2 * 2, all = first + count - even;
    scratch.resize(static_cast<size_t>(all) + 3);
    const void* wide = widen(from.dtype, from.storage->data(), even, static_cast<size_t>(all), scratch.data());
    return static_cast<const T*>(wide) + (first - even);
  }
  // Removes the padding nibble at the end of rows of odd length.
  static Status trimmed(const Tensor& packed, int64_t columns, Tensor& out) {
    Tensor all, part;
    PY_ORT_TRY(spread_bytes(packed, all));
    Dims dims = packed.dims;
    const int64_t rows = count_between(dims, 0, packed.rank() - 1), padded = dims.back();
    PY_ORT_ENSURE(padded == columns + 1, "GatherBlockQuantized: zero points of shape ", packed.dims, " for ", columns,
                  " blocks");
    dims.back() = columns;
    PY_ORT_TRY(Tensor::make(DType::uint8, dims, part));
    strided_copy(all, {0, {padded, 1}}, part, {0, {columns, 1}}, {rows, columns});
    return gather_bits(part, DType::uint4, out);
  }
  Derived<Tensor> trimmed_;  // zero points
  int64_t gather_axis_ = 0, quantize_axis_ = 1, block_size_ = 128, bits_ = 4;
};

PY_ORT_KERNEL(kMicrosoftDomain, "GatherBlockQuantized",
              "int4,uint4,uint8;int32,int64;float32,float16,bfloat16;int4,uint4,uint8", GatherBlockQuantized);

}  // namespace
}  // namespace py_ort
