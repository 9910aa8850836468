// The data of a graph page (py_ort/pages/graph.py).

export interface GraphNode {
  name: string;
  op: string;
  /** A key of the page's legend, which is a color of the style, too; "input", "output", or "": see `stripe` there. */
  place: string;
  why: string;
  /** The body of which node it is in, for people. */
  inside: string;
  /** Nodes of the other view that became this one, or that this one became. */
  other: number[];
  inputs: string[];
  outputs: string[];
  attributes: string[];
  /** Shape of the first output. */
  shape: string;
}

export interface View {
  title: string;
  nodes: GraphNode[];
  edges: [from: number, to: number][];
}

/** Returns true if a text in lower case is part of a node's name, operator, provider, values or reason. */
export function matches(node: GraphNode, text: string): boolean {
  return [node.name, node.op, node.place, node.why, ...node.inputs, ...node.outputs].some((part) =>
    part.toLowerCase().includes(text),
  );
}
