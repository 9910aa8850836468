// @gutenye/ocr-browser reads a picture.
import Ocr from '@gutenye/ocr-browser';

export async function use() {
  const ocr = await Ocr.create({
    models: {
      detectionPath: 'models/ch_PP-OCRv4_det_infer.onnx',
      recognitionPath: 'models/ch_PP-OCRv4_rec_infer.onnx',
      dictionaryPath: 'models/ppocr_keys_v1.txt',
    },
  });
  return (await ocr.detect('sample.png')).map(({ text, mean }) => ({ text, score: mean }));
}
