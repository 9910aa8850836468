// Lines of text in what the detection model says of each pixel: rectangles at any angle.

/** A rectangle: its middle, its sides, and by how much it is turned, in radians from -π/4 to π/4. */
const rectangle = (x, y, width, height, angle) => ({ x, y, width, height, angle });

/** Pixels above `threshold` that touch, as lists of [x, y]. */
function* regions(map, columns, rows, threshold) {
  const seen = new Uint8Array(columns * rows);
  for (let start = 0; start < seen.length; start++) {
    if (seen[start] || map[start] <= threshold) continue;
    const region = [];
    const open = [start];
    seen[start] = 1;
    while (open.length > 0) {
      const at = open.pop();
      const [x, y] = [at % columns, Math.floor(at / columns)];
      region.push([x, y]);
      for (let ny = Math.max(y - 1, 0); ny <= Math.min(y + 1, rows - 1); ny++) {
        for (let nx = Math.max(x - 1, 0); nx <= Math.min(x + 1, columns - 1); nx++) {
          const next = ny * columns + nx;
          if (seen[next] || map[next] <= threshold) continue;
          seen[next] = 1;
          open.push(next);
        }
      }
    }
    yield region;
  }
}

function convexHull(points) {
  const sorted = points.toSorted(([ax, ay], [bx, by]) => ax - bx || ay - by);
  const half = (list) => {
    const hull = [];
    for (const [x, y] of list) {
      while (hull.length > 1) {
        const [[ax, ay], [bx, by]] = hull.slice(-2);
        if ((bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0) break;
        hull.pop();
      }
      hull.push([x, y]);
    }
    return hull.slice(0, -1);
  };
  return [...half(sorted), ...half(sorted.toReversed())];
}

/** The smallest rectangle around points: one of its sides lies along their hull. */
function smallestRectangle(points) {
  const hull = convexHull(points);
  let best;
  hull.forEach(([ax, ay], i) => {
    const [bx, by] = hull[(i + 1) % hull.length];
    // Turned by quarters, it is the same one.
    const edge = Math.atan2(by - ay, bx - ax);
    const angle = edge - Math.round(edge / (Math.PI / 2)) * (Math.PI / 2);
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    const along = hull.map(([x, y]) => x * cos + y * sin);
    const across = hull.map(([x, y]) => y * cos - x * sin);
    const [left, right, top, bottom] = [along, along, across, across].map((all, side) =>
      side % 2 ? Math.max(...all) : Math.min(...all),
    );
    const [width, height] = [right - left + 1, bottom - top + 1];
    if (best && best.width * best.height <= width * height) return;
    const [u, v] = [(left + right) / 2, (top + bottom) / 2];
    best = rectangle(u * cos - v * sin, u * sin + v * cos, width, height, angle);
  });
  return best;
}

/**
 * Finds lines, from top to bottom.
 *
 * @param map of probabilities, row by row.
 */
export function findLines(map, columns, rows) {
  const found = [];
  for (const region of regions(map, columns, rows, 0.3)) {
    if (region.length < 9) continue;
    const mean = region.reduce((sum, [x, y]) => sum + map[y * columns + x], 0) / region.length;
    if (mean < 0.5) continue;
    const { x, y, width, height, angle } = smallestRectangle(region);
    // The model marks the middle of a line: it is larger on all sides.
    const more = (width * height * 1.6) / (width + height);
    found.push(rectangle(x, y, width + more, height + more, angle));
  }
  return found.sort((a, b) => a.y - b.y || a.x - b.x);
}
