// Flash attention's block loop for software adapters: scores are in registers, without barriers.
import type { Shader } from '../../../../contract/kernel';
import { load, stored } from '../../wgsl/lanes';
import { linearMain } from '../../wgsl/linear';
import { BASES, count, type FlashSpec, headOf, keysOfBlock, preamble, queryOf, sinks } from './flash_text';
import { LEAST, MASKED, shareOf } from './masking';

/** A thread has a few rows, and all of their numbers in registers. */
export const FLASH_ROWS: Shader<FlashSpec> = {
  name: 'flash_attention__sw_rows',
  wgsl(spec) {
    const { lanes, size, valueSize, storage, names, rows, columns, sharing, split } = spec;
    const read = (name: string, index: string) => `${load(storage, lanes, `${name}[${index}]`)}`;
    const each = (line: (r: number) => string) => count(rows).map(line).join(' ');
    const start = (r: number) =>
      sinks(spec)
        ? `var largest${r} = sink_of(head${r}); var sum${r} = 1.0;`
        : `var largest${r} = f32(${LEAST}); var sum${r} = 0.0;`;
    const finish = (r: number) =>
      split
        ? `let at${r} = ((batch * u.kv_heads + shared_head) * u.rows + row${r}) * u.splits + part;
          state[at${r}] = vec2<f32>(largest${r}, sum${r});
  ${count(valueSize)
    .map((d) => `y[at${r} * ${valueSize}u + ${d}u] = y${r}_${d};`)
    .join(' ')}`
        : `let share${r} = ${shareOf(`sum${r}`)};
          let to${r} = y_base + head${r} * u.y_1 + query${r} * u.y_2;
  ${count(valueSize)
    .map((d) => `y[to${r} + ${d}u] = ${stored(storage, lanes, `y${r}_${d} * share${r}`)};`)
    .join(' ')}`;
    const body = `  let index = i;
${BASES}
  let first = unit % u.blocks * ${rows}u;
  ${each(
    (r) =>
      `let row${r} = min(first + ${r}u, u.rows - 1u); let head${r} = ${headOf(`row${r}`, sharing)};
        let query${r} = ${queryOf(`row${r}`, sharing)};`,
  )}
  ${each((r) => `let from${r} = q_base + head${r} * u.q_1 + query${r} * u.q_2;`)}
  ${each((r) =>
    count(size)
      .map((d) => `let q${r}_${d} = ${read(names[0], `from${r} + ${d}u`)} * u.scale;`)
      .join(' '),
  )}
  ${each((r) =>
    count(valueSize)
      .map((d) => `var y${r}_${d} = V(0.0);`)
      .join(' '),
  )}
  ${each(start)}
${keysOfBlock(spec, false)}
  for (var start = begin; start < end; start += ${columns}u) {
${count(columns)
  .map(
    (c) =>
      `    let key${c} = min(start + ${c}u, end - 1u); let k${c} = k_base + key${c} * u.k_2;
        let v${c} = v_base + key${c} * u.v_2;`,
  )
  .join('\n')}
    ${each((r) =>
      count(columns)
        .map((c) => `var d${r}_${c} = V(0.0);`)
        .join(' '),
    )}
${count(size)
  .map((d) =>
    count(columns)
      .map((c) => `    { let k = ${read(names[1], `k${c} + ${d}u`)}; ${each((r) => `d${r}_${c} += q${r}_${d} * k;`)} }`)
      .join('\n'),
  )
  .join('\n')}
    ${each((r) =>
      count(columns)
        .map((c) => `var s${r}_${c} = seen(batch, head${r}, query${r}, key${c}, capped(total(d${r}_${c})));`)
        .join('\n    '),
    )}
${count(columns)
  .slice(1)
  .map((c) => `    if (start + ${c}u >= end) { ${each((r) => `s${r}_${c} = ${MASKED};`)} }`)
  .join('\n')}
    ${each(
      (r) => `let larger${r} = max(largest${r}, max(${pairs(count(columns).map((c) => `s${r}_${c}`))}));
    let fade${r} = exp(largest${r} - larger${r}); largest${r} = larger${r};
    ${count(columns)
      .map((c) => `s${r}_${c} = weight_of(s${r}_${c}, larger${r});`)
      .join(' ')}
    sum${r} = sum${r} * fade${r} + ${count(columns)
      .map((c) => `s${r}_${c}`)
      .join(' + ')};`,
    )}
${count(valueSize)
  .map(
    (d) => `    { ${count(columns)
      .map((c) => `let v_${c} = ${read(names[2], `v${c} + ${d}u`)};`)
      .join(' ')}
      ${each(
        (r) =>
          `y${r}_${d} = y${r}_${d} * fade${r} + ${count(columns)
            .map((c) => `s${r}_${c} * v_${c}`)
            .join(' + ')};`,
      )} }`,
  )
  .join('\n')}
  }
  ${each(finish)}`;
    return preamble(spec) + linearMain(body);
  },
};

function pairs(values: string[]): string {
  return values.length === 1
    ? values[0]
    : values.length === 2
      ? values.join(', ')
      : `max(${pairs(values.slice(0, -1))}), ${values.at(-1)}`;
}
