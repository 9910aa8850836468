// PBM, PGM and PPM (P1 to P6), as numbers or bytes.
import { checkedSize, damaged, type Picture } from './picture';

const PNM = 'PNM';
const SPACE = /\s/;

export function decodePnm(bytes: Uint8Array): Picture {
  const kind = bytes[1] - 48;
  let at = 2;
  const character = () => String.fromCharCode(bytes[at++]);
  /** Valid past the end, too, where the file ends. */
  const skip = () => {
    for (; at < bytes.length; at++) {
      if (bytes[at] === 35) while (at < bytes.length && bytes[at] !== 10 && bytes[at] !== 13) at++;
      else if (!SPACE.test(String.fromCharCode(bytes[at]))) return;
    }
  };
  const number = (digits = 9): number => {
    skip();
    let text = '';
    while (text.length < digits && bytes[at] >= 48 && bytes[at] <= 57) text += character();
    if (!text) throw damaged(PNM, at < bytes.length ? 'it has no number where one should be' : 'it ends too early');
    return Number(text);
  };
  const [width, height] = [number(), number()];
  const bits = kind === 1 || kind === 4;
  const most = bits ? 1 : number();
  checkedSize(PNM, width, height);
  if (most < 1 || most > 65535) throw damaged(PNM, `its largest number is ${most}`);
  const channels = kind === 3 || kind === 6 ? 3 : 1;
  const pixels = new Uint8Array(width * height * channels);
  // Rounded half up; 1 is black in bitmaps.
  const scaled = (value: number) => {
    if (value > most) throw damaged(PNM, `${value} is above its largest number, ${most}`);
    return bits ? 255 * (1 - value) : Math.floor((value * 255) / most + 0.5);
  };
  if (kind <= 3) {
    for (let i = 0; i < pixels.length; i++) pixels[i] = scaled(number(bits ? 1 : 9));
    return { width, height, channels, pixels };
  }
  at++; // one space
  const wide = most > 255 ? 2 : 1;
  const stride = bits ? Math.ceil(width / 8) : width * channels * wide;
  if (at + stride * height > bytes.length) throw damaged(PNM, 'it ends too early');
  for (let i = 0; i < pixels.length; i++) {
    if (bits) {
      const [row, column] = [Math.floor(i / width), i % width];
      pixels[i] = scaled((bytes[at + row * stride + (column >> 3)] >> (7 - (column & 7))) & 1);
    } else {
      const from = at + i * wide;
      pixels[i] = scaled(wide === 1 ? bytes[from] : bytes[from] * 256 + bytes[from + 1]);
    }
  }
  return { width, height, channels, pixels };
}
