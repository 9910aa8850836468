// Where.
#include "kernels/shared/broadcast.h"
#include "kernels/shared/elements.h"

namespace py_ort {
namespace {

struct Where {
  Status operator()(KernelContext& context) const {
    const Tensor &condition = *context.input(0), &yes = *context.input(1), &no = *context.input(2);
    Broadcast broadcast;
    PY_ORT_TRY(Broadcast::make({&condition.dims, &yes.dims, &no.dims}, broadcast));
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, yes.dtype, broadcast.dims, out, {1, 2}));
    const auto* test = condition.data<uint8_t>();
    const auto [c, a, b, unused] = broadcast.steps;
    visit_width(yes.dtype, [&, c = c, a = a, b = b]<class T>() {
      const T *x = elements<T>(yes), *y = elements<T>(no);
      T* z = mutable_elements<T>(*out);
      broadcast.for_each_row([&](const Broadcast::Offsets& offsets, int64_t at) {
        const uint8_t* row_test = test + offsets[0];
        const T *row_x = x + offsets[1], *row_y = y + offsets[2];
        T* row_z = z + at;
        if (c == 0) {  // one condition for the whole row
          const T* from = *row_test ? row_x : row_y;
          const int64_t step = *row_test ? a : b;
          for (int64_t i = 0; i < broadcast.inner; ++i) row_z[i] = from[i * step];
        } else {
          for (int64_t i = 0; i < broadcast.inner; ++i) row_z[i] = row_test[i] ? row_x[i * a] : row_y[i * b];
        }
      });
    });
    return {};
  }
};

PY_ORT_KERNEL("", "Where", "bool;=*", Where);

}  // namespace
}  // namespace py_ort
