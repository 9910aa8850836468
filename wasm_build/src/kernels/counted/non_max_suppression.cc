#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/shared/axes.h"
#include "py_ort/kernel.h"

namespace py_ort {
namespace {

struct Box { float top, left, bottom, right; };

class NonMaxSuppression {
 public:
  explicit NonMaxSuppression(const KernelInfo& info) : center_(info.attributes.integer("center_point_box", 0) != 0) {}
  Status operator()(KernelContext& context) const {
    const Tensor &boxes = *context.input(0), &scores = *context.input(1);
    PY_ORT_ENSURE(boxes.rank() == 3 && boxes.dim(2) == 4 && scores.rank() == 3 && scores.dim(0) == boxes.dim(0) &&
                      scores.dim(2) == boxes.dim(1),
                  "NonMaxSuppression needs boxes [batches, boxes, 4] and scores [batches, classes, boxes], got ",
                  boxes.dims, " and ", scores.dims);
    int64_t most = 0;
    if (const Tensor* given = context.input(2)) PY_ORT_TRY(read_integer(*given, "max_output_boxes_per_class", most));
    const float most_overlap = scalar(context.input(3), 0), least_score = scalar(context.input(4), -INFINITY);
    const int64_t classes = scores.dim(1), count = boxes.dim(1);
    std::vector<int64_t> chosen;  // rows of batch, class, box
    std::vector<int64_t> candidates;
    std::vector<Box> kept;
    for (int64_t batch = 0; batch < boxes.dim(0); ++batch)
      for (int64_t c = 0; c < classes; ++c) {
        const float* score = scores.data<float>() + (batch * classes + c) * count;
        candidates.clear();
        for (int64_t i = 0; i < count; ++i)
          if (score[i] > least_score) candidates.push_back(i);
        std::stable_sort(candidates.begin(), candidates.end(),
                         [&](int64_t a, int64_t b) { return score[a] > score[b]; });
        kept.clear();
        for (const int64_t i : candidates) {
          if (static_cast<int64_t>(kept.size()) >= most) break;
          const Box box = corners(boxes.data<float>() + (batch * count + i) * 4);
          if (std::any_of(kept.begin(), kept.end(),
                          [&](const Box& other) { return overlap(box, other) > most_overlap; }))
            continue;
          kept.push_back(box);
          chosen.insert(chosen.end(), {batch, c, i});
        }
      }
    Tensor* out = nullptr;
    PY_ORT_TRY(context.output(0, DType::int64, {static_cast<int64_t>(chosen.size()) / 3, 3}, out));
    std::copy(chosen.begin(), chosen.end(), out->mutable_data<int64_t>());
    return {};
  }

 private:
  static float scalar(const Tensor* given, float otherwise) {
    return given && given->count() ? *given->data<float>() : otherwise;
  }
  // Any two opposite corners, or center and size.
  Box corners(const float* b) const {
    if (center_) return {b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
    return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
  }
  // Intersection over union.
  static float overlap(const Box& a, const Box& b) {
    const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top),
                width = std::min(a.right, b.right) - std::max(a.left, b.left);
    const auto area = [](const Box& box) { return (box.bottom - box.top) * (box.right - box.left); };
    if (height <= 0 || width <= 0 || area(a) <= 0 || area(b) <= 0) return 0;
    return height * width / (area(a) + area(b) - height * width);
  }
  bool center_;
};

PY_ORT_KERNEL("", "NonMaxSuppression", "float32;float32;int64;float32", NonMaxSuppression);

}  // namespace
}  // namespace py_ort
