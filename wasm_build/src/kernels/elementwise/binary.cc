#include "kernels/elementwise/binary.h"

#include <algorithm>

namespace py_ort {

void apply_binary(const BinaryLoops& loops, const Broadcast& broadcast, const Tensor& a, const Tensor& b, Tensor& out,
                  int64_t extra) {
  const DType dtype = a.dtype;
  const Lane lane = lane_of(dtype);
  const bool is_float = lane == Lane::f32 || lane == Lane::f64;
  const size_t width = byte_size(dtype, 1), out_width = byte_size(out.dtype, 1);
  const BinaryLoop by_width = is_float ? nullptr : loops.widths[__builtin_ctzl(width)];
  const BinaryLoop loop = by_width ? by_width : loops.lanes[static_cast<size_t>(lane)];
  const bool a_moves = broadcast.steps[0] != 0, b_moves = broadcast.steps[1] != 0;
  if (by_width || is_native(dtype)) {
    broadcast.for_each_row([&](const Broadcast::Offsets& offsets, int64_t at) {
      loop(a.data<char>() + static_cast<size_t>(offsets[0]) * width,
           b.data<char>() + static_cast<size_t>(offsets[1]) * width,
           out.mutable_data<char>() + static_cast<size_t>(at) * out_width, static_cast<size_t>(broadcast.inner),
           a_moves, b_moves, extra);
    });
    return;
  }
  const bool writes_bytes = out.dtype == DType::bool_ && dtype != DType::bool_;
  alignas(16) uint64_t x_wide[kChunk], y_wide[kChunk], z_wide[kChunk];
  broadcast.for_each_row([&](const Broadcast::Offsets& offsets, int64_t at) {
    for (int64_t i = 0; i < broadcast.inner; i += kChunk) {
      const auto n = static_cast<size_t>(std::min<int64_t>(kChunk, broadcast.inner - i));
      const void* x = widen(dtype, a.storage->data(), offsets[0] + (a_moves ? i : 0), a_moves ? n : 1, x_wide);
      const void* y = widen(dtype, b.storage->data(), offsets[1] + (b_moves ? i : 0), b_moves ? n : 1, y_wide);
      loop(x, y, writes_bytes ? static_cast<void*>(out.mutable_data<char>() + at + i) : z_wide, n, a_moves, b_moves,
           extra);
      if (!writes_bytes) narrow(dtype, z_wide, out.storage->data(), at + i, n);
    }
  });
}

Status run_binary(KernelContext& context, const BinaryLoops& loops, const Tensor& a, const Tensor& b, DType to,
                  int64_t extra) {
  Broadcast broadcast;
  PY_ORT_TRY(Broadcast::make({&a.dims, &b.dims}, broadcast));
  Tensor* out = nullptr;
  PY_ORT_TRY(context.output(0, to, broadcast.dims, out, {0, 1}));
  apply_binary(loops, broadcast, a, b, *out, extra);
  return {};
}

Status combine(std::string_view op_type, const Tensor& a, const Tensor& b, Tensor& out) {
  Broadcast broadcast;
  PY_ORT_TRY(Broadcast::make({&a.dims, &b.dims}, broadcast));
  PY_ORT_TRY(Tensor::make(a.dtype, broadcast.dims, out));
  apply_binary(*arithmetic_loops(op_type), broadcast, a, b, out);
  return {};
}

}  // namespace py_ort
