// What flows between sites: planned by the placement, measured by the frame where it was measured.

import { bits, number, percent, seconds } from "./format.js";

export const keyOf = (a, b) => `${a}>${b}`;

/**
 * Key "a>b" → { a, b, bps, load, lag_s, streams }, the largest first. Where links were measured, a
 * stream between sites without a link of their own (`direct` has both directions) is in those on its way.
 */
export function traffic(placement, frame, direct) {
  const measured = Object.entries(frame?.links || {});
  const found = new Map();
  const of = (a, b) => {
    const key = keyOf(a, b);
    if (!found.has(key)) found.set(key, { key, a, b, bps: NaN, load: NaN, lag_s: NaN, streams: [] });
    return found.get(key);
  };
  for (const flow of placement?.flows || []) {
    if (flow.a === flow.b || (measured.length && !direct.has(keyOf(flow.a, flow.b)))) continue;
    const link = of(flow.a, flow.b);
    link.streams.push(flow);
    link.bps = (Number.isNaN(link.bps) ? 0 : link.bps) + (number(flow.bps) || 0);
    // Streams on one link share it.
    const load = number(flow.load);
    if (!Number.isNaN(load)) link.load = (Number.isNaN(link.load) ? 0 : link.load) + load;
  }
  for (const [key, figures] of measured) {
    const cut = key.indexOf(">");
    if (cut < 0) continue;
    const bps = number(figures.bps);
    if (!found.has(key) && !(bps > 0)) continue;
    const link = of(key.slice(0, cut), key.slice(cut + 1));
    if (!Number.isNaN(bps)) link.bps = bps;
    if (!Number.isNaN(number(figures.load))) link.load = number(figures.load);
    link.lag_s = number(figures.lag_s);
  }
  return new Map([...found].sort(([, a], [, b]) => (b.bps || 0) - (a.bps || 0)));
}

export const level = (load) =>
  Number.isNaN(load) ? "unknown" : load > 1 ? "over" : load > 0.8 ? "high" : load > 0.5 ? "mid" : "low";

/** Ten times the rate is the same step wider, from 1 kbps on. */
export const widthOf = (bps) =>
  bps > 0 ? Math.min(Math.max((Math.log10(bps) - 2) * 1.7, 1.5), 13) : 1.5;

export const wordsOf = (link) => [
  bits(link.bps),
  Number.isNaN(link.load) ? "" : `load ${percent(link.load)}${link.load > 1 ? ", too much" : ""}`,
  link.lag_s > 0 ? `lag ${seconds(link.lag_s)}` : "",
].filter(Boolean).join(", ");
