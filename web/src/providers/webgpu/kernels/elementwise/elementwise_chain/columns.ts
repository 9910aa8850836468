// An elementwise program on tensors of one shape, each of which may be columns of a wider one: rows, and columns in
// them.
import type { Context, Shader, Spec, StorageType, Tensor } from '../../../../../contract/kernel';
import {
  computeType,
  inLanes,
  laneAliases,
  type Lanes,
  laneType,
  linearMain,
  linearWorkgroups,
  load,
  stored,
} from '../../../wgsl';
import type { Columns } from '../../shared/columns';
import { type Instruction, type Program, programFunctions } from '../../../wgsl/program';

interface ColumnsSpec extends Spec {
  readonly program: readonly Instruction[];
  readonly operands: readonly StorageType[];
  readonly to: StorageType;
  readonly lanes: Lanes;
}

const COLUMNS: Shader<ColumnsSpec> = {
  name: 'elementwise_chain__columns',
  wgsl({ program, operands, to, lanes }) {
    const values = operands.map((storage, k) =>
      load(storage, lanes, `x${k}[row * u.pitches_${k} + u.firsts_${k} + column]`),
    );
    const types = operands.map((storage, k) => `alias T_x${k} = ${laneType(computeType(storage), lanes)};`);
    return `${laneAliases(lanes)} alias R = F; ${types.join(' ')}
${programFunctions([{ name: 'apply', program, inputs: operands.map((_, k) => `T_x${k}`), result: 'R' }])}
${linearMain(`  let row = i / u.width;
  let column = i % u.width;
  y[i] = ${stored(to, lanes, `apply(${values.join(', ')})`)};`)}`;
  },
};

/** y = the program on these columns of the inputs. */
export function computeColumns(
  ctx: Context,
  { instructions, numbers }: Program,
  inputs: readonly Tensor[],
  columns: readonly Columns[],
  y: Tensor,
): void {
  const width = columns[0].count;
  const lanes: Lanes = [width, ...columns.flatMap(({ first, pitch }) => [first, pitch])].every(
    (number) => number % 4 === 0,
  )
    ? 4
    : 1;
  const count = y.size / lanes;
  ctx.dispatch<ColumnsSpec>({
    shader: COLUMNS,
    spec: { program: instructions, operands: inputs.map(({ storage }) => storage), to: y.storage, lanes },
    inputs: Object.fromEntries(inputs.map((input, k) => [`x${k}`, inLanes(input, lanes)])),
    outputs: { y: inLanes(y, lanes) },
    uniforms: {
      count,
      width: width / lanes,
      pitches: columns.map(({ pitch }) => pitch / lanes),
      firsts: columns.map(({ first }) => first / lanes),
      ...(numbers.length > 0 && { number: numbers }),
    },
    f32: ['number'],
    workgroups: linearWorkgroups(count, ctx.device),
  });
}
