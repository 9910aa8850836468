// @ricky0123/vad-web listens to a stream, through its worklet.
import { MicVAD } from '@ricky0123/vad-web';
import { recording } from './recording.js';

export async function use() {
  const { samples, rate } = await recording();
  const context = new AudioContext({ sampleRate: rate });
  const buffer = context.createBuffer(1, samples.length, rate);
  buffer.copyToChannel(samples, 0);
  const source = new AudioBufferSourceNode(context, { buffer });
  const { stream } = source.connect(new MediaStreamAudioDestinationNode(context));
  let likely = 0;
  let started = false;
  const audio = await new Promise((resolve, reject) => {
    MicVAD.new({
      model: 'v5',
      baseAssetPath: 'models/',
      onnxWASMBasePath: 'runtime/',
      getStream: async () => stream,
      onFrameProcessed: ({ isSpeech }) => {
        likely = Math.max(likely, isSpeech);
      },
      onSpeechStart: () => {
        started = true;
      },
      onSpeechEnd: resolve,
    }).then(() => source.start(), reject);
  });
  return { started, likely, seconds: audio.length / 16000 };
}
