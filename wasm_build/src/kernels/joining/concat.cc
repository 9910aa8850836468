// Concat.
#include "kernels/shared/axes.h"
#include "kernels/shared/columns.h"
#include "kernels/shared/strided.h"
#include "py_ort/kernel_features.h"

namespace py_ort {
namespace {

class Concat {
 public:
  explicit Concat(const KernelInfo& info)
      : axis_(info.attributes.integer("axis", 0)), columns_(ColumnAttributes::of(info.attributes)) {}
  Status operator()(KernelContext& context) const {
    if (!columns_.x.empty() || !columns_.y.empty()) return join_columns(context);
    const Tensor& first = *context.input(0);
    int64_t axis = 0;
    PY_ORT_TRY(normalize_axis(axis_, first.rank(), axis));
    Dims dims;
    PY_ORT_TRY(join(context, axis, dims));
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, first.dtype, dims, out));
    if (out->count() == 0) return {};
    // Written in order: the inputs are read side by side.
    visit_width(first.dtype, [&]<class T>() {
      struct Source {
        const T* at;
        ptrdiff_t length;
      };
      std::vector<Source> sources;
      for (size_t i = 0; i < context.input_count(); ++i) {
        const Tensor& in = *context.input(i);
        if (in.count() == 0) continue;
        sources.push_back({elements<T>(in), static_cast<ptrdiff_t>(count_between(in.dims, axis, in.rank()))});
      }
      T* to = mutable_elements<T>(*out);
      for (int64_t outer = count_between(dims, 0, axis); outer > 0; --outer)
        for (Source& source : sources) {
          copy_run(source.at, to, source.length);
          source.at += source.length;
          to += source.length;
        }
    });
    return {};
  }

 private:
  // Along the last axis: reads columns of the inputs, or writes into columns of another tensor.
  Status join_columns(KernelContext& context) const {
    const size_t inputs = columns_.into < 0 ? context.input_count() : static_cast<size_t>(columns_.into);
    const auto source = [&](size_t i, Tensor& seen, Columns& at) {
      const Dims& all = columns_.x;
      return seen_columns(*context.input(i), all.empty() ? Dims{} : Dims{all[2 * i], all[2 * i + 1]}, seen, at);
    };
    Tensor seen, y;
    Columns at, y_at;
    PY_ORT_TRY(source(0, seen, at));
    Dims dims = seen.dims;
    const int64_t rows = count_between(dims, 0, seen.rank() - 1);
    for (size_t i = 1; i < inputs; ++i) {
      PY_ORT_TRY(source(i, seen, at));
      dims.back() += seen.dims.back();
    }
    PY_ORT_TRY(column_output(context, seen.dtype, dims, columns_, y, y_at));
    const auto size = static_cast<int64_t>(byte_size(y.dtype, 1));
    auto* to = y.mutable_data<uint8_t>() + y_at.first * size;
    for (size_t i = 0; i < inputs; ++i) {
      PY_ORT_TRY(source(i, seen, at));
      const int64_t count = seen.dims.back() * size;
      PY_ORT_ENSURE(count_between(seen.dims, 0, seen.rank() - 1) == rows, "Concat of shapes ", dims, " and ", seen.dims,
                    ": other axes differ");
      for (int64_t row = 0; row < rows; ++row)
        copy_run(seen.data<uint8_t>() + (row * at.pitch + at.first) * size, to + row * y_at.pitch * size, count);
      to += count;
    }
    return {};
  }

  // The shape of all inputs joined. An input without elements need not fit, if it contributes nothing.
  static Status join(const KernelContext& context, int64_t axis, Dims& dims) {
    const Tensor* model = context.input(0);
    int64_t total = 0;
    for (size_t i = 0; i < context.input_count(); ++i) {
      const Tensor& in = *context.input(i);
      PY_ORT_ENSURE(in.rank() == model->rank(), "Concat of shapes ", model->dims, " and ", in.dims, ": ranks differ");
      if (model->count() == 0 && in.count() > 0) model = &in;
      total += in.dims[axis];
    }
    dims = model->dims;
    dims[axis] = total;
    const bool empty = count_between(dims, 0, model->rank()) == 0;
    for (size_t i = 0; i < context.input_count(); ++i) {
      const Tensor& in = *context.input(i);
      if (in.count() == 0 && (empty || in.dims[axis] == 0)) continue;
      Dims other = in.dims;
      other[axis] = total;
      PY_ORT_ENSURE(other == dims, "Concat along axis ", axis, " of shapes ", model->dims, " and ", in.dims,
                    ": other axes differ");
    }
    return {};
  }

  int64_t axis_;
  ColumnAttributes columns_;
};

PY_ORT_KERNEL("", "Concat", "=*", OnBytes<Concat>);
PY_ORT_FEATURES("", "Concat", "columns");

}  // namespace
}  // namespace py_ort
