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
    Dims dims = first.dims;
    for (size_t i = 1; i < context.input_count(); ++i) {
      Dims other = context.input(i)->dims;
      PY_ORT_ENSURE(other.size() == dims.size(), "Concat of shapes ", first.dims, " and ", other, ": ranks differ");
      const int64_t total = dims[axis] + other[axis];
      other[axis] = dims[axis];
      PY_ORT_ENSURE(other == dims, "Concat along axis ", axis, " of shapes ", first.dims, " and ",
                    context.input(i)->dims, ": other axes differ");
      dims[axis] = total;
    }
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, first.dtype, dims, out));
    // Written from end to end: the inputs are read side by side.
    visit_width(first.dtype, [&]<class T>() {
      struct Source {
        const T* at;
        ptrdiff_t length;
      };
      std::vector<Source> sources;
      for (size_t i = 0; i < context.input_count(); ++i) {
        const Tensor& in = *context.input(i);
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
  int64_t axis_;
};

PY_ORT_KERNEL("", "Concat", "*", OnBytes<Concat>);

}  // namespace
}  // namespace py_ort
