// Gather, GatherElements, GatherND, ArrayFeatureExtractor.
#include <algorithm>

#include "kernels/shared/axes.h"
#include "kernels/shared/strided.h"

namespace py_ort {
namespace {

// Rows of `length` elements: out[o, i] = in[o, indices[i]] for `outer` groups of `size` rows.
void gather_rows(const Tensor& in, Tensor& out, const std::vector<int64_t>& indices, int64_t outer, int64_t size,
                 int64_t length) {
  visit_width(in.dtype, [&]<class T>() {
    const T* x = elements<T>(in);
    T* y = mutable_elements<T>(out);
    for (int64_t o = 0; o < outer; ++o, x += size * length)
      for (const int64_t index : indices) {
        copy_run(x + index * length, y, length);
        y += length;
      }
  });
}

class Gather {
 public:
  explicit Gather(const KernelInfo& info) : axis_(info.attributes.integer("axis", 0)) {}
  Status operator()(KernelContext& context) const {
    const Tensor &in = *context.input(0), &indices = *context.input(1);
    int64_t axis = 0;
    PY_ORT_TRY(normalize_axis(axis_, in.rank(), axis));
    std::vector<int64_t> at;
    PY_ORT_TRY(read_integers(indices, at));
    PY_ORT_TRY(normalize_indices(at, in.dim(axis), "indices"));
    Dims dims(in.dims.begin(), in.dims.begin() + axis);
    dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
    dims.insert(dims.end(), in.dims.begin() + axis + 1, in.dims.end());
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, in.dtype, std::move(dims), out));
    if (out->count())
      gather_rows(in, *out, at, count_between(in.dims, 0, axis), in.dim(axis),
                  count_between(in.dims, axis + 1, in.rank()));
    return {};
  }

 private:
  int64_t axis_;
};

class GatherElements {
 public:
  explicit GatherElements(const KernelInfo& info) : axis_(info.attributes.integer("axis", 0)) {}
  Status operator()(KernelContext& context) const {
    const Tensor &in = *context.input(0), &indices = *context.input(1);
    int64_t axis = 0;
    PY_ORT_TRY(normalize_axis(axis_, in.rank(), axis));
    PY_ORT_ENSURE(indices.rank() == in.rank(), "GatherElements: indices of shape ", indices.dims, " for data of shape ",
                  in.dims, ": ranks differ");
    for (int64_t d = 0; d < in.rank(); ++d)
      PY_ORT_ENSURE(d == axis || indices.dim(d) <= in.dim(d), "GatherElements: indices of shape ", indices.dims,
                    " reach beyond data of shape ", in.dims);
    std::vector<int64_t> at;
    PY_ORT_TRY(read_integers(indices, at));
    PY_ORT_TRY(normalize_indices(at, in.dim(axis), "indices"));
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, in.dtype, indices.dims, out));
    const Dims steps = strides_of(in.dims);
    visit_width(in.dtype, [&]<class T>() {
      const T* x = elements<T>(in);
      T* y = mutable_elements<T>(*out);
      Dims index(indices.dims.size());
      for (size_t i = 0; i < at.size(); ++i) {
        int64_t offset = at[i] * steps[axis];
        for (size_t d = 0; d < index.size(); ++d)
          if (static_cast<int64_t>(d) != axis) offset += index[d] * steps[d];
        y[i] = x[offset];
        for (size_t d = index.size(); d-- > 0 && ++index[d] == indices.dims[d];) index[d] = 0;
      }
    });
    return {};
  }

 private:
  int64_t axis_;
};

class GatherND {
 public:
  explicit GatherND(const KernelInfo& info) : batch_dims_(info.attributes.integer("batch_dims", 0)) {}
  Status operator()(KernelContext& context) const {
    const Tensor &in = *context.input(0), &indices = *context.input(1);
    const int64_t batch = batch_dims_;
    PY_ORT_ENSURE(indices.rank() > batch && in.rank() > batch && batch >= 0, "GatherND: batch_dims ", batch,
                  " is too large for shapes ", in.dims, " and ", indices.dims);
    const int64_t depth = indices.dim(-1);
    PY_ORT_ENSURE(depth >= 1 && batch + depth <= in.rank(), "GatherND: indices of shape ", indices.dims,
                  " with batch_dims ", batch, " for data of shape ", in.dims);
    std::vector<int64_t> at;
    PY_ORT_TRY(read_integers(indices, at));
    Dims dims(indices.dims.begin(), indices.dims.end() - 1);
    dims.insert(dims.end(), in.dims.begin() + batch + depth, in.dims.end());
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, in.dtype, std::move(dims), out));
    if (out->count() == 0) return {};
    const int64_t batches = count_between(in.dims, 0, batch), rows = static_cast<int64_t>(at.size()) / depth;
    const int64_t length = count_between(in.dims, batch + depth, in.rank()),
                  batch_step = count_between(in.dims, batch, in.rank());
    const Dims steps = strides_of(in.dims);
    std::vector<int64_t> offsets(static_cast<size_t>(rows));
    for (int64_t row = 0; row < rows; ++row) {
      int64_t offset = row / (rows / batches) * batch_step;
      for (int64_t d = 0; d < depth; ++d) {
        const int64_t size = in.dim(batch + d), index = at[row * depth + d];
        PY_ORT_ENSURE(index >= -size && index < size, "GatherND: index ", index, " is out of range for axis ",
                      batch + d, " of shape ", in.dims);
        offset += (index < 0 ? index + size : index) * steps[batch + d];
      }
      offsets[row] = offset;
    }
    for (int64_t row = 0; row < rows; ++row) copy_elements(in, offsets[row], *out, row * length, length);
    return {};
  }

 private:
  int64_t batch_dims_;
};

struct ArrayFeatureExtractor {
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    std::vector<int64_t> at;
    PY_ORT_TRY(read_integers(context.input(1), at));
    PY_ORT_ENSURE(in.rank() >= 1 && !at.empty(), "ArrayFeatureExtractor of shape ", in.dims, " with ", at.size(),
                  " indices");
    PY_ORT_TRY(normalize_indices(at, in.dim(-1), "Y"));
    Dims dims(in.dims.begin(), in.dims.end() - 1);
    if (dims.empty()) dims.push_back(1);
    dims.push_back(static_cast<int64_t>(at.size()));
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, in.dtype, std::move(dims), out));
    gather_rows(in, *out, at, count_between(in.dims, 0, in.rank() - 1), in.dim(-1), 1);
    return {};
  }
};

PY_ORT_KERNEL("", "Gather", "*;int32,int64", OnBytes<Gather>);
PY_ORT_KERNEL("", "GatherElements", "*;int32,int64", OnBytes<GatherElements>);
PY_ORT_KERNEL("", "GatherND", "*;int64", OnBytes<GatherND>);
PY_ORT_KERNEL("ai.onnx.ml", "ArrayFeatureExtractor", "*;int64", ArrayFeatureExtractor);

}  // namespace
}  // namespace py_ort
