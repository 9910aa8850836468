// @ricky0123/vad-web finds speech in a recording.
import { NonRealTimeVAD } from '@ricky0123/vad-web';
import { recording } from './recording.js';

export async function use() {
  const { samples, rate } = await recording();
  const vad = await NonRealTimeVAD.new({ modelURL: 'models/silero_vad_legacy.onnx' });
  const found = [];
  for await (const { audio, start, end } of vad.run(samples, rate)) found.push({ start, end, samples: audio.length });
  return found;
}
