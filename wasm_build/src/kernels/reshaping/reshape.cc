// Reshape, Flatten, Squeeze, Unsqueeze, Identity: the same bytes under another shape.
#include <algorithm>

#include "kernels/shared/axes.h"

namespace py_ort {
namespace {

class Reshape {
 public:
  explicit Reshape(const KernelInfo& info) : allow_zero_(info.attributes.integer("allowzero", 0) != 0) {}
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    Dims dims;
    PY_ORT_TRY(read_integers(context.input(1), dims));
    const Dims wanted = dims;
    int64_t known = 1, unknown = -1;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] == 0 && !allow_zero_) {
        PY_ORT_ENSURE(i < in.dims.size(), "Reshape to ", wanted, " copies axis ", i, ", which an input of shape ",
                      in.dims, " does not have");
        dims[i] = in.dims[i];
      }
      if (dims[i] == -1) {
        PY_ORT_ENSURE(unknown < 0, "Reshape to ", wanted, " has more than one -1");
        unknown = static_cast<int64_t>(i);
      } else {
        PY_ORT_ENSURE(dims[i] >= 0, "Reshape to ", wanted, ": ", dims[i], " is no size");
        known *= dims[i];
      }
    }
    if (unknown >= 0) {
      // A copied size counts on both sides, so that -1 can be computed even if the size is 0.
      int64_t to_fill = 1, by = 1;
      for (size_t i = 0; i < std::max(dims.size(), in.dims.size()); ++i) {
        if (i < wanted.size() && wanted[i] == 0 && !allow_zero_) continue;
        if (i < in.dims.size()) to_fill *= in.dims[i];
        if (i < dims.size() && dims[i] != -1) by *= dims[i];
      }
      PY_ORT_ENSURE(by != 0 && to_fill % by == 0, "Reshape of ", in.dims, " to ", wanted, ": ", to_fill,
                    " elements do not divide by ", by);
      dims[static_cast<size_t>(unknown)] = to_fill / by;
      known *= dims[static_cast<size_t>(unknown)];
    }
    PY_ORT_ENSURE(known == in.count(), "Reshape of ", in.dims, " (", in.count(), " elements) to ", wanted, " (", known,
                  ")");
    context.output(0, in.reshaped(std::move(dims)));
    return {};
  }

 private:
  bool allow_zero_;
};

class Flatten {
 public:
  explicit Flatten(const KernelInfo& info) : axis_(info.attributes.integer("axis", 1)) {}
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    int64_t axis = axis_;
    if (axis != in.rank()) PY_ORT_TRY(normalize_axis(axis_, in.rank(), axis));
    context.output(0, in.reshaped({count_between(in.dims, 0, axis), count_between(in.dims, axis, in.rank())}));
    return {};
  }

 private:
  int64_t axis_;
};

struct Squeeze {
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    std::vector<int64_t> axes;
    const bool all = context.input(1) == nullptr || context.input(1)->count() == 0;
    if (!all) {
      PY_ORT_TRY(read_integers(context.input(1), axes));
      PY_ORT_TRY(normalize_axes(axes, in.rank()));
    }
    Dims dims;
    for (int64_t i = 0; i < in.rank(); ++i) {
      const bool listed = std::find(axes.begin(), axes.end(), i) != axes.end();
      PY_ORT_ENSURE(!listed || in.dim(i) == 1, "Squeeze of axis ", i, " of shape ", in.dims, ": its size is not 1");
      if (!listed && !(all && in.dim(i) == 1)) dims.push_back(in.dim(i));
    }
    context.output(0, in.reshaped(std::move(dims)));
    return {};
  }
};

struct Unsqueeze {
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    std::vector<int64_t> axes;
    PY_ORT_TRY(read_integers(context.input(1), axes));
    const int64_t rank = in.rank() + static_cast<int64_t>(axes.size());
    PY_ORT_TRY(normalize_axes(axes, rank));
    Dims dims;
    auto next = in.dims.begin();
    for (int64_t i = 0; i < rank; ++i) {
      const auto times = std::count(axes.begin(), axes.end(), i);
      PY_ORT_ENSURE(times <= 1, "Unsqueeze has axis ", i, " twice in ", axes);
      dims.push_back(times ? 1 : *next++);
    }
    context.output(0, in.reshaped(std::move(dims)));
    return {};
  }
};

struct Identity {
  Status operator()(KernelContext& context) const {
    context.output_value(0, *context.input_value(0));
    return {};
  }
};

PY_ORT_KERNEL("", "Reshape", "*;int64", Reshape);
PY_ORT_KERNEL("", "Flatten", "*", Flatten);
PY_ORT_KERNEL("", "Squeeze", "*;int64", Squeeze);
PY_ORT_KERNEL("", "Unsqueeze", "*;int64", Unsqueeze);
PY_ORT_KERNEL("", "Identity", "*", Identity);

}  // namespace
}  // namespace py_ort
