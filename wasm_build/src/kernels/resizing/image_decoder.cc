// ImageDecoder: the pixels of an encoded picture, by the page's asynchronous decoders.
#include "session/executor.h"
#include "ep/jsep.h"

namespace py_ort {

PY_ORT_STEP("", "ImageDecoder", "uint8");

Status run_image_decoder(Run& run, const PlanNode& node) {
  Slot& slot = run.slot(node.input(0));
  const std::string_view name = run.name(node.input(0));
  if (slot.empty()) return runtime_error("input 0 '", name, "' has no value");
  PY_ORT_TRY(read_on_heap(run, slot, name));
  const Tensor encoded = slot.value.tensor;
  if (!slot.is_tensor() || encoded.dtype != DType::uint8 || encoded.dims.size() != 1)
    return invalid_argument("the bytes of an image are uint8 of one dimension, not ", describe(&slot));
  const Attributes attributes(node.attributes);
  jsep::Picture picture{};
  PY_ORT_TRY(jsep::decode_image(encoded.data<uint8_t>(), encoded.size_in_bytes(),
                                attributes.text("pixel_format", "RGB"), picture));
  Tensor pixels;
  PY_ORT_TRY(Tensor::make(DType::uint8, {picture.height, picture.width, picture.channels}, pixels));
  jsep::take_pixels(pixels.mutable_data<uint8_t>());
  put_output(run, node, 0, Slot::of(Value::of(std::move(pixels))));
  return {};
}

}  // namespace py_ort
