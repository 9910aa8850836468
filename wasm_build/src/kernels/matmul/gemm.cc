// Gemm, and com.microsoft's FusedGemm: alpha A B + beta C, with an epilogue.
#include "kernels/shared/derived.h"
#include "kernels/matmul/epilogue.h"
#include "kernels/shared/half_precision.h"
#include "kernels/matmul/product.h"
#include "py_ort/gen/dialect.h"
#include "py_ort/kernel_features.h"

namespace py_ort {
namespace {

class Gemm {
 public:
  static Status make(const KernelInfo& info, Gemm& out) {
    const Attributes& a = info.attributes;
    out.packed_columns_ = a.integer(dialect::kPackedN, -1);
    out.alpha_ = a.number("alpha", 1), out.beta_ = a.number("beta", 1);
    out.transposed_[0] = a.integer("transA", 0), out.transposed_[1] = a.integer("transB", 0);
    return ProductEpilogue::read(info, out.epilogue_);
  }

  Status operator()(KernelContext& context) const {
    const Tensor &a = *context.input(0), &b = *context.input(1);
    const Tensor* c = context.input(dialect::kProductBias);
    if (c && c->count() == 0) c = nullptr;
    PY_ORT_ENSURE(a.rank() == 2, "Gemm's A must be a matrix, but its shape is ", a.dims);
    Shape s{a.dims[transposed_[0]], 0, a.dims[!transposed_[0]]};
    if (packed_columns_ >= 0) {
      PY_ORT_ENSURE(b.rank() == 3 && b.dims[0] == (packed_columns_ + 7) / 8 && b.dims[1] == s.k && b.dims[2] == 8,
                    "packed B of ", packed_columns_, " columns has the shape ", b.dims, " and A ", a.dims);
      s.n = packed_columns_;
    } else {
      PY_ORT_ENSURE(b.rank() == 2 && b.dims[transposed_[1]] == s.k, "cannot multiply ", a.dims,
                    transposed_[0] ? " (transposed)" : "", " by ", b.dims, transposed_[1] ? " (transposed)" : "");
      s.n = b.dims[!transposed_[1]];
    }
    if (c) {
      const int64_t rows = c->rank() > 1 ? c->dim(-2) : 1, columns = c->rank() > 0 ? c->dim(-1) : 1;
      PY_ORT_ENSURE(c->rank() <= 2 && (rows == 1 || rows == s.m) && (columns == 1 || columns == s.n),
                    "Gemm's C of shape ", c->dims, " does not broadcast to [", s.m, ",", s.n, "]");
    }
    const Tensor* z;
    PY_ORT_TRY(epilogue_.residual(context, {s.m, s.n}, z));
    if (z && c && c->rank() > 1 && c->dim(-2) != 1)
      return not_implemented("a residual fused into a Gemm whose C has rows of its own");
    Tensor* y;
    // With panels each element of the residual is read just before the result replaces it.
    if (z && (packed_columns_ >= 0 || b.storage->constant()))
      PY_ORT_TRY(context.output(0, a.dtype, {s.m, s.n}, y, {3}));
    else PY_ORT_TRY(context.output(0, a.dtype, {s.m, s.n}, y));
    if (y->count() == 0) return {};
    if (z && a.dtype != DType::float32) return not_implemented("a residual fused into a Gemm of ", dtype_name(a.dtype));
    switch (a.dtype) {
      case DType::float32: return floats(s, a, b, c, z, *y);
      case DType::float64: return plain<double>(s, a, b, c, *y);
      case DType::int32: return plain<int32_t>(s, a, b, c, *y);
      case DType::uint32: return plain<uint32_t>(s, a, b, c, *y);
      case DType::int64: return plain<int64_t>(s, a, b, c, *y);
      case DType::uint64: return plain<uint64_t>(s, a, b, c, *y);
      default: return not_implemented("Gemm of ", dtype_name(a.dtype));
    }
  }

 private:
  struct Shape { int64_t m, n, k; };

  template <class T>
  Matrix<T> operand(const Tensor& tensor, bool transposed) const {
    const Matrix<T> m = row_major(tensor.data<T>(), tensor.dims[0], tensor.dims[1]);
    return transposed ? m.transposed() : m;
  }
  // C as a matrix of the result's shape: repeated axes have step 0.
  template <class T>
  static Matrix<T> addend(const Tensor& c, const Shape& s) {
    const bool rows = c.rank() > 1 && c.dim(-2) != 1, columns = c.rank() > 0 && c.dim(-1) != 1;
    return {c.data<T>(), s.m, s.n, rows ? c.dim(-1) : 0, columns ? 1 : 0};
  }

  Status floats(const Shape& s, const Tensor& a, const Tensor& b, const Tensor* c, const Tensor* z, Tensor& y) const {
    ProductEnd end;
    end.c = y.mutable_data<float>();
    end.c_stride = s.n;
    end.z = z ? z->data<float>() : nullptr;
    end.z_stride = s.n;
    end.epilogue = epilogue_.form();
    Tensor spread;
    if (c && beta_ != 0) {
      const Matrix<float> from = addend<float>(*c, s);
      if (beta_ == 1 && from.column_step == 1) {
        (from.row_step == 0 ? end.bias : end.z) = from.data;
        if (from.row_step != 0) end.z_stride = from.row_step;
      } else {
        const int64_t rows = from.row_step == 0 ? 1 : s.m;
        PY_ORT_TRY(Tensor::make(DType::float32, {rows, s.n}, spread));
        float* to = spread.mutable_data<float>();
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < s.n; ++j) *to++ = beta_ * from.data[i * from.row_step + j * from.column_step];
        (rows == 1 ? end.bias : end.z) = spread.data<float>();
        if (rows != 1) end.z_stride = s.n;
      }
    }
    const Matrix<float> left = operand<float>(a, transposed_[0]);
    if (packed_columns_ >= 0) return multiply_panels(left, b.data<float>(), s.n, end);
    const Matrix<float> right = operand<float>(b, transposed_[1]);
    if (!b.storage->constant()) return multiply(left, right, alpha_, end);
    const Tensor* panels;
    PY_ORT_TRY(panels_.get(b, panels, [&](Tensor& out) -> Status {
      PY_ORT_TRY(Tensor::make(DType::float32, {static_cast<int64_t>(panels_size(s.k, s.n))}, out));
      pack_panels(right, alpha_, out.mutable_data<float>());
      return {};
    }));
    return multiply_panels(left, panels->data<float>(), s.n, end);
  }

  template <class T>
  Status plain(const Shape& s, const Tensor& a, const Tensor& b, const Tensor* c, Tensor& y) const {
    if (packed_columns_ >= 0 || !epilogue_.empty())
      return not_implemented("packed operands and epilogues of a Gemm of ", dtype_name(a.dtype));
    T* to = y.mutable_data<T>();
    multiply_plainly(operand<T>(a, transposed_[0]), operand<T>(b, transposed_[1]), to);
    const Matrix<T> plus = c ? addend<T>(*c, s) : Matrix<T>{};
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.n; ++j, ++to) {
        const T sum = static_cast<T>(alpha_ * static_cast<double>(*to));
        *to = c ? static_cast<T>(sum + static_cast<T>(beta_ * static_cast<double>(
                                                                  plus.data[i * plus.row_step + j * plus.column_step])))
                : sum;
      }
    }
    return {};
  }

  int64_t packed_columns_ = -1;
  float alpha_ = 1, beta_ = 1;
  bool transposed_[2] = {};
  ProductEpilogue epilogue_;
  Derived<Tensor> panels_;
};

PY_ORT_KERNEL("", "Gemm", "=float32,float16,bfloat16,float64,int32,uint32,int64,uint64", WithHalf<Gemm>);
PY_ORT_FEATURES("", "Gemm", "epilogue,residual");

}  // namespace
}  // namespace py_ort
