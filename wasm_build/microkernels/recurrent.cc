// The steps of RNN, GRU and LSTM: products of the states with R, and the gates.
#include "py_ort/recurrent_steps.h"
#include "kernels/quantization/dynamic_range.h"
#include "microkernels/activation.h"

extern "C" {
void PY_ORT_FOR_TARGET(f32_gemm_6x8)(const void* arguments, void* scratch, int32_t begin, int32_t end);
void PY_ORT_FOR_TARGET(i8_gemm_6x8)(const void* arguments, void* scratch, int32_t begin, int32_t end);
}

namespace py_ort::PY_ORT_TARGET {
namespace {

constexpr int32_t kPanel = F32Gemm::kColumns;

// y[i] = f(i), four at a time, in whole vectors: rows of states and gates are padded.
template <class F>
inline void each(float* y, int32_t count, const F& f) {
#pragma clang loop unroll(disable)
  for (int32_t i = 0; i < count; i += 4) simd::store(y + i, f(i));
}

// x = activation(clip(x))
inline void activate(const Activation& activation, float clip, float* x, int32_t count) {
  if (clip > 0)
    each(x, count, [&](int32_t i) {
      return simd::at_least(simd::at_most(simd::load(x + i), simd::splat(clip)), simd::splat(-clip));
    });
  if (activation.kind != Activation::none) activate_slowly(activation, -0.0f, x, x, count);
}

// Columns [first, first + count) of each gate of one direction.
class Columns {
 public:
  Columns(const RecurrentSteps& p, void* scratch, int32_t direction, int32_t first, int32_t last)
      : p_(p), d_(p.direction[direction]), first_(first), count_(last - first), scratch_(scratch) {
    if (!p.quantizes()) return;
    states_ = reinterpret_cast<float*>(static_cast<char*>(scratch) + (p.product_bytes()));
    bytes_ = reinterpret_cast<uint8_t*>(states_) + p.states_bytes();
    sums_ = reinterpret_cast<float*>(bytes_ + p.state_bytes());
  }

  void step(int32_t step, int32_t phase) {
    step_ = step;
    const ptrdiff_t half = static_cast<ptrdiff_t>(p_.batch) * p_.width;
    before_ = d_.h_states + step % 2 * half, after_ = d_.h_states + (1 - step % 2) * half;
    if (phase == 0) begin();
    if (p_.cell == RecurrentSteps::gru) {
      if (phase == 0) reset();
      if (phase == p_.phases() - 1) finish_gru();
    } else {
      multiply(before_, p_.width, 0, p_.gates());
      for (int32_t b = 0; b < p_.batch; ++b)
        if (active(b)) p_.cell == RecurrentSteps::lstm ? finish_lstm(b) : finish_rnn(b);
    }
    if (phase == p_.phases() - 1) show();
  }

 private:
  bool active(int32_t b) const { return step_ < p_.lengths[b]; }
  int64_t time(int32_t b) const { return d_.reverse ? p_.lengths[b] - 1 - step_ : step_; }
  // Gate i of a row, from the first of our columns on.
  float* gate(int32_t b, int32_t i) const {
    return d_.gates + (static_cast<ptrdiff_t>(b) * p_.gates() + i) * p_.width + first_;
  }
  float* row(float* rows, int32_t b) const { return rows + static_cast<ptrdiff_t>(b) * p_.width + first_; }

  // Gates begin with X's contribution. Products include all rows, even of sequences that have ended.
  void begin() {
    for (int32_t b = 0; b < p_.batch; ++b) {
      const float* from = d_.from_x + ((active(b) ? time(b) : 0) * p_.x_step + b * p_.x_batch) * p_.x_stride + first_;
      for (int32_t i = 0; i < p_.gates(); ++i, from += p_.width)
        each(gate(b, i), count_, [&](int32_t j) { return simd::load(from + j); });
    }
    if (p_.quantizes()) quantize();
  }

  // The states, dense and as bytes, all sequences by one range; sequences that had ended in the step before count as
  // zeros.
  void quantize() {
    float* to = states_;
    for (int32_t b = 0; b < p_.batch; ++b, to += p_.hidden) {
      const bool counts = step_ == 0 || step_ - 1 < p_.lengths[b];
      const float* from = before_ + static_cast<ptrdiff_t>(b) * p_.width;
      for (int32_t i = 0; i < p_.hidden; ++i) to[i] = counts ? from[i] : 0;
    }
    const int64_t count = static_cast<int64_t>(p_.batch) * p_.hidden;
    range_ = dynamic_range_of(states_, count);
    quantize_bytes(states_, count, range_.scale, range_.zero, {0, 255}, bytes_);
    if (d_.integers) return;
    for (int64_t i = 0; i < count; ++i) states_[i] = (static_cast<float>(bytes_[i]) - range_.zero) * range_.scale;
  }

  // gates += H R, for gates [from, to).
  void multiply(const float* h, int32_t h_stride, int32_t from, int32_t to) {
    if (d_.integers) {
      for (int32_t i = from; i < to; ++i) add_integers(i);
      return;
    }
    if (p_.quantizes()) h = states_, h_stride = p_.hidden;
    // R is read in alternating directions, so that the part that was last in a cache is used first.
    const bool back = step_ % 2;
    for (int32_t i = 0; i < to - from; ++i) {
      const int32_t at = back ? to - 1 - i : from + i;
      multiply(h, h_stride, at, nullptr, gate(0, at), gate(0, at), p_.gates() * p_.width);
    }
  }

  // C = H R + bias + Z, for one gate.
  void multiply(const float* h, int32_t h_stride, int32_t i, const float* bias, const float* z, float* c,
                int32_t stride) {
    F32Gemm g;
    g.rows = p_.batch, g.k = p_.hidden, g.n = count_;
    g.a = h, g.a_stride = h_stride;
    g.b = d_.r + (static_cast<size_t>(i) * p_.width + first_) * p_.hidden;
    g.bias = bias;
    g.z = z, g.c = c, g.z_stride = g.c_stride = stride;
    const int32_t tiles = g.units();
    g.column_pieces = (count_ + kColumnsAtOnce - 1) / kColumnsAtOnce;
    for (int32_t piece = 0; piece < g.column_pieces; ++piece) {
      const int32_t at = step_ % 2 ? g.column_pieces - 1 - piece : piece;
      PY_ORT_FOR_TARGET(f32_gemm_6x8)(&g, scratch_, at * tiles, (at + 1) * tiles);
    }
  }

  // gate i += its part of H R, in bytes
  void add_integers(int32_t i) {
    const int32_t first = i * p_.width + first_;
    float* scales = sums_ + static_cast<ptrdiff_t>(p_.batch) * count_;
    each(scales, count_,
         [&](int32_t j) { return simd::mul(simd::splat(range_.scale), simd::load(d_.r_scales + first + j)); });
    I8Gemm g = *d_.integers;
    g.skip_columns(first);
    g.rows = p_.batch, g.n = g.c_stride = count_;
    g.a = bytes_, g.a_zero = static_cast<int32_t>(range_.zero);
    g.scale = scales, g.c = sums_;
    PY_ORT_FOR_TARGET(i8_gemm_6x8)(&g, scratch_, 0, g.units());
    for (int32_t b = 0; b < p_.batch; ++b) {
      float* to = gate(b, i);
      const float* sums = sums_ + static_cast<ptrdiff_t>(b) * count_;
      each(to, count_, [&](int32_t j) { return simd::add(simd::load(to + j), simd::load(sums + j)); });
    }
  }

  void finish_rnn(int32_t b) {
    activate(d_.f, p_.clip, gate(b, 0), count_);
    each(row(after_, b), count_, [x = gate(b, 0)](int32_t i) { return simd::load(x + i); });
  }

  // Gates: update, reset, hidden.
  void reset() {
    multiply(before_, p_.width, 0, 2);
    for (int32_t b = 0; b < p_.batch; ++b) {
      activate(d_.f, p_.clip, gate(b, 0), count_);
      activate(d_.f, p_.clip, gate(b, 1), count_);
      if (p_.linear_before_reset) continue;
      const float *reset = gate(b, 1), *h = row(before_, b);
      each(row(d_.product, b), count_, [&](int32_t i) { return simd::mul(simd::load(reset + i), simd::load(h + i)); });
    }
  }
  void finish_gru() {
    if (p_.linear_before_reset) {
      multiply(before_, p_.width, 2, d_.r_bias ? d_.r_bias + first_ : nullptr, nullptr, row(d_.product, 0), p_.width);
      for (int32_t b = 0; b < p_.batch; ++b) {
        const float *reset = gate(b, 1), *product = row(d_.product, b);
        float* hidden = gate(b, 2);
        each(hidden, count_, [&](int32_t i) {
          return mul_add(simd::load(reset + i), simd::load(product + i), simd::load(hidden + i));
        });
      }
    } else {
      multiply(d_.product, p_.width, 2, 3);
    }
    for (int32_t b = 0; b < p_.batch; ++b) {
      if (!active(b)) continue;
      const float *update = gate(b, 0), *h = row(before_, b);
      float* hidden = gate(b, 2);
      activate(d_.g, p_.clip, hidden, count_);
      each(row(after_, b), count_, [&](int32_t i) {
        const v128_t u = simd::load(update + i);
        return mul_add(u, simd::load(h + i), simd::mul(simd::sub(simd::splat(1), u), simd::load(hidden + i)));
      });
    }
  }

  // Gates: input, output, forget, cell; the first three have peepholes.
  void finish_lstm(int32_t b) {
    float *input = gate(b, 0), *output = gate(b, 1), *forget = gate(b, 2), *cell = gate(b, 3);
    float *c = row(d_.c, b), *h = row(after_, b);
    const auto peep = [&](float* to, int32_t which) {
      const float* p = d_.peepholes + which * p_.width + first_;
      each(to, count_, [&](int32_t i) { return mul_add(simd::load(p + i), simd::load(c + i), simd::load(to + i)); });
    };
    if (d_.peepholes) peep(input, 0), peep(forget, 2);
    activate(d_.f, p_.clip, input, count_);
    if (p_.input_forget)
      each(forget, count_, [&](int32_t i) { return simd::sub(simd::splat(1), simd::load(input + i)); });
    else activate(d_.f, p_.clip, forget, count_);
    activate(d_.g, p_.clip, cell, count_);
    each(c, count_, [&](int32_t i) {
      return mul_add(simd::load(forget + i), simd::load(c + i), simd::mul(simd::load(input + i), simd::load(cell + i)));
    });
    if (d_.peepholes) peep(output, 1);
    activate(d_.f, p_.clip, output, count_);
    each(h, count_, [&](int32_t i) { return simd::load(c + i); });
    activate(d_.h, 0, h, count_);
    each(h, count_, [&](int32_t i) { return simd::mul(simd::load(h + i), simd::load(output + i)); });
  }

  // Sequences that have ended keep their states; the others store theirs in y.
  void show() {
    const int32_t columns = p_.hidden - first_ < count_ ? p_.hidden - first_ : count_;
    for (int32_t b = 0; b < p_.batch; ++b) {
      const float *h = row(before_, b), *next = row(after_, b);
      if (!active(b)) {
        each(row(after_, b), count_, [&](int32_t i) { return simd::load(h + i); });
        continue;
      }
      float* y = d_.y + time(b) * p_.y_step + b * p_.y_batch + first_;
      for (int32_t i = 0; i < columns; i += 4) store_some(y + i, simd::load(next + i), columns - i);
    }
  }

  static constexpr int32_t kColumnsAtOnce = 64;
  const RecurrentSteps& p_;
  const RecurrentSteps::Direction& d_;
  int32_t first_, count_;
  void* scratch_;
  int32_t step_ = 0;
  float *before_ = nullptr, *after_ = nullptr;
  float *states_ = nullptr, *sums_ = nullptr;  // [batch, hidden], [batch + 1, columns]: the last row has scales
  uint8_t* bytes_ = nullptr;
  DynamicRange range_{};
};

}  // namespace

PY_ORT_MICROKERNEL(recurrent_steps)(const void* arguments, void* scratch, int32_t begin, int32_t end) {
  const RecurrentSteps& p = *static_cast<const RecurrentSteps*>(arguments);
  const int32_t panels = p.width / kPanel;
  for (int32_t unit = begin; unit < end; ++unit) {
    const int32_t direction = unit / p.pieces, piece = unit % p.pieces;
    Columns columns(p, scratch, direction, panels * piece / p.pieces * kPanel,
                    panels * (piece + 1) / p.pieces * kPanel);
    if (p.pieces > 1) {
      columns.step(p.step, p.phase);
      continue;
    }
    for (int32_t step = 0; step < p.steps; ++step)
      for (int32_t phase = 0; phase < p.phases(); ++phase) columns.step(step, phase);
  }
}

}  // namespace py_ort::PY_ORT_TARGET
