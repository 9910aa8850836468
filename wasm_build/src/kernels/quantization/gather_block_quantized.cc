// com.microsoft GatherBlockQuantized: rows of a table that is quantized in blocks, dequantized as they are taken.
#include "kernels/shared/axes.h"
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
    // uint8 holds `bits` per element: two to a byte along the last axis, or one with 128 for zero.
    const bool bytes = data.dtype == DType::uint8;
    double zero = bytes ? static_cast<double>(1 << (bits_ - 1)) : 0;
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
    Tensor scales, zeros, values, result;
    PY_ORT_TRY(cast(scale, DType::float32, scales));
    if (zero_point) {
      Tensor packed = *zero_point;
      if (data.dtype == DType::uint4 && bytes) {
        packed.dtype = DType::uint4;
        packed.dims.back() *= 2;
        if (packed.dims.back() != expected.back()) PY_ORT_TRY(trimmed(Tensor(packed), expected.back(), packed));
      }
      PY_ORT_ENSURE(packed.dims == expected, "GatherBlockQuantized: zero points of shape ", zero_point->dims,
                    " for scales of shape ", scale.dims);
      PY_ORT_TRY(cast(packed, DType::float32, zeros));
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
    const Dims steps = strides_of(data.dims), scale_steps = strides_of(expected);
    float* to = values.mutable_data<float>();
    std::vector<int32_t> row(static_cast<size_t>(length) + 3);
    for (int64_t o = 0; o < outer; ++o)
      for (const int64_t index : at) {
        const int64_t first = (o * data.dim(gather) + index) * length;
        // Read from an even element on: two lie in a byte.
        const int64_t even = first / 2 * 2;
        const auto* x = static_cast<const int32_t*>(widen(data.dtype, data.storage->data(), even,
                                                          static_cast<size_t>(first + length - even), row.data())) +
                        (first - even);
        for (int64_t i = 0; i < length; ++i) {
          int64_t rest = first + i, block = 0;
          for (int64_t d = 0; d < data.rank(); ++d) {
            block += (d == quantize ? rest / steps[d] / block_size_ : rest / steps[d]) * scale_steps[d];
            rest %= steps[d];
          }
          *to++ = (static_cast<float>(x[i]) - (zero_point ? zeros.data<float>()[block] : static_cast<float>(zero))) *
                  scales.data<float>()[block];
        }
      }
    PY_ORT_TRY(cast(values, scale.dtype, result));
    context.output(0, std::move(result));
    return {};
  }

 private:
  // Without the padding nibble that rows of an odd length end with.
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
  int64_t gather_axis_ = 0, quantize_axis_ = 1, block_size_ = 128, bits_ = 4;
};

PY_ORT_KERNEL(kMicrosoftDomain, "GatherBlockQuantized",
              "int4,uint4,uint8;int32,int64;float32,float16,bfloat16;int4,uint4,uint8", GatherBlockQuantized);

}  // namespace
}  // namespace py_ort
