// Concat.
#include "kernels/shared/axes.h"
#include "kernels/shared/strided.h"

namespace py_ort {
namespace {

class Concat {
 public:
  explicit Concat(const KernelInfo& info) : axis_(info.attributes.integer("axis", 0)) {}
  Status operator()(KernelContext& context) const {
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
};

PY_ORT_KERNEL("", "Concat", "*", OnBytes<Concat>);

}  // namespace
}  // namespace py_ort
