// The best rates of the bridge and the device: raw commands over a bare websocket. Query: port, token. See
// py_ort/bench/bare.py.
import { downloadChunks } from '../wire/download';
import { measureCopies, measureDevice, openDevice, tinyRuns } from './device';

const query = new URLSearchParams(self.location.search);
const FRAME = 1 << 20;
const socket = new WebSocket(`ws://127.0.0.1:${query.get('port')}/?token=${query.get('token')}`);
socket.binaryType = 'arraybuffer';

let device: Promise<GPUDevice> | undefined;
let tiny: ((count: number) => Promise<void>) | undefined;

const opened = () => (device ??= openDevice());
const say = (text: string): void => socket.send(new TextEncoder().encode(text));

async function answer(text: string): Promise<void> {
  const [command, argument, size] = text.split(' ');
  if (command === 'send') {
    const bytes = new Uint8Array(Number(argument));
    for (let at = 0; at < bytes.byteLength; at += FRAME) socket.send(bytes.subarray(at, at + FRAME));
    return;
  }
  if (command === 'fetch') {
    const target = new Uint8Array(Number(size));
    await downloadChunks(argument!, target.byteLength, [{ start: 0, end: target.byteLength }], (offset, bytes) =>
      target.set(bytes, offset),
    );
  } else if (command === 'gpu') {
    tiny ??= tinyRuns(await opened());
    await tiny(1);
  } else if (command === 'device') {
    say(JSON.stringify(await measureDevice(await opened())));
    return;
  } else if (command === 'copies') {
    say(JSON.stringify(await measureCopies()));
    return;
  }
  say(command!);
}

socket.addEventListener('message', ({ data }: MessageEvent<ArrayBuffer>) => {
  answer(new TextDecoder().decode(data)).catch((error: unknown) => say(`error ${String(error)}`));
});
socket.addEventListener('close', () => self.close());
