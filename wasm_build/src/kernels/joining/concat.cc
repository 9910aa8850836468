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
    // Written from end to end: the inputs are read side by side.
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
  // Along the last axis, of columns of the inputs, or into columns of another tensor.
  Status join_columns(KernelContext& context) const {
    struct Source {
      const Tensor* tensor;
      Columns at;
      int64_t count;
    };
    const size_t inputs = columns_.into < 0 ? context.input_count() : static_cast<size_t>(columns_.into);
    std::vector<Source> sources;
    Dims dims = context.input(0)->dims;
    dims.back() = 0;
    for (size_t i = 0; i < inputs; ++i) {
      Tensor seen;
      Columns at;
      const Tensor& in = *context.input(i);
      const Dims which = columns_.x.empty() ? Dims{} : Dims{columns_.x[2 * i], columns_.x[2 * i + 1]};
      PY_ORT_TRY(seen_columns(in, which, seen, at));
      sources.push_back({&in, at, seen.dims.back()});
      const int64_t width = dims.back();
      dims.back() = seen.dims.back();
      PY_ORT_ENSURE(seen.dims == dims, "Concat of shapes ", dims, " and ", seen.dims, ": other axes differ");
      dims.back() += width;
    }
    Tensor y;
    Columns y_at;
    PY_ORT_TRY(column_output(context, context.input(0)->dtype, dims, columns_, y, y_at));
    visit_width(y.dtype, [&]<class T>() {
      const int64_t rows = count_between(dims, 0, static_cast<int64_t>(dims.size()) - 1);
      for (int64_t row = 0; row < rows; ++row) {
        T* to = mutable_elements<T>(y) + row * y_at.pitch + y_at.first;
        for (const Source& source : sources) {
          copy_run(elements<T>(*source.tensor) + row * source.at.pitch + source.at.first, to, source.count);
          to += source.count;
        }
      }
    });
    return {};
  }

  // The shape of all side by side. An input without elements need not fit, if it adds nothing that is not there.
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

PY_ORT_KERNEL("", "Concat", "*", OnBytes<Concat>);
PY_ORT_FEATURES("", "Concat", "columns");

}  // namespace
}  // namespace py_ort
