// Einsum by products of matrices: axes have labels.
import { sizeOf } from '../../../../contract/shape';
import type { MlOperand } from '../../ml';
import type { Formula } from '../../formula';
import { product } from './product';

interface Labelled {
  readonly x: MlOperand;
  readonly labels: readonly string[];
}

export function einsum(f: Formula, x: readonly MlOperand[], equation: string): MlOperand {
  const [left, right] = equation.replaceAll(' ', '').split('->');
  const terms = left.split(',').map((term, i) => labelled(term, x[i].shape.length));
  const all = terms.flat();
  const dots = [...new Set(all.filter((label) => label.length > 1))].sort().reverse();
  const once = all.filter((label) => label.length === 1 && all.indexOf(label) === all.lastIndexOf(label)).sort();
  const wanted =
    right === undefined ? [...dots, ...once] : labelled(right, right.replace('...', '').length + dots.length);
  const [first, ...others] = terms.map((labels, i) => diagonal(f, { x: x[i], labels }));
  const made = others.reduce(
    (one, other, i) => joined(f, one, other, [...wanted, ...others.slice(i + 1).flatMap(({ labels }) => labels)]),
    first,
  );
  return ordered(f, summed(f, made, wanted), wanted).x;
}

/** Axes of an ellipsis are numbered from the last one. */
function labelled(term: string, rank: number): readonly string[] {
  const [before, behind] = term.split('...');
  const count = behind === undefined ? 0 : rank - before.length - behind.length;
  return [...before, ...Array.from({ length: count }, (_, i) => `.${count - 1 - i}`), ...(behind ?? '')];
}

/** An axis for each label: if two axes have one label, only elements on the diagonal remain. */
function diagonal(f: Formula, { x, labels }: Labelled): Labelled {
  const again = labels.findIndex((label, i) => labels.indexOf(label) < i);
  if (again < 0) return { x, labels };
  const size = x.shape[again];
  const places = x.shape.map((_, i) => (i === again || labels[i] === labels[again] ? size : 1));
  const same = Array.from({ length: size * size }, (_, i) => (i % (size + 1) ? 0 : 1));
  const kept = f.of('where', f.constant(same, places, 'uint8'), x, f.number(x, 0));
  const reduced = f.plain('reduceSum', kept, { axes: [again], keepDimensions: false });
  return diagonal(f, { x: reduced, labels: labels.filter((_, i) => i !== again) });
}

function summed(f: Formula, { x, labels }: Labelled, kept: readonly string[]): Labelled {
  const axes = labels.flatMap((label, i) => (kept.includes(label) ? [] : [i]));
  if (axes.length === 0) return { x, labels };
  const sum = f.plain('reduceSum', x, { axes, keepDimensions: false });
  return { x: sum, labels: labels.filter((label) => kept.includes(label)) };
}

function ordered(f: Formula, { x, labels }: Labelled, wanted: readonly string[]): Labelled {
  const permutation = wanted.map((label) => labels.indexOf(label));
  return {
    x: permutation.every((from, i) => from === i) ? x : f.plain('transpose', x, { permutation }),
    labels: wanted,
  };
}

function joined(f: Formula, a: Labelled, b: Labelled, kept: readonly string[]): Labelled {
  const left = summed(f, a, [...b.labels, ...kept]);
  const right = summed(f, b, [...a.labels, ...kept]);
  const both = left.labels.filter((label) => right.labels.includes(label));
  const batch = both.filter((label) => kept.includes(label));
  const inner = both.filter((label) => !batch.includes(label));
  const [rows, columns] = [left, right].map(({ labels }) => labels.filter((label) => !both.includes(label)));
  const [p, q] = [
    ordered(f, left, [...batch, ...rows, ...inner]).x,
    ordered(f, right, [...batch, ...inner, ...columns]).x,
  ];
  const n = batch.length;
  const [m, k] = [p.shape.slice(n, n + rows.length), p.shape.slice(n + rows.length)];
  const out = q.shape.slice(n + inner.length);
  const y = product(
    f,
    f.reshape(p, [...p.shape.slice(0, n), sizeOf(m), sizeOf(k)]),
    f.reshape(q, [...q.shape.slice(0, n), sizeOf(k), sizeOf(out)]),
  );
  return { x: f.reshape(y, [...y.shape.slice(0, n), ...m, ...out]), labels: [...batch, ...rows, ...columns] };
}
