// ppu-paddle-ocr reads a picture.
import { PaddleOcrService } from 'ppu-paddle-ocr/web';

export async function use() {
  const ocr = new PaddleOcrService({
    model: {
      detection: 'models/ch_PP-OCRv4_det_infer.onnx',
      recognition: 'models/ch_PP-OCRv4_rec_infer.onnx',
      charactersDictionary: 'models/ppocr_keys_v1.txt',
    },
  });
  await ocr.initialize();
  const picture = await (await fetch('sample.png')).arrayBuffer();
  const { results } = await ocr.recognize(picture, { flatten: true });
  await ocr.destroy();
  return results.map(({ text, confidence }) => ({ text, score: confidence }));
}
