// Textures as memory: RGBA32UI, 16 bytes a texel, in rows of 2 ** ROW_BITS texels.
import { RuntimeError } from '../../errors';
import { ErrorCode } from '../../schema';
import { NAME } from './context';
import { roundUp } from '../../device/memory_plan';
import { ROW_BITS } from './glsl/fragment';
import { padded } from './pieces';

/** Bytes. */
export const TEXEL = 16;
const ROW = 2 ** ROW_BITS;
/** Bytes of textures that wait for a use. */
const MOST_SPARE = 256 << 20;

export interface Texture {
  readonly texture: WebGLTexture;
  readonly framebuffer: WebGLFramebuffer;
  readonly width: number;
  readonly height: number;
  /** Of all its texels. */
  readonly bytes: number;
}

export class Textures {
  private readonly spare = new Map<string, Texture[]>();
  /** Of those that wait for a use. */
  private spareBytes = 0;
  private readonly tallest: number;
  /** Framebuffers of several textures, by their number. */
  private readonly joint = new Map<number, WebGLFramebuffer>();

  constructor(private readonly gl: WebGL2RenderingContext) {
    this.tallest = gl.getParameter(gl.MAX_TEXTURE_SIZE) as number;
  }

  /** The most bytes of one texture. */
  get largest(): number {
    return Math.min(this.tallest * ROW * TEXEL, 2 ** 31 - TEXEL);
  }

  /** A texture for so many bytes, whose contents may be anything. */
  take(bytes: number): Texture {
    const texels = Math.max(1, Math.ceil(bytes / TEXEL));
    const [width, height] = [Math.min(texels, ROW), Math.ceil(texels / ROW)];
    const known = this.spare.get(`${width}x${height}`)?.pop();
    if (known) this.spareBytes -= known.bytes;
    return known ?? this.make(width, height);
  }

  give(texture: Texture): void {
    if (this.spareBytes + texture.bytes > MOST_SPARE) {
      this.destroy(texture);
      return;
    }
    const key = `${texture.width}x${texture.height}`;
    const list = this.spare.get(key);
    if (list) list.push(texture);
    else this.spare.set(key, [texture]);
    this.spareBytes += texture.bytes;
  }

  private make(width: number, height: number): Texture {
    const { gl } = this;
    if (height > this.tallest) {
      const what = `a tensor of ${width * height * TEXEL} bytes`;
      throw new RuntimeError(ErrorCode.out_of_memory, `${what}: this GPU's textures have at most ${this.largest}`);
    }
    const texture = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.RGBA32UI, width, height);
    for (const filter of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER])
      gl.texParameteri(gl.TEXTURE_2D, filter, gl.NEAREST);
    const framebuffer = gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, framebuffer);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, texture, 0);
    // A context that was lost gives null.
    if (!texture || !framebuffer)
      throw new RuntimeError(ErrorCode.device_lost, 'the WebGL context was lost', { provider: NAME });
    return { texture, framebuffer, width, height, bytes: width * height * TEXEL };
  }

  private destroy({ texture, framebuffer }: Texture): void {
    this.gl.deleteFramebuffer(framebuffer);
    this.gl.deleteTexture(texture);
  }

  /** Draws into these textures, all of one size, from now on. */
  attach(targets: readonly Texture[]): void {
    const { gl, joint } = this;
    if (targets.length === 1) {
      gl.bindFramebuffer(gl.FRAMEBUFFER, targets[0].framebuffer);
      return;
    }
    const places = targets.map((_, i) => gl.COLOR_ATTACHMENT0 + i);
    const known = joint.get(targets.length);
    const framebuffer = known ?? gl.createFramebuffer()!;
    joint.set(targets.length, framebuffer);
    gl.bindFramebuffer(gl.FRAMEBUFFER, framebuffer);
    targets.forEach(({ texture }, i) => gl.framebufferTexture2D(gl.FRAMEBUFFER, places[i], gl.TEXTURE_2D, texture, 0));
    if (!known) gl.drawBuffers(places);
  }

  /** Fills the first `count` bytes of a texture, with zeros behind those that there are. */
  write({ texture, width, height }: Texture, given: Uint8Array, count: number): void {
    const { gl } = this;
    gl.bindTexture(gl.TEXTURE_2D, texture);
    const whole = given.byteLength >= count && given.byteLength % TEXEL === 0 && given.byteOffset % 4 === 0;
    const copied = whole ? given : padded(given, roundUp(Math.max(given.byteLength, count), TEXEL));
    const words = new Uint32Array(copied.buffer, copied.byteOffset, copied.byteLength / 4);
    const put = (row: number, columns: number, rows: number, from: number) =>
      gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, row, columns, rows, gl.RGBA_INTEGER, gl.UNSIGNED_INT, words, from);
    const texels = Math.min(words.length / 4, width * height);
    const rows = Math.floor(texels / width);
    if (rows > 0) put(0, width, rows, 0);
    if (texels > rows * width) put(rows, texels - rows * width, 1, rows * width * 4);
  }

  /** Reads the first bytes of a texture into the buffer that is bound for that, or into an array. */
  read({ framebuffer, width }: Texture, bytes: number, to: number | Uint32Array): void {
    const { gl } = this;
    gl.bindFramebuffer(gl.FRAMEBUFFER, framebuffer);
    const [columns, rows] = extent(bytes, width);
    gl.readPixels(0, 0, columns, rows, gl.RGBA_INTEGER, gl.UNSIGNED_INT, to as number);
  }

  /** The first bytes of a texture; the thread waits for the GPU. */
  bytesOf(texture: Texture, bytes: number): Uint8Array {
    const words = new Uint32Array(readBytes(texture, bytes) / 4);
    this.read(texture, bytes, words);
    return new Uint8Array(words.buffer, 0, bytes);
  }

  copy(from: Texture, to: Texture): void {
    const { gl } = this;
    gl.bindFramebuffer(gl.FRAMEBUFFER, from.framebuffer);
    gl.bindTexture(gl.TEXTURE_2D, to.texture);
    const [width, height] = [Math.min(from.width, to.width), Math.min(from.height, to.height)];
    gl.copyTexSubImage2D(gl.TEXTURE_2D, 0, 0, 0, 0, 0, width, height);
  }
}

/** Columns and rows of texels that have so many bytes. */
function extent(bytes: number, width: number): [columns: number, rows: number] {
  const texels = Math.ceil(bytes / TEXEL);
  return texels <= width ? [texels, 1] : [width, Math.ceil(texels / width)];
}

/** Bytes that `read` gives for so many, whole rows. */
export function readBytes({ width }: Texture, bytes: number): number {
  const [columns, rows] = extent(bytes, width);
  return columns * rows * TEXEL;
}
