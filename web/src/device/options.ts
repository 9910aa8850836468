// Options of providers as users give them.

/** As a user gives them, by onnxruntime's names: strings, or values that become the right string. */
export type GivenOptions = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** By provider. */
export type ProviderOptions = Readonly<Record<string, GivenOptions>>;
