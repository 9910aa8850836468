// MatMul, with a bias per column and an epilogue if Python fused them, and com.microsoft's FusedMatMul. With the
// attribute packed_n the second operand is in panels (docs/internals.md, section 3).
#include "kernels/shared/broadcast.h"
#include "kernels/shared/derived.h"
#include "kernels/matmul/epilogue.h"
#include "kernels/shared/half_precision.h"
#include "kernels/matmul/product.h"
#include "py_ort/gen/dialect.h"
#include "py_ort/kernel_features.h"
#include "kernels/shared/strided.h"

namespace py_ort {
namespace {

// A stack of matrices inside of a tensor.
struct Stack {
  Dims batch, batch_steps;
  int64_t rows = 1, columns = 1, row_step = 0, column_step = 0;
  bool vector = false;

  template <class T>
  Matrix<T> at(const Tensor& tensor, int64_t offset) const {
    return {tensor.data<T>() + offset, rows, columns, row_step, column_step};
  }
};

Stack left_stack(const Dims& dims, bool transposed, bool batch_transposed) {
  Stack s;
  Dims d = dims, steps = strides_of(dims);
  if (d.size() == 1) {
    s.vector = true;
    s.columns = d[0];
    s.column_step = 1;
    s.row_step = d[0];
    return s;
  }
  if (batch_transposed && d.size() > 2) {  // [rows, batch…, columns]
    std::rotate(d.begin(), d.begin() + 1, d.end() - 1);
    std::rotate(steps.begin(), steps.begin() + 1, steps.end() - 1);
  }
  const size_t r = d.size() - 2, c = d.size() - 1;
  s.rows = d[r], s.columns = d[c], s.row_step = steps[r], s.column_step = steps[c];
  if (transposed) std::swap(s.rows, s.columns), std::swap(s.row_step, s.column_step);
  s.batch.assign(d.begin(), d.end() - 2);
  s.batch_steps.assign(steps.begin(), steps.end() - 2);
  return s;
}
Stack right_stack(const Dims& dims, bool transposed, bool batch_transposed) {
  Stack s = left_stack(dims, transposed, batch_transposed);
  if (s.vector) std::swap(s.rows, s.columns), std::swap(s.row_step, s.column_step);
  return s;
}

class MatMul {
 public:
  static Status make(const KernelInfo& info, MatMul& out) {
    const Attributes& a = info.attributes;
    out.packed_columns_ = a.integer(dialect::kPackedN, -1);
    out.alpha_ = a.number("alpha", 1);
    out.transposed_[0] = a.integer("transA", 0), out.transposed_[1] = a.integer("transB", 0);
    out.batch_transposed_[0] = a.integer("transBatchA", 0), out.batch_transposed_[1] = a.integer("transBatchB", 0);
    return ProductEpilogue::read(info, out.epilogue_);
  }

  Status operator()(KernelContext& context) const {
    const Tensor &a = *context.input(0), &b = *context.input(1);
    PY_ORT_ENSURE(a.rank() > 0 && b.rank() > 0, "MatMul does not take scalars: ", a.dims, " times ", b.dims);
    const Stack left = left_stack(a.dims, transposed_[0], batch_transposed_[0]);
    Stack right;
    if (packed_columns_ >= 0) {
      PY_ORT_ENSURE(b.rank() == 3 && b.dims[0] == (packed_columns_ + 7) / 8 && b.dims[2] == 8, "packed B of ",
                    packed_columns_, " columns has the shape ", b.dims);
      right.rows = b.dims[1], right.columns = packed_columns_;
    } else {
      right = right_stack(b.dims, transposed_[1], batch_transposed_[1]);
    }
    PY_ORT_ENSURE(left.columns == right.rows, "cannot multiply ", a.dims, " by ", b.dims, ": ", left.columns,
                  " columns meet ", right.rows, " rows");
    Dims batch;
    PY_ORT_TRY(broadcast_dims(left.batch, right.batch, batch));
    Dims dims = batch;
    if (!left.vector) dims.push_back(left.rows);
    if (!right.vector) dims.push_back(right.columns);
    const Tensor* bias = context.input(dialect::kProductBias);
    PY_ORT_ENSURE(!bias || bias->count() == right.columns, "a bias of shape ", bias->dims, " does not fit ",
                  right.columns, " columns");
    const Tensor* z;
    PY_ORT_TRY(epilogue_.residual(context, dims, z));
    Tensor* c;
    // With panels each element of the residual is read just before the result replaces it.
    if (z && uses_panels(b, right)) PY_ORT_TRY(context.output(0, a.dtype, std::move(dims), c, {3}));
    else PY_ORT_TRY(context.output(0, a.dtype, std::move(dims), c));
    if (c->count() == 0) return {};
    if ((bias || z) && a.dtype != DType::float32)
      return not_implemented("a bias or a residual fused into a MatMul of ", dtype_name(a.dtype));
    switch (a.dtype) {
      case DType::float32: return floats(a, left, b, right, batch, bias ? bias->data<float>() : nullptr, z, *c);
      case DType::float64: return plain<double>(a, left, b, right, batch, *c);
      case DType::int32:
      case DType::uint32: return plain<uint32_t>(a, left, b, right, batch, *c);
      case DType::int64:
      case DType::uint64: return plain<uint64_t>(a, left, b, right, batch, *c);
      default: return not_implemented("MatMul of ", dtype_name(a.dtype));
    }
  }

 private:
  // True if a constant right operand is in panels, or is packed into them.
  bool uses_panels(const Tensor& b, const Stack& right) const {
    return packed_columns_ >= 0 || (b.storage->constant() && element_count(right.batch) == 1);
  }

  // Calls f(offset in a, offset in b, matrix index) for each matrix of the result.
  template <class F>
  static Status for_batches(const Stack& left, const Stack& right, const Dims& batch, F f) {
    const auto step = [&](const Stack& s, size_t axis) -> int64_t {
      const size_t missing = batch.size() - s.batch.size();
      return axis < missing || s.batch[axis - missing] == 1 ? 0 : s.batch_steps[axis - missing];
    };
    const int64_t count = element_count(batch);
    for (int64_t i = 0; i < count; ++i) {
      int64_t offsets[2] = {0, 0}, rest = i;
      for (size_t axis = batch.size(); axis-- > 0; rest /= batch[axis]) {
        offsets[0] += rest % batch[axis] * step(left, axis);
        offsets[1] += rest % batch[axis] * step(right, axis);
      }
      PY_ORT_TRY(f(offsets[0], offsets[1], i));
    }
    return {};
  }

  Status floats(const Tensor& a, const Stack& left, const Tensor& b, const Stack& right, const Dims& batch,
                const float* bias, const Tensor* z, Tensor& c) const {
    ProductEnd end;
    end.bias = bias;
    end.z = z ? z->data<float>() : nullptr;
    end.z_stride = right.columns;
    end.c = c.mutable_data<float>();
    end.c_stride = right.columns;
    end.epilogue = epilogue_.form();
    const bool one_right = element_count(right.batch) == 1;
    const bool stacked = left.column_step == 1 && left.row_step == left.columns && !batch_transposed_[0];
    const bool one_tall = one_right && stacked && batch.size() == left.batch.size();
    const Matrix<float> tall = row_major(a.data<float>(), element_count(left.batch) * left.rows, left.columns);
    if (one_tall && packed_columns_ < 0 && !b.storage->constant())
      return multiply(tall, right.at<float>(b, 0), alpha_, end);
    const float* panels = packed_columns_ >= 0 ? b.data<float>() : nullptr;
    if (!panels && one_right) {
      const Tensor* packed;
      PY_ORT_TRY(panels_.get(b, packed, [&](Tensor& out) -> Status {
        PY_ORT_TRY(Tensor::make(DType::float32, {static_cast<int64_t>(panels_size(right.rows, right.columns))}, out));
        pack_panels(right.at<float>(b, 0), alpha_, out.mutable_data<float>());
        return {};
      }));
      panels = packed->data<float>();
    }
    if (one_tall) return multiply_panels(tall, panels, right.columns, end);
    return for_batches(left, right, batch, [&](int64_t at_a, int64_t at_b, int64_t i) -> Status {
      ProductEnd here = end;
      here.c += i * left.rows * right.columns;
      if (here.z) here.z += i * left.rows * right.columns;
      if (panels) return multiply_panels(left.at<float>(a, at_a), panels, right.columns, here);
      return multiply(left.at<float>(a, at_a), right.at<float>(b, at_b), alpha_, here);
    });
  }

  template <class T>
  Status plain(const Tensor& a, const Stack& left, const Tensor& b, const Stack& right, const Dims& batch,
               Tensor& c) const {
    if (packed_columns_ >= 0 || alpha_ != 1 || !epilogue_.empty())
      return not_implemented("packed operands, alpha and epilogues of a MatMul of ", dtype_name(a.dtype));
    return for_batches(left, right, batch, [&](int64_t at_a, int64_t at_b, int64_t i) -> Status {
      multiply_plainly(left.at<T>(a, at_a), right.at<T>(b, at_b), c.mutable_data<T>() + i * left.rows * right.columns);
      return {};
    });
  }

  int64_t packed_columns_ = -1;
  float alpha_ = 1;
  bool transposed_[2] = {}, batch_transposed_[2] = {};
  ProductEpilogue epilogue_;
  Derived<Tensor> panels_;
};

#define PY_ORT_MATMUL_TYPES "float32,float16,bfloat16,float64,int32,uint32,int64,uint64"
PY_ORT_KERNEL("", "MatMul",
              PY_ORT_MATMUL_TYPES ";" PY_ORT_MATMUL_TYPES ";float32,float16,bfloat16;float32,float16,bfloat16",
              WithHalf<MatMul>);
PY_ORT_FEATURES("", "MatMul", "bias,epilogue,residual");
PY_ORT_KERNEL(kMicrosoftDomain, "FusedMatMul", "float32,float16,bfloat16", WithHalf<MatMul>);

}  // namespace
}  // namespace py_ort
