/** Fetches the recording. @returns its samples from -1 to 1, and how many of them a second has. */
export async function recording() {
  const file = await (await fetch('speech.wav')).arrayBuffer();
  const rate = new DataView(file).getUint32(24, true);
  return { samples: Float32Array.from(new Int16Array(file, 44), (value) => value / 32768), rate };
}
