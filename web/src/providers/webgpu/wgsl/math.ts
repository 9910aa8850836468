// Functions that WGSL lacks or leaves inaccurate: its sin may be off by 2^-11, its tanh may overflow, and its compilers
// may assume that no value is NaN or infinite. The functions here are exact to a few units in the last place, on every
// adapter. Polynomials are least-squares fits of the relative error on the stated range.

interface MathFunction {
  readonly needs?: readonly string[];
  /** In terms of F, U, I and B (see laneAliases). */
  readonly wgsl: string;
}

/** Horner's scheme: c0 + x*(c1 + x*(…)). */
function polynomial(x: string, coefficients: readonly number[]): string {
  return coefficients.reduceRight((inner, c) => (inner === '' ? `F(${c})` : `(${inner} * ${x} + ${c})`), '');
}

/**
 * WGSL of NAME(y, x): y, or x if that is a NaN. For functions that may lose it, such as max, clamp, exp, log and sign.
 * The choice uses bits, as integers, so that a compiler that assumes there are no NaNs cannot remove it.
 */
export function orNan(name: string, float: string, integer: string): string {
  return `fn ${name}(y: ${float}, x: ${float}) -> ${float} {
  let bits = bitcast<${integer}>(x);
  return bitcast<${float}>(select(bitcast<${integer}>(y), bits,
    (bits & ${integer}(0x7fffffff)) > ${integer}(0x7f800000)));
}
`;
}

const FUNCTIONS = {
  // The bits of infinity and of a NaN, in a form that compilers do not treat as constants (which may not be infinite).
  infinity: {
    wgsl: `var<private> infinity_bits: u32 = 0x7f800000u;
fn infinity() -> f32 { return bitcast<f32>(infinity_bits); }`,
  },
  nan: {
    wgsl: `var<private> nan_bits: u32 = 0x7fc00000u;
fn nan() -> f32 { return bitcast<f32>(nan_bits); }`,
  },
  is_nan: { wgsl: 'fn is_nan(x: F) -> B { return (bitcast<I>(x) & I(0x7fffffff)) > I(0x7f800000); }' },
  or_nan: { wgsl: orNan('or_nan', 'F', 'I') },
  // Zero for all numbers below zero: for those whose bits are between those after -0 and -infinity.
  relu: { wgsl: 'fn relu(x: F) -> F { return select(x, F(0.0), bitcast<U>(x) - U(0x80000001u) <= U(0x7f7fffffu)); }' },
  // 0 for -0.
  plain_zero: { wgsl: 'fn plain_zero(x: F) -> F { return select(x, F(0.0), x == F(0.0)); }' },
  // Numbers within the bounds are unchanged, including -0; if the lower bound exceeds the upper one, the result is the
  // upper one. By comparisons: WGSL's clamp takes ten times as long on SwiftShader, which checks each of its parts for
  // NaNs.
  bounded: {
    needs: ['or_nan'],
    wgsl: `fn bounded(x: F, low: F, high: F) -> F {
  let y = select(x, low, x < low); return or_nan(select(y, high, y > high), x); }`,
  },
  sign_: { needs: ['or_nan'], wgsl: 'fn sign_(x: F) -> F { return or_nan(sign(x), x); }' },
  exp_: { needs: ['or_nan'], wgsl: 'fn exp_(x: F) -> F { return or_nan(exp(x), x); }' },
  is_infinite: { wgsl: 'fn is_infinite(x: F) -> B { return (bitcast<U>(x) & U(0x7fffffffu)) == U(0x7f800000u); }' },
  // Absolute value and sign by bits: right for -0, infinities and NaN.
  with_sign: {
    wgsl: `fn with_sign(x: F, sign: F) -> F {
  return bitcast<F>((bitcast<U>(x) & U(0x7fffffffu)) | (bitcast<U>(sign) & U(0x80000000u))); }`,
  },

  // See division.ts. By multiplications: compilers would treat x / by + rest / by as (x + rest) / by. The inverse is
  // corrected once, the quotient twice: the result is the nearest float, if all steps are normal numbers.
  divided: {
    wgsl: `fn divided(x: F, by: F) -> F {
  let guess = 1.0 / by;
  let inverse = fma(fma(-by, guess, F(1.0)), guess, guess);
  let near = x * inverse;
  let nearer = fma(fma(-near, by, x), inverse, near);
  let q = fma(fma(-nearer, by, x), inverse, nearer);
  let size = abs(near);
  let divisor = abs(by);
  return select(x / by, q, (size > F(1e-25)) & (size < F(1e25)) & (divisor > F(1e-25)) & (divisor < F(1e25)));
}`,
  },

  sigmoid: {
    needs: ['or_nan'],
    wgsl: `fn sigmoid(x: F) -> F {
  let e = exp(-abs(x)); return or_nan(select(F(1.0), e, x < F(0.0)) / (1.0 + e), x); }`,
  },
  // |x| up to 0.6 by polynomial in x^2, where 1 - 2/(e^2x + 1) would lose digits.
  tanh_: {
    needs: ['with_sign', 'or_nan'],
    wgsl: `fn tanh_(x: F) -> F {
  let a = min(abs(x), F(10.0));
  let z = a * a;
  let small = a + a * z * ${polynomial(
    'z',
    [-0.3333333323, 0.1333331288, -0.05396155489, 0.0217883455, -0.008410144175, 0.002370846243],
  )};
  let large = 1.0 - 2.0 / (exp(2.0 * a) + 1.0);
  return or_nan(with_sign(select(large, small, a < F(0.6)), x), x);
}`,
  },
  // |x| < 1 by polynomial in x^2; beyond, 1 - e^(-x^2) * (Abramowitz and Stegun 7.1.26).
  erf_: {
    needs: ['with_sign', 'or_nan'],
    wgsl: `fn erf_(x: F) -> F {
  let a = min(abs(x), F(5.0));
  let z = a * a;
  let small = a * ${polynomial(
    'z',
    [1.128379166, -0.3761262582, 0.1128358515, -0.02685381188, 0.005188327581, -0.0008010192708, 0.00007853858323],
  )};
  let t = 1.0 / (1.0 + 0.3275911 * a);
  let large = 1.0 - exp(-z) * t * ${polynomial(
    't',
    [0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429],
  )};
  return or_nan(with_sign(select(large, small, a < F(1.0)), x), x);
}`,
  },
  // log(1 + x), for x > -1.
  log1p: {
    wgsl: `fn log1p(x: F) -> F {
  let small = x + x * x * ${polynomial(
    'x',
    [
      -0.4999999734, 0.3333330589, -0.2500084806, 0.2000339498, -0.1662591437, 0.1415529832, -0.1308653526, 0.130547363,
      -0.08192740443,
    ],
  )};
  return select(log(1.0 + x), small, (x > F(-0.29)) & (x < F(0.41)));
}`,
  },
  // Near 1 WGSL's log is only exact to 2^-21 absolutely; at 0 and infinity some adapters return a finite number.
  log_: {
    needs: ['log1p', 'infinity', 'nan', 'or_nan'],
    wgsl: `fn log_(x: F) -> F {
  let y = select(log(x), log1p(x - 1.0), abs(x - 1.0) < F(0.25));
  let edge = select(select(F(-infinity()), F(nan()), x < F(0.0)), x, x > F(0.0));
  return or_nan(select(y, edge, (x <= F(0.0)) | (x == F(infinity()))), x);
}`,
  },
  // log(1 + e^x)
  softplus: {
    needs: ['log1p', 'or_nan'],
    wgsl: 'fn softplus(x: F) -> F { return or_nan(max(x, F(0.0)) + log1p(exp(-abs(x))), x); }',
  },
  // e^x - 1, near zero without loss: through tanh(x/2).
  expm1: {
    needs: ['tanh_', 'or_nan'],
    wgsl: `fn expm1(x: F) -> F {
  let t = tanh_(0.5 * clamp(x, F(-1.0), F(1.0)));
  return or_nan(select(exp(x) - 1.0, 2.0 * t / (1.0 - t), abs(x) < F(0.5)), x);
}`,
  },

  // The angle minus the nearest multiple of pi/2 (in three parts, the first two with few bits), and the number of that
  // multiple.
  quadrant: { wgsl: 'fn quadrant(x: F) -> F { return round(x * 0.6366197723675814); }' },
  reduced_angle: {
    wgsl: `fn reduced_angle(x: F, k: F) -> F {
  return ((x - k * 1.5703125) - k * 0.0004837512969970703) - k * 7.549789948768648e-8; }`,
  },
  sin_near: {
    wgsl: `fn sin_near(r: F) -> F { let z = r * r;
      return r + r * z * ${polynomial('z', [-0.1666666666, 0.008333329711, -0.000198390158, 0.000002712647024])}; }`,
  },
  cos_near: {
    wgsl: `fn cos_near(r: F) -> F { let z = r * r;
      return 1.0 - 0.5 * z + z * z * ${polynomial('z', [0.04166666708, -0.001388849885, 0.00002457387669])}; }`,
  },
  sin_: {
    needs: ['quadrant', 'reduced_angle', 'sin_near', 'cos_near'],
    wgsl: `fn sin_(x: F) -> F {
  let k = quadrant(x);
  let r = reduced_angle(x, k);
  let q = I(k);
  let y = select(sin_near(r), cos_near(r), (q & I(1)) != I(0));
  return select(select(y, -y, (q & I(2)) != I(0)), x, x == F(0.0));
}`,
  },
  cos_: {
    needs: ['quadrant', 'reduced_angle', 'sin_near', 'cos_near'],
    wgsl: `fn cos_(x: F) -> F {
  let k = quadrant(x);
  let r = reduced_angle(x, k);
  let q = I(k) + I(1);
  let y = select(sin_near(r), cos_near(r), (q & I(1)) != I(0));
  return select(y, -y, (q & I(2)) != I(0));
}`,
  },
  tan_: {
    needs: ['quadrant', 'reduced_angle', 'sin_near', 'cos_near'],
    wgsl: `fn tan_(x: F) -> F {
  let k = quadrant(x);
  let r = reduced_angle(x, k);
  let s = sin_near(r);
  let c = cos_near(r);
  return select(select(s / c, -c / s, (I(k) & I(1)) != I(0)), x, x == F(0.0));
}`,
  },
  // |x| up to 1/2 by polynomial; beyond, pi/2 - 2 asin(sqrt((1 - |x|)/2)).
  asin_: {
    needs: ['with_sign', 'nan'],
    wgsl: `fn asin_of(a: F) -> F {
  let far = a > F(0.5);
  let z = select(a * a, 0.5 - 0.5 * min(a, F(1.0)), far);
  let s = select(a, sqrt(z), far);
  let y = s + s * z * ${polynomial('z', [0.1666667273, 0.07498813183, 0.04500990262, 0.02649936264, 0.03819630655])};
  return select(y, 1.5707963267948966 - 2.0 * y, far);
}
fn asin_(x: F) -> F { let y = with_sign(asin_of(abs(x)), x); return select(y, F(nan()), abs(x) > F(1.0)); }`,
  },
  acos_: {
    needs: ['asin_'],
    wgsl: `fn acos_(x: F) -> F {
  // Near 1 the difference pi/2 - asin(x) would lose digits; there it is 2 asin(sqrt((1 - x)/2)).
  let near = 2.0 * asin_of(sqrt(max(0.5 - 0.5 * abs(x), F(0.0))));
  let y = select(1.5707963267948966 - asin_(x), select(near, 3.141592653589793 - near, x < F(0.0)), abs(x) > F(0.5));
  return select(y, F(nan()), abs(x) > F(1.0));
}`,
  },
  // Reduced to |x| <= tan(pi/8) by 1/x and by (x - 1)/(x + 1).
  atan_: {
    needs: ['with_sign', 'or_nan'],
    wgsl: `fn atan_(x: F) -> F {
  let a = abs(x);
  let inverse = a > F(1.0);
  let b = select(a, 1.0 / max(a, F(1.0)), inverse);
  let middle = b > F(0.41421356);
  let t = select(b, (b - 1.0) / (b + 1.0), middle);
  let z = t * t;
  let y = t + t * z * ${polynomial(
    'z',
    [-0.3333333164, 0.1999951218, -0.1426294656, 0.107326433, -0.06414831502],
  )} + select(F(0.0), F(0.7853981633974483), middle);
  return or_nan(with_sign(select(y, 1.5707963267948966 - y, inverse), x), x);
}`,
  },
  sinh_: {
    needs: ['or_nan'],
    wgsl: `fn sinh_(x: F) -> F {
  let z = x * x;
  let small = x + x * z * ${polynomial(
    'z',
    [0.16666666666666666, 0.008333333333333333, 0.0001984126984126984, 0.0000027557319223985893],
  )};
  // e^(x/2) twice: e^x alone would overflow before sinh does.
  let e = exp(0.5 * abs(x));
  let large = sign(x) * (0.5 * e * e - 0.5 / e / e);
  return or_nan(select(large, small, abs(x) < F(1.0)), x);
}`,
  },
  cosh_: {
    needs: ['or_nan'],
    wgsl: 'fn cosh_(x: F) -> F { let e = exp(0.5 * abs(x)); return or_nan(0.5 * e * e + 0.5 / e / e, x); }',
  },
  asinh_: {
    needs: ['with_sign', 'or_nan'],
    wgsl: `fn asinh_(x: F) -> F {
  let a = abs(x);
  let z = a * a;
  let small = a + a * z * ${polynomial(
    'z',
    [-0.1666666658, 0.07499973622, -0.04463025137, 0.03015872278, -0.02053833932, 0.009954874396],
  )};
  // Beyond 10^4 the 1 in sqrt(x^2 + 1) is lost anyway, and x^2 might overflow.
  let large = log(a + sqrt(min(z, F(1e30)) + 1.0));
  let huge = log(a) + 0.6931471805599453;
  return or_nan(with_sign(select(select(large, huge, a > F(1e4)), small, a < F(0.5)), x), x);
}`,
  },
  acosh_: {
    needs: ['log1p', 'nan', 'or_nan'],
    wgsl: `fn acosh_(x: F) -> F {
  let t = clamp(x - 1.0, F(0.0), F(1e4));
  let y = select(log1p(t + sqrt(t * (t + 2.0))), log(max(x, F(1.0))) + 0.6931471805599453, x > F(1e4));
  return or_nan(select(y, F(nan()), x < F(1.0)), x);
}`,
  },
  atanh_: {
    needs: ['log1p', 'with_sign', 'nan', 'infinity', 'or_nan'],
    wgsl: `fn atanh_(x: F) -> F {
  let a = abs(x);
  let y = select(0.5 * log1p(2.0 * a / (1.0 - a)), F(infinity()), a == F(1.0));
  return or_nan(select(with_sign(y, x), F(nan()), a > F(1.0)), x);
}`,
  },
  // x - y * trunc(x / y), with the sign of x, as exactly as C's fmod: a division of the mantissas, eight bits at a
  // time.
  remainder: {
    needs: ['nan', 'with_sign'],
    wgsl: `fn remainder(x: F, y: F) -> F {
  let a = bitcast<U>(x) & U(0x7fffffffu);
  let b = bitcast<U>(y) & U(0x7fffffffu);
  let exponent = max(b >> U(23u), U(1u));
  let divisor = (b & U(0x7fffffu)) | select(U(0u), U(0x800000u), b >= U(0x800000u));
  var rest = ((a & U(0x7fffffu)) | select(U(0u), U(0x800000u), a >= U(0x800000u))) % divisor;
  var left = max(max(a >> U(23u), U(1u)), exponent) - exponent;
  while (any((left != U(0u)) & (rest != U(0u)))) {
    let step = min(left, U(8u));
    rest = (rest << step) % divisor;
    left -= step;
  }
  // Times 2^(exponent - 150), by two factors that are normal numbers.
  let half = exponent >> U(1u);
  let r = F(rest) * bitcast<F>((half + U(52u)) << U(23u)) * bitcast<F>((exponent - half + U(52u)) << U(23u));
  let undefined_ = (a >= U(0x7f800000u)) | (b > U(0x7f800000u)) | (b == U(0u));
  return select(select(with_sign(r, x), x, a < b), F(nan()), undefined_);
}`,
  },
  // x^y as in C: a negative base needs an integer exponent; anything to the power of 0 is 1.
  power: {
    needs: ['nan', 'is_nan', 'is_infinite', 'infinity'],
    wgsl: `fn power(x: F, y: F) -> F {
  let whole = floor(y) == y;
  let odd = whole & (abs(y - 2.0 * floor(0.5 * y)) == F(1.0));
  var r = exp2(y * log2(abs(x)));
  // Small whole exponents are common, and exact by multiplication.
  r = select(r, abs(x), y == F(1.0));
  r = select(r, x * x, y == F(2.0));
  r = select(r, abs(x * x * x), y == F(3.0));
  r = select(r, sqrt(abs(x)), y == F(0.5));
  r = select(r, 1.0 / abs(x), y == F(-1.0));
  r = select(r, select(F(0.0), 1.0 / abs(x), y < F(0.0)), x == F(0.0));
  r = select(r, -r, odd & (bitcast<I>(x) < I(0)));
  r = select(r, F(nan()), (x < F(0.0)) & !whole);
  r = select(r, select(F(infinity()), F(0.0), y < F(0.0)), (x == F(-infinity())) & !whole);
  r = select(r, F(nan()), is_nan(x) | is_nan(y));
  return select(r, F(1.0), (y == F(0.0)) | (x == F(1.0)) | ((x == F(-1.0)) & is_infinite(y)));
}`,
  },
} satisfies Record<string, MathFunction>;

export type MathName = keyof typeof FUNCTIONS;
export const MATH_NAMES = Object.keys(FUNCTIONS) as MathName[];

/** The WGSL of these functions and of those that they need. They use laneAliases' names. */
export function mathFunctions(...names: readonly MathName[]): string {
  const texts = new Map<string, string>();
  const add = (name: string): void => {
    if (texts.has(name)) return;
    const { needs = [], wgsl } = FUNCTIONS[name as MathName] as MathFunction;
    needs.forEach(add);
    texts.set(name, wgsl);
  };
  names.forEach(add);
  return [...texts.values()].join('\n');
}
