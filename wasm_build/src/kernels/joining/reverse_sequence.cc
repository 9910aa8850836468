// ReverseSequence.
#include "kernels/shared/axes.h"
#include "kernels/shared/strided.h"

namespace py_ort {
namespace {

class ReverseSequence {
 public:
  explicit ReverseSequence(const KernelInfo& info)
      : batch_axis_(info.attributes.integer("batch_axis", 1)), time_axis_(info.attributes.integer("time_axis", 0)) {}
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    std::vector<int64_t> lengths;
    PY_ORT_TRY(read_integers(context.input(1), lengths));
    int64_t batch = 0, time = 0;
    PY_ORT_TRY(normalize_axis(batch_axis_, in.rank(), batch));
    PY_ORT_TRY(normalize_axis(time_axis_, in.rank(), time));
    PY_ORT_ENSURE(batch != time && static_cast<int64_t>(lengths.size()) == in.dim(batch),
                  "ReverseSequence: ", lengths.size(), " lengths for axis ", batch, " of shape ", in.dims);
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, in.dtype, in.dims, out));
    const Dims strides = strides_of(in.dims);
    for (size_t b = 0; b < lengths.size(); ++b) {
      const int64_t length = lengths[b];
      PY_ORT_ENSURE(length >= 0 && length <= in.dim(time), "ReverseSequence: length ", length,
                    " is out of range for an axis of ", in.dim(time));
      StridedView from{static_cast<int64_t>(b) * strides[batch], strides}, to = from;
      Dims part = in.dims;
      part[batch] = 1;
      part[time] = length;
      from.offset += (length - 1) * strides[time];
      from.strides[time] = -strides[time];
      strided_copy(in, std::move(from), *out, to, part);
      part[time] = in.dim(time) - length;
      to.offset += length * strides[time];
      strided_copy(in, to, *out, to, part);
    }
    return {};
  }

 private:
  int64_t batch_axis_, time_axis_;
};

PY_ORT_KERNEL("", "ReverseSequence", "*;int64", ReverseSequence);

}  // namespace
}  // namespace py_ort
