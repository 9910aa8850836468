// ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceProd, ReduceL1, ReduceL2, ReduceLogSum, ReduceLogSumExp,
// ReduceSumSquare.
#include "kernels/reduction/reduce.h"

#include <cmath>
#include <numeric>

#include "kernels/shared/axes.h"
#include "kernels/elementwise/binary.h"
#include "kernels/shared/dtypes.h"
#include "kernels/elementwise/unary.h"

namespace py_ort {
namespace {

constexpr Reduction kReductions[] = {
    {"ReduceL1", Step::sum_abs, Finish::none}, {"ReduceL2", Step::sum_squares, Finish::sqrt},
    {"ReduceLogSum", Step::sum, Finish::log},  {"ReduceLogSumExp", Step::sum, Finish::log_of_exps},
    {"ReduceMax", Step::max, Finish::none},    {"ReduceMean", Step::sum, Finish::mean},
    {"ReduceMin", Step::min, Finish::none},    {"ReduceProd", Step::product, Finish::none},
    {"ReduceSum", Step::sum, Finish::none},    {"ReduceSumSquare", Step::sum_squares, Finish::none},
};

// exp(x - most) with the largest element of each set, so that nothing overflows; `most` is 0 where it would be
// infinite.
Status shifted_exps(const Tensor& in, const ReducedAxes& axes, Tensor& most, Tensor& out) {
  PY_ORT_TRY(Tensor::make(in.dtype, axes.kept_dims, most));
  reduce(Step::max, in, axes, in.dtype, most);
  visit_lane(lane_of(in.dtype), [&]<class T>() {
    if constexpr (std::is_floating_point_v<T>)
      for (int64_t i = 0, n = most.count(); i < n; ++i)
        if (!std::isfinite(most.data<T>()[i])) most.mutable_data<T>()[i] = 0;
  });
  Broadcast broadcast;
  PY_ORT_TRY(Broadcast::make({&in.dims, &most.dims}, broadcast));
  PY_ORT_TRY(Tensor::make(in.dtype, in.dims, out));
  apply_binary(*arithmetic_loops("Sub"), broadcast, in, most, out);
  apply_unary(*find_unary("Exp"), {}, out, out);
  return {};
}

class Reduce {
 public:
  explicit Reduce(const KernelInfo& info)
      : reduction_(*find_reduction(info.op_type)), keep_(info.attributes.integer("keepdims", 1) != 0),
        noop_(info.attributes.integer("noop_with_empty_axes", 0) != 0) {}
  Status operator()(KernelContext& context) const {
    const Tensor& in = *context.input(0);
    std::vector<int64_t> list;
    if (const Tensor* given = context.input(1)) PY_ORT_TRY(read_integers(*given, list));
    PY_ORT_TRY(normalize_axes(list, in.rank()));
    if (list.empty() && !noop_) {
      list.resize(in.dims.size());
      std::iota(list.begin(), list.end(), 0);
    }
    const ReducedAxes axes = reduced_axes(in.dims, list, keep_);
    // Logarithms and exponentials of integers are computed in doubles; all others in the input's own lane.
    const bool by_logs = reduction_.finish == Finish::log || reduction_.finish == Finish::log_of_exps ||
                         reduction_.finish == Finish::sqrt;
    const bool is_float = lane_of(in.dtype) == Lane::f32 || lane_of(in.dtype) == Lane::f64;
    Tensor wide, most, total, result;
    PY_ORT_TRY(cast(in, by_logs && !is_float ? DType::float64 : lane_dtype(lane_of(in.dtype)), wide));
    if (reduction_.finish == Finish::log_of_exps) PY_ORT_TRY(shifted_exps(Tensor(wide), axes, most, wide));
    PY_ORT_TRY(Tensor::make(wide.dtype, axes.dims, total));
    reduce(reduction_.step, wide, axes, in.dtype, total);
    finish(total, most, axes.count);
    PY_ORT_TRY(cast(total, in.dtype, result));
    context.output(0, std::move(result));
    return {};
  }

 private:
  void finish(Tensor& total, const Tensor& most, int64_t count) const {
    visit_lane(lane_of(total.dtype), [&]<class T>() {
      T* y = total.mutable_data<T>();
      if (reduction_.finish != Finish::log_of_exps) return finish_totals(reduction_.finish, y, total.count(), count);
      if constexpr (std::is_floating_point_v<T>)
        for (int64_t i = 0, n = total.count(); i < n; ++i) y[i] = std::log(y[i]) + most.data<T>()[i];
    });
  }

  Reduction reduction_;
  bool keep_, noop_;
};

}  // namespace

const Reduction* find_reduction(std::string_view op_type) {
  for (const Reduction& reduction : kReductions)
    if (reduction.op_type == op_type) return &reduction;
  return nullptr;
}

template <class T>
void finish_totals(Finish finish, T* y, int64_t outputs, int64_t count) {
  if (finish == Finish::mean) {
    if (std::is_integral_v<T> && count == 0) return;
    for (int64_t i = 0; i < outputs; ++i) y[i] = y[i] / static_cast<T>(count);
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (finish == Finish::sqrt)
      for (int64_t i = 0; i < outputs; ++i) y[i] = std::sqrt(y[i]);
    if (finish == Finish::log)
      for (int64_t i = 0; i < outputs; ++i) y[i] = std::log(y[i]);
  }
}
template void finish_totals<float>(Finish, float*, int64_t, int64_t);

namespace {

#define PY_ORT_REDUCED PY_ORT_FLOATS ",int32,int64,uint32,uint64"
PY_ORT_KERNEL("", "ReduceL1", PY_ORT_REDUCED ";int64", Reduce);
PY_ORT_KERNEL("", "ReduceL2", PY_ORT_REDUCED ";int64", Reduce);
PY_ORT_KERNEL("", "ReduceLogSum", PY_ORT_REDUCED ";int64", Reduce);
PY_ORT_KERNEL("", "ReduceLogSumExp", PY_ORT_REDUCED ";int64", Reduce);
PY_ORT_KERNEL("", "ReduceMax", PY_ORT_REDUCED ",uint8,int8,bool;int64", Reduce);
PY_ORT_KERNEL("", "ReduceMean", PY_ORT_REDUCED ";int64", Reduce);
PY_ORT_KERNEL("", "ReduceMin", PY_ORT_REDUCED ",uint8,int8,bool;int64", Reduce);
PY_ORT_KERNEL("", "ReduceProd", PY_ORT_REDUCED ";int64", Reduce);
PY_ORT_KERNEL("", "ReduceSum", PY_ORT_REDUCED ";int64", Reduce);
PY_ORT_KERNEL("", "ReduceSumSquare", PY_ORT_REDUCED ";int64", Reduce);
#undef PY_ORT_REDUCED

}  // namespace
}  // namespace py_ort
