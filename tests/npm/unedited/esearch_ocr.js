// esearch-ocr reads a picture with the engine that it is handed.
import { init } from 'esearch-ocr';
import * as ort from 'onnxruntime-web';

export async function use() {
  const decodeDic = await (await fetch('models/ppocr_keys_v1.txt')).text();
  const { ocr } = await init({
    ort,
    det: { input: 'models/ch_PP-OCRv4_det_infer.onnx' },
    rec: { input: 'models/ch_PP-OCRv4_rec_infer.onnx', decodeDic },
    docCls: { input: 'models/ch_ppocr_mobile_v2.0_cls_infer.onnx' },
  });
  const image = new Image();
  image.src = 'sample.png';
  await image.decode();
  return (await ocr(image)).src.map(({ text, mean }) => ({ text, score: mean }));
}
