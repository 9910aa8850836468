// f32 attention: a block of rows of a head at a time, whose scores stay in the cache.
#include "microkernels/few_rows.h"
#include "py_ort/microkernels.h"

extern "C" {
void PY_ORT_FOR_TARGET(f32_gemm_6x8)(const void* arguments, void* scratch, int32_t begin, int32_t end);
void PY_ORT_FOR_TARGET(f32_softmax_1x4)(const void* arguments, void* scratch, int32_t begin, int32_t end);
}

namespace py_ort::PY_ORT_TARGET {
namespace {

constexpr float kMasked = -__builtin_inff();

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

void fill(float* to, int64_t begin, int64_t end, float value) {
  for (int64_t i = begin; i < end; ++i) to[i] = value;
}

void cap(float limit, float* scores, int64_t count) {
  const v128_t factor = simd::splat(limit);
  for_vectors(0, count, [&](int32_t i, int32_t left) {
    store_some(scores + i, simd::mul(simd::tanh(simd::div(load_some(scores + i, left), factor)), factor), left);
  });
}

// Rows [first, first + rows) of a head.
class Block {
 public:
  Block(const F32Attention& p, void* scratch, int64_t head, int64_t first)
      : p_(p), gemm_scratch_(scratch), bias_(reinterpret_cast<float*>(static_cast<char*>(scratch) + F32Gemm::kScratch)),
        scores_(bias_ + p.bias_bytes() / sizeof(float)), batch_(head / p.heads), head_(head % p.heads),
        kv_head_(head_ / (p.heads / p.kv_heads)), first_(first), rows_(least(p.block_rows(), p.rows - first)) {
    // The place of keys and values among the packed ones.
    packed_ = batch_ * p.kv_heads + kv_head_ - p.first_head / (p.heads / p.kv_heads);
    for (int32_t i = 0; i < p.bias_count; ++i) bias_by_row_ = bias_by_row_ || p.bias[i].row_step != 0;
  }

  void attend() {
    multiply_keys();
    for (int64_t row = 0; row < rows_; ++row) finish(row, scores_ + row * p_.width());
    multiply_values();
  }

 private:
  void multiply_keys() {
    const float* q = p_.q.at(batch_, head_) + first_ * p_.q.row_step;
    if (p_.packed_k) return multiply(q, p_.q.row_step, p_.qk_size, p_.packed_k, p_.columns, scores_, p_.width());
    for (int64_t row = 0; row < rows_; ++row, q += p_.q.row_step) {
      float* to = scores_ + row * p_.width();
      row_times_columns(q, p_.k.at(batch_, kv_head_), p_.k.row_step, p_.qk_size, p_.columns, to);
      for (int64_t j = 0; j < p_.columns; ++j) to[j] *= p_.scale;
    }
  }

  void multiply_values() {
    float* y = const_cast<float*>(p_.y.at(batch_, head_)) + first_ * p_.y.row_step;
    if (p_.packed_v) return multiply(scores_, p_.width(), p_.columns, p_.packed_v, p_.v_size, y, p_.y.row_step);
    for (int64_t row = 0; row < rows_; ++row, y += p_.y.row_step)
      row_times_rows(scores_ + row * p_.width(), p_.v.at(batch_, kv_head_), p_.v.row_step, p_.columns, p_.v_size, y);
  }

  void multiply(const float* a, int64_t a_step, int64_t k, const float* packed, int64_t n, float* c, int64_t c_step) {
    F32Gemm g;
    g.rows = static_cast<int32_t>(rows_), g.n = static_cast<int32_t>(n), g.k = static_cast<int32_t>(k);
    g.a = a, g.a_stride = static_cast<int32_t>(a_step);
    g.b = packed + packed_ * ((n + F32Gemm::kColumns - 1) / F32Gemm::kColumns * F32Gemm::kColumns * k);
    g.c = c, g.c_stride = static_cast<int32_t>(c_step);
    PY_ORT_FOR_TARGET(f32_gemm_6x8)(&g, gemm_scratch_, 0, g.units());
  }

  // From products to weights.
  void finish(int64_t row, float* scores) {
    show(F32Attention::product, row, scores);
    if (p_.softcap > 0) cap(p_.softcap, scores, p_.columns);
    show(F32Attention::capped, row, scores);
    if (p_.dropped) drop(first_ + row, scores);
    const bool seen = mask(row, scores);
    if (p_.sink) scores[p_.columns] = p_.sink[head_];
    show(F32Attention::biased, row, scores);
    F32Softmax s;
    s.outer = 1, s.n = static_cast<int32_t>(p_.width());
    s.x = s.y = scores;
    PY_ORT_FOR_TARGET(f32_softmax_1x4)(&s, nullptr, 0, 1);
    if (!seen) fill(scores, 0, p_.columns, p_.nan_rows ? __builtin_nanf("") : 0.0f);  // nothing to attend to
    show(F32Attention::softmax, row, scores);
  }

  void show(F32Attention::Stage stage, int64_t row, const float* scores) const {
    if (!p_.scores || p_.stage != stage) return;
    float* to = p_.scores + ((batch_ * p_.heads + head_) * p_.rows + first_ + row) * p_.columns;
    for (int64_t i = 0; i < p_.columns; ++i) to[i] = scores[i];
  }

  // Adds the biases, and masks the columns that the row does not see. Returns false if it sees none.
  bool mask(int64_t row, float* scores) {
    const int64_t at = first_ + row + (p_.offset ? p_.offset[batch_] : 0);
    int64_t begin = 0, end = p_.columns;
    if (p_.causal) end = least(end, at + 1);
    if (p_.right_window >= 0) end = least(end, at + p_.right_window + 1);
    if (p_.left_window >= 0 && at - p_.left_window > 0) begin = least(at - p_.left_window, p_.columns);
    if (p_.length) end = least(end, p_.length[batch_]);
    if (end < begin) end = begin;
    fill(scores, 0, begin, kMasked);
    fill(scores, end, p_.columns, kMasked);
    if (p_.bias_count == 0) return begin < end;
    if (row == 0 || bias_by_row_) sum_biases(first_ + row);
    const v128_t masked = simd::splat(kMasked);
    v128_t seen = simd::splat(0);
    for_vectors(begin, end, [&](int32_t j, int32_t left) {
      const v128_t b = load_some(bias_ + j, left), open = wasm_f32x4_ne(b, masked);
      // A masked score stays masked whatever it is, infinity and NaN too.
      store_some(scores + j, simd::select(open, simd::add(load_some(scores + j, left), b), masked), left);
      seen = wasm_v128_or(seen, keep_some(open, left));
    });
    return wasm_v128_any_true(seen);
  }

  const float* at(const ScoreBias& b, int64_t row) const {
    return b.data + batch_ * b.batch_step + head_ * b.head_step + row * b.row_step;
  }

  void drop(int64_t row, float* scores) const {
    const float* dropped = at(*p_.dropped, row);
    if (!p_.dropped->one_column) {
      for (int64_t j = 0; j < p_.columns; ++j) scores[j] = dropped[j] != 0 ? 0.0f : scores[j];
    } else if (*dropped != 0) {
      fill(scores, 0, p_.columns, 0.0f);
    }
  }

  void sum_biases(int64_t row) {
    fill(bias_, 0, p_.columns, 0.0f);
    for (int32_t i = 0; i < p_.bias_count; ++i) {
      const ScoreBias& b = p_.bias[i];
      const float* from = at(b, row);
      if (b.one_column) {
        for (int64_t j = 0; j < p_.columns; ++j) bias_[j] += *from;
        continue;
      }
      const int64_t known = least(b.columns, p_.columns);
      for (int64_t j = 0; j < known; ++j) bias_[j] += from[j];
      fill(bias_, known, p_.columns, kMasked);
    }
  }

  const F32Attention& p_;
  void* gemm_scratch_;
  float *bias_, *scores_;  // [columns], [rows, width]
  int64_t batch_, head_, kv_head_, first_, rows_, packed_ = 0;
  bool bias_by_row_ = false;
};

}  // namespace

PY_ORT_MICROKERNEL(f32_attention)(const void* arguments, void* scratch, int32_t begin, int32_t end) {
  const F32Attention& p = *static_cast<const F32Attention*>(arguments);
  const auto blocks = static_cast<int32_t>(p.blocks());
  for (int32_t unit = begin; unit < end; ++unit)
    Block(p, scratch, p.first_head + unit / blocks, unit % blocks * p.block_rows()).attend();
}

}  // namespace py_ort::PY_ORT_TARGET
