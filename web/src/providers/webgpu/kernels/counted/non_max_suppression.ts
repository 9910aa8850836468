// NonMaxSuppression. The counting node picks boxes: repeatedly, a team of threads for each class of each batch takes
// the best remaining box, and removes those that overlap it.
import { type Context, type Kernel, KernelError, type Shader, type Spec } from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import { HOST, linearMain, linearWorkgroups } from '../../wgsl';
import { COUNT, countOf } from './count';
import { prefixSums } from './sums';
import { Dialect } from '../../../../schema/dialect';

interface PickSpec extends Spec {
  readonly center: boolean;
  /** Threads of a row: 1, or those of a workgroup. */
  readonly team: number;
}

// Any two opposite corners, or center and size.
const CORNERS = {
  corners: 'vec4(min(p.x, p.z), min(p.y, p.w), max(p.x, p.z), max(p.y, p.w))',
  center: 'vec4(p.y - p.w / 2.0, p.x - p.z / 2.0, p.y + p.w / 2.0, p.x + p.z / 2.0)',
};

/** A row's boxes: a round over all of them removes those that overlap the last pick, and finds the next. */
const ROUND = (team: number, member: string): string => `    for (var k = ${member}; k < u.boxes; k += ${team}u) {
      if (left[row + k] == 0) { continue; }
      let own = corners(batch * u.boxes + k);
      if (picked && (k == last || overlap(own, box) > u.most_overlap)) {
        left[row + k] = 0;
        continue;
      }
      let score = scores[row + k];
      if (best == NONE || score > best_score) {
        best = k;
        best_score = score;
      }
    }`;

const PICK: Shader<PickSpec> = {
  name: 'non_max_suppression__pick',
  wgsl({ center, team }) {
    const common = `const NONE = 0xffffffffu;
fn corners(at: u32) -> vec4<f32> { let p = boxes[at]; return ${center ? CORNERS.center : CORNERS.corners}; }
fn area(box: vec4<f32>) -> f32 { return (box.z - box.x) * (box.w - box.y); }
fn overlap(a: vec4<f32>, b: vec4<f32>) -> f32 {
  let sides = min(a.zw, b.zw) - max(a.xy, b.xy);
  let shared_area = sides.x * sides.y;
  let empty = sides.x <= 0.0 || sides.y <= 0.0 || area(a) <= 0.0 || area(b) <= 0.0;
  return select(shared_area / (area(a) + area(b) - shared_area), 0.0, empty);
}
`;
    const rounds = (member: string, share: string): string => `  let row = o * u.boxes;
  let batch = o / u.classes;
  for (var k = ${member}; k < u.boxes; k += ${team}u) { left[row + k] = select(0, 1, scores[row + k] > u.least_score); }
  var box = vec4<f32>();
  var last = NONE;
  var picked = false;
  var found = 0u;
  while (found < u.limit) {
    var best = NONE;
    var best_score = 0.0;
${ROUND(team, member)}
${share}
    if (best == NONE) { break; }
    if (${member} == 0u) { chosen[o * u.limit + found] = i32(best); }
    box = corners(batch * u.boxes + best);
    last = best;
    picked = true;
    found++;
  }
  if (${member} == 0u) { kept[o] = i32(found); }`;
    if (team === 1) return `${common}${linearMain(`  let o = i;\n${rounds('0u', '')}`)}`;
    const share = `    shared_best[lane] = best;
    shared_score[lane] = best_score;
    for (var half = ${team / 2}u; half > 0u; half = half / 2u) {
      workgroupBarrier();
      if (lane < half) {
        let other = shared_best[lane + half];
        let score = shared_score[lane + half];
        let mine = shared_best[lane];
        let better = mine == NONE || score > shared_score[lane] || (score == shared_score[lane] && other < mine);
        if (other != NONE && better) {
          shared_best[lane] = other;
          shared_score[lane] = score;
        }
      }
    }
    best = workgroupUniformLoad(&shared_best[0]);`;
    return `${common}
var<workgroup> shared_best: array<u32, ${team}>;
var<workgroup> shared_score: array<f32, ${team}>;
@compute @workgroup_size(${team})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let o = group.x;
${rounds('lane', share)}
}
`;
  },
};

const ROWS: Shader<Spec> = {
  name: 'non_max_suppression__rows',
  wgsl: () =>
    linearMain(`  let first = u32(starts[i]);
  var end = u.found;
  if (i + 1u < u.count) { end = u32(starts[i + 1u]); }
  for (var k = first; k < end; k++) {
    y[k * 3u] = i32(i / u.classes);
    y[k * 3u + 1u] = i32(i % u.classes);
    y[k * 3u + 2u] = chosen[i * u.limit + k - first];
  }`),
};

/** Batches, classes, boxes, and the most boxes that a class may keep. */
function sizes(ctx: Context): { batch: number; classes: number; count: number; limit: number } {
  const [boxes, scores] = [ctx.input(0), ctx.input(1)];
  const [batch, count, four] = boxes.dims;
  if (
    boxes.dims.length !== 3 ||
    four !== 4 ||
    scores.dims.length !== 3 ||
    scores.dims[0] !== batch ||
    scores.dims[2] !== count
  ) {
    throw new KernelError(
      `NonMaxSuppression needs boxes [batches, boxes, 4] and scores [batches, classes, boxes], ` +
        `got [${boxes.dims}] and [${scores.dims}]`,
    );
  }
  return { batch, classes: scores.dims[1], count, limit: Math.min(count, Math.max(0, ctx.data(2)?.[0] ?? 0)) };
}

function resolveCount(ctx: Context, center: boolean): void {
  const { batch, classes, count, limit } = sizes(ctx);
  const rows = batch * classes;
  const chosen = ctx.output(0, [rows, limit], DType.int32);
  const starts = ctx.output(1, [rows], DType.int32);
  const total = ctx.output(2, COUNT, DType.int32);
  const kept = ctx.temp([rows], DType.int32);
  const team = ctx.device.software || ctx.device.maxInvocations < 256 || count < 256 ? 1 : 256;
  ctx.dispatch({
    shader: PICK,
    spec: { center, team },
    inputs: { boxes: { tensor: ctx.input(0), vec: 4 }, scores: ctx.input(1) },
    outputs: { chosen, kept, left: ctx.temp([rows, count], DType.int32) },
    uniforms: {
      ...(team === 1 ? { count: rows } : {}),
      boxes: count,
      classes,
      limit,
      most_overlap: ctx.data(3)?.[0] ?? 0,
      least_score: Math.max(ctx.data(4)?.[0] ?? -LARGEST, -LARGEST),
    },
    f32: ['most_overlap', 'least_score'],
    workgroups: team === 1 ? linearWorkgroups(rows, ctx.device) : [rows, 1, 1],
  });
  prefixSums(ctx, kept, starts, total);
}

const LARGEST = 3.4028234663852886e38;

/** The operator's five inputs, then the picks of each class, the starts of their rows, and their number. */
function resolve(ctx: Context): void {
  const { batch, classes, limit } = sizes(ctx);
  const found = countOf(ctx, 7);
  const y = ctx.output(0, [found, 3], DType.int64);
  ctx.dispatch({
    shader: ROWS,
    spec: {},
    inputs: { chosen: ctx.input(5), starts: ctx.input(6) },
    outputs: { y },
    uniforms: { count: batch * classes, found, classes, limit },
    workgroups: linearWorkgroups(batch * classes, ctx.device),
  });
}

const FLOAT = ['float32'] as const;
const attributes: Kernel<boolean>['attributes'] = (given) => given.integer('center_point_box', 0) !== 0;

export const nonMaxSuppressionKernels: Kernel[] = [
  {
    op: Dialect.NON_MAX_SUPPRESSION_COUNT,
    domain: Dialect.INTERNAL_DOMAIN,
    types: [FLOAT, FLOAT, HOST],
    attributes,
    resolve: resolveCount,
  } as Kernel<boolean> as Kernel,
  { op: 'NonMaxSuppression', types: [FLOAT, FLOAT, HOST, HOST, HOST, ['int32'], ['int32'], HOST], resolve },
];
