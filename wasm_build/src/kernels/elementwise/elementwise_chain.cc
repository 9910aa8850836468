// ElementwiseChain: several elementwise operators over one block of elements after the other, so that intermediate
// results stay in the cache. Its attribute `program` (program.h) has an instruction for each operator. Registers are
// the inputs, then results; all are floats, truths are 0 and 1. With `reduction`, a Reduce operator, the last result is
// not stored: it is reduced along `axes`, block by block. The program `finish` then runs on the reduced values.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "kernels/shared/broadcast.h"
#include "kernels/shared/axes.h"
#include "kernels/elementwise/pow.h"
#include "kernels/shared/program.h"
#include "py_ort/gen/dialect.h"
#include "py_ort/kernel.h"
#include "kernels/reduction/reduce.h"
#include "kernels/shared/simd_math.h"
#include "kernels/elementwise/unary.h"

namespace py_ort {
namespace {

constexpr int64_t kBlock = 768;  // a multiple of common channel counts

enum class Op {
  function,
  number,
  copy,
  add,
  sub,
  mul,
  div,
  max,
  min,
  mod,
  pow,
  prelu,
  less,
  less_equal,
  greater,
  greater_equal,
  equal,
  both,
  either,
  differ,
  inverse,
  where,
  is_nan,
  is_inf,
};
struct Named {
  std::string_view name;
  Op op;
  int registers;
};
constexpr Named kNames[] = {
    {"Number", Op::number, 0},   {"Cast", Op::copy, 1},
    {"Add", Op::add, 2},         {"Sub", Op::sub, 2},
    {"Mul", Op::mul, 2},         {"Div", Op::div, 2},
    {"Less", Op::less, 2},       {"LessOrEqual", Op::less_equal, 2},
    {"Greater", Op::greater, 2}, {"GreaterOrEqual", Op::greater_equal, 2},
    {"Equal", Op::equal, 2},     {"And", Op::both, 2},
    {"Or", Op::either, 2},       {"Not", Op::inverse, 1},
    {"Where", Op::where, 3},     {"Xor", Op::differ, 2},
    {"Max", Op::max, 2},         {"Min", Op::min, 2},
    {"Mod", Op::mod, 2},         {"Pow", Op::pow, 1},
    {"PRelu", Op::prelu, 2},     {"IsNaN", Op::is_nan, 1},
    {"IsInf", Op::is_inf, 1},
};

struct Step {
  Op op = Op::copy;
  const UnaryFunction* function = nullptr;
  int registers[3] = {};
  float numbers[2] = {};
};

// The walk of an input beside the output: loops from the outermost to the innermost.
struct Walk { Dims sizes, steps; };

Walk walk_of(const Dims& dims, const Dims& target) {
  Walk walk;
  const size_t missing = target.size() - dims.size();
  int64_t step = 1;
  Dims steps(target.size());
  for (size_t axis = target.size(); axis-- > missing;) {
    steps[axis] = dims[axis - missing] == 1 ? 0 : step;
    step *= dims[axis - missing];
  }
  for (size_t axis = 0; axis < target.size(); ++axis) {
    if (target[axis] == 1) continue;
    if (!walk.sizes.empty() && walk.steps.back() == steps[axis] * target[axis]) {
      walk.sizes.back() *= target[axis], walk.steps.back() = steps[axis];
    } else {
      walk.sizes.push_back(target[axis]), walk.steps.push_back(steps[axis]);
    }
  }
  if (walk.sizes.empty()) walk = {{1}, {0}};
  return walk;
}

template <class T>
void copy_run(const T* from, int64_t step, int64_t count, float* to) {
  if (step == 0) return void(std::fill_n(to, count, static_cast<float>(*from)));
  if constexpr (std::is_same_v<T, float>)
    if (step == 1) return void(std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float)));
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i * step]);
}

void read_run(const Tensor& x, int64_t at, int64_t step, int64_t count, float* to) {
  switch (x.dtype) {
    case DType::int64: return copy_run(x.data<int64_t>() + at, step, count, to);
    case DType::int32: return copy_run(x.data<int32_t>() + at, step, count, to);
    case DType::bool_: return copy_run(static_cast<const uint8_t*>(x.storage->data()) + at, step, count, to);
    default: return copy_run(x.data<float>() + at, step, count, to);
  }
}

// Elements [start, start + count) of the input in the order of the walk: in place, or in `space`.
const float* read(const Tensor& x, const Walk& walk, int64_t start, int64_t count, float* space) {
  const size_t last = walk.sizes.size() - 1;
  const int64_t inner = walk.sizes[last], step = walk.steps[last];
  if (last == 0 && step == 1 && x.dtype == DType::float32) return x.data<float>() + start;
  for (int64_t done = 0; done < count;) {
    auto index = static_cast<uint32_t>(start + done);  // 64-bit divisions are slow
    int64_t at = 0;
    const int64_t within = index % static_cast<uint32_t>(inner);
    index /= static_cast<uint32_t>(inner);
    for (size_t axis = last; axis-- > 0;) {
      const auto size = static_cast<uint32_t>(walk.sizes[axis]);
      at += index % size * walk.steps[axis];
      index /= size;
    }
    at += within * step;
    const int64_t run = std::min(inner - within, count - done);
    if (run == count && step == 1 && x.dtype == DType::float32) return x.data<float>() + at;
    read_run(x, at, step, run, space + done);
    done += run;
  }
  return space;
}

template <class F>
void each(float* y, F f) {
  for (int64_t i = 0; i < kBlock; i += 4) simd::store(y + i, f(i));
}
v128_t truth(v128_t mask) { return wasm_v128_and(mask, simd::splat(1)); }
v128_t is_nan(v128_t a) { return wasm_f32x4_ne(a, a); }

// Whole blocks: elements past the end are computed too, and not read.
void execute(const Step& step, const float* a, const float* b, const float* c, float* y) {
  using namespace simd;
  switch (step.op) {
    case Op::function: return apply_unary(*step.function, {step.numbers[0], step.numbers[1]}, a, y, kBlock);
    case Op::number: return void(std::fill_n(y, kBlock, step.numbers[0]));
    case Op::copy: return void(std::copy_n(a, kBlock, y));
    case Op::add: return each(y, [&](int64_t i) { return add(load(a + i), load(b + i)); });
    case Op::sub: return each(y, [&](int64_t i) { return sub(load(a + i), load(b + i)); });
    case Op::mul: return each(y, [&](int64_t i) { return mul(load(a + i), load(b + i)); });
    case Op::div: return each(y, [&](int64_t i) { return div(load(a + i), load(b + i)); });
    case Op::max:
      return each(y, [&](int64_t i) {
        return select(wasm_v128_or(is_nan(load(a + i)), wasm_f32x4_gt(load(a + i), load(b + i))), load(a + i),
                      load(b + i));
      });
    case Op::min:
      return each(y, [&](int64_t i) {
        return select(wasm_v128_or(is_nan(load(a + i)), wasm_f32x4_lt(load(a + i), load(b + i))), load(a + i),
                      load(b + i));
      });
    case Op::mod:
      for (int64_t i = 0; i < kBlock; ++i) y[i] = std::fmod(a[i], b[i]);
      return;
    case Op::pow: return powers(a, step.numbers[0], y, kBlock);
    case Op::prelu:
      return each(y, [&](int64_t i) {
        return select(wasm_f32x4_lt(load(a + i), splat(0)), mul(load(a + i), load(b + i)), load(a + i));
      });
    case Op::less: return each(y, [&](int64_t i) { return truth(wasm_f32x4_lt(load(a + i), load(b + i))); });
    case Op::less_equal: return each(y, [&](int64_t i) { return truth(wasm_f32x4_le(load(a + i), load(b + i))); });
    case Op::greater: return each(y, [&](int64_t i) { return truth(wasm_f32x4_gt(load(a + i), load(b + i))); });
    case Op::greater_equal: return each(y, [&](int64_t i) { return truth(wasm_f32x4_ge(load(a + i), load(b + i))); });
    case Op::equal: return each(y, [&](int64_t i) { return truth(wasm_f32x4_eq(load(a + i), load(b + i))); });
    case Op::both: return each(y, [&](int64_t i) { return mul(load(a + i), load(b + i)); });
    case Op::either: return each(y, [&](int64_t i) { return at_least(load(a + i), load(b + i)); });
    case Op::differ: return each(y, [&](int64_t i) { return truth(wasm_f32x4_ne(load(a + i), load(b + i))); });
    case Op::inverse: return each(y, [&](int64_t i) { return sub(splat(1), load(a + i)); });
    case Op::where:
      return each(y, [&](int64_t i) { return select(wasm_f32x4_ne(load(a + i), splat(0)), load(b + i), load(c + i)); });
    case Op::is_nan: return each(y, [&](int64_t i) { return truth(is_nan(load(a + i))); });
    case Op::is_inf: {  // numbers: true if the positive and the negative infinity count
      const v128_t infinity = splat(__builtin_inff()), positive = splat(step.numbers[0]),
                   negative = splat(step.numbers[1]);
      return each(y, [&](int64_t i) {
        const v128_t x = load(a + i);
        return add(wasm_v128_and(wasm_f32x4_eq(x, infinity), positive),
                   wasm_v128_and(wasm_f32x4_eq(x, wasm_f32x4_neg(infinity)), negative));
      });
    }
  }
}

// The instructions of a program.
class Program {
 public:
  static Status make(std::string_view text, Program& out) {
    std::vector<Instruction> instructions;
    PY_ORT_TRY(parse_program(text, instructions));
    for (const Instruction& instruction : instructions) PY_ORT_TRY(add(instruction, out.steps_.emplace_back()));
    return {};
  }

  bool empty() const { return steps_.empty(); }
  size_t size() const { return steps_.size(); }

  // Checks that instructions read only earlier registers.
  Status check(size_t inputs) const {
    for (size_t i = 0; i < steps_.size(); ++i)
      for (int source : steps_[i].registers)
        PY_ORT_ENSURE(static_cast<size_t>(source) < inputs + i || steps_[i].op == Op::number, "instruction ", i,
                      " reads register ", source);
    return {};
  }

  // Runs a block: the inputs are in `at`, which receives the results too. Each register has kBlock floats of its own in
  // `space`; the last result goes to `to`.
  void run(std::vector<const float*>& at, size_t inputs, float* space, float* to) const {
    for (size_t i = 0; i < steps_.size(); ++i) {
      const auto source = [&](int k) { return at[static_cast<size_t>(steps_[i].registers[k])]; };
      float* const result = i + 1 == steps_.size() ? to : space + static_cast<int64_t>(inputs + i) * kBlock;
      execute(steps_[i], source(0), source(1), source(2), result);
      at[inputs + i] = result;
    }
  }

 private:
  static Status add(const Instruction& from, Step& out) {
    const auto found =
        std::find_if(std::begin(kNames), std::end(kNames), [&](const Named& n) { return n.name == from.op; });
    size_t expected = 1;
    if (found != std::end(kNames)) {
      out.op = found->op, expected = static_cast<size_t>(found->registers);
    } else {
      out.op = Op::function, out.function = find_unary(from.op);
      if (!out.function) return not_implemented("ElementwiseChain of ", from.op);
    }
    PY_ORT_ENSURE(from.registers.size() == expected, from.op, " of ElementwiseChain reads ", expected,
                  " registers, not ", from.registers.size());
    std::copy(from.registers.begin(), from.registers.end(), out.registers);
    std::copy(from.numbers.begin(), from.numbers.end(), out.numbers);
    return {};
  }
  std::vector<Step> steps_;
};

class ElementwiseChain {
 public:
  static Status make(const KernelInfo& info, ElementwiseChain& out) {
    PY_ORT_TRY(Program::make(info.attributes.text(dialect::kProgram, ""), out.program_));
    PY_ORT_ENSURE(!out.program_.empty(), "ElementwiseChain needs a program");
    const std::string reduction = info.attributes.text(dialect::kReduction, "");
    if (reduction.empty()) return {};
    out.reduction_ = find_reduction(reduction);
    if (!out.reduction_ || out.reduction_->finish == Finish::log_of_exps)
      return not_implemented("ElementwiseChain with ", reduction);
    out.axes_ = info.attributes.integers("axes");
    out.keep_ = info.attributes.integer("keepdims", 1) != 0;
    PY_ORT_TRY(Program::make(info.attributes.text(dialect::kFinish, ""), out.finish_));
    return out.finish_.check(1);
  }

  Status operator()(KernelContext& context) const {
    const size_t inputs = context.input_count();
    Dims dims;
    for (size_t i = 0; i < inputs; ++i) {
      Dims wider;
      PY_ORT_TRY(broadcast_dims(dims, context.input(i)->dims, wider));
      dims = wider;
    }
    PY_ORT_TRY(program_.check(inputs));
    Tensor *y, space;
    const auto registers = std::max(inputs + program_.size(), 1 + finish_.size());
    PY_ORT_TRY(Tensor::make(DType::float32, {static_cast<int64_t>(registers), kBlock}, space));
    std::fill_n(space.mutable_data<float>(), space.count(), 0.0f);
    std::vector<const float*> at(registers);
    if (!reduction_) {
      PY_ORT_TRY(context.output(0, DType::float32, dims, y));
      float* const result = y->mutable_data<float>();
      compute(context, dims, space, at, [&](int64_t start, int64_t count) {
        return count == kBlock ? result + start : nullptr;
      }, [&](const float* made, int64_t start, int64_t count) {
        if (count < kBlock) std::copy_n(made, count, result + start);
      });
      return {};
    }
    std::vector<int64_t> axes = axes_;
    PY_ORT_TRY(normalize_axes(axes, static_cast<int64_t>(dims.size())));
    const ReducedAxes reduced = reduced_axes(dims, axes, keep_);
    PY_ORT_TRY(context.output(0, DType::float32, reduced.dims, y));
    ReduceStream stream(reduction_->step, dims, reduced, y->mutable_data<float>(), y->count());
    compute(context, dims, space, at, [](int64_t, int64_t) { return nullptr; },
            [&](const float* made, int64_t, int64_t count) { stream.take(made, count); });
    finish_totals(reduction_->finish, y->mutable_data<float>(), y->count(), reduced.count);
    if (!finish_.empty()) finish(*y, space, at);
    return {};
  }

 private:
  // Block by block. `place`: returns the block's destination, or null; `take`: receives the block.
  template <class Place, class Take>
  void compute(KernelContext& context, const Dims& dims, Tensor& space, std::vector<const float*>& at, Place place,
               Take take) const {
    const size_t inputs = context.input_count();
    std::vector<Walk> walks;
    for (size_t i = 0; i < inputs; ++i) walks.push_back(walk_of(context.input(i)->dims, dims));
    const auto own = [&](size_t i) { return space.mutable_data<float>() + static_cast<int64_t>(i) * kBlock; };
    const int64_t total = element_count(dims);
    for (int64_t start = 0; start < total; start += kBlock) {
      const int64_t count = std::min(kBlock, total - start);
      for (size_t i = 0; i < inputs; ++i) {
        at[i] = read(*context.input(i), walks[i], start, count, own(i));
        if (count < kBlock && at[i] != own(i)) at[i] = std::copy_n(at[i], count, own(i)) - count;
      }
      float* const there = place(start, count);
      float* const to = there ? there : own(inputs + program_.size() - 1);
      program_.run(at, inputs, own(0), to);
      take(to, start, count);
    }
  }

  void finish(Tensor& y, Tensor& space, std::vector<const float*>& at) const {
    float* const first = space.mutable_data<float>();
    float* const last = first + static_cast<int64_t>(finish_.size()) * kBlock;
    for (int64_t start = 0, total = y.count(); start < total; start += kBlock) {
      const int64_t count = std::min(kBlock, total - start);
      float* const values = y.mutable_data<float>() + start;
      std::copy_n(values, count, first);
      at[0] = first;
      finish_.run(at, 1, first, last);
      std::copy_n(last, count, values);
    }
  }

  Program program_;
  const Reduction* reduction_ = nullptr;  // of the results, if any
  std::vector<int64_t> axes_;
  Program finish_;  // of one input
  bool keep_ = true;
};

PY_ORT_KERNEL(dialect::kInternalDomain, dialect::kElementwiseChain, "float32,int32,int64,bool", ElementwiseChain);

}  // namespace
}  // namespace py_ort
