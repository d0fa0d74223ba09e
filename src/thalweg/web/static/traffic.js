// What flows between sites: planned by the placement, measured by the frame where it was measured.

import { bits, number, percent, seconds, staleness } from "./format.js";

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
    if (!found.has(key)) found.set(key, { key, a, b, bps: NaN, load: NaN, lag_s: NaN, streams: [], known: "estimated" });
    return found.get(key);
  };
  for (const flow of placement?.flows || []) {
    if (flow.a === flow.b || (measured.length && !direct.has(keyOf(flow.a, flow.b)))) continue;
    const link = of(flow.a, flow.b);
    link.streams.push(flow);
    const bps = number(flow.bps);
    // Of several streams on a link one that is unknown makes the sum unknown.
    link.bps = link.streams.length === 1 ? bps : link.bps + bps;
    // Streams on one link share it.
    const load = number(flow.load);
    if (!Number.isNaN(load)) link.load = (Number.isNaN(link.load) ? 0 : link.load) + load;
  }
  for (const [key, figures] of measured) {
    const cut = key.indexOf(">");
    if (cut < 0) continue;
    const bps = number(figures.bps);
    if (!found.has(key) && Number.isNaN(bps)) continue;
    // What is measured takes the place of what was planned, also where it is unknown now.
    const link = of(key.slice(0, cut), key.slice(cut + 1));
    Object.assign(link, {
      bps, load: number(figures.load), lag_s: number(figures.lag_s), lagged: "lag_s" in figures,
      known: "measured", stale: figures.stale, age_s: figures.age_s, state: figures.state,
    });
  }
  return new Map([...found].sort(([, a], [, b]) => (b.bps || 0) - (a.bps || 0)));
}

export const level = (load) =>
  Number.isNaN(load) ? "unknown" : load > 1 ? "over" : load > 0.8 ? "high" : load > 0.5 ? "mid" : "low";

/** Ten times the rate is the same step wider, from 1 kbps on. */
export const widthOf = (bps) =>
  bps > 0 ? Math.min(Math.max((Math.log10(bps) - 2) * 1.7, 1.5), 13) : 1.5;

/** Bits/s on a link; of a site that is not up its state stands for them. */
export const rateOf = ({ bps, state }) => (Number.isNaN(bps) && state ? state : bits(bps));

export const wordsOf = (link) => [
  rateOf(link),
  Number.isNaN(link.bps) ? "" : link.known,
  Number.isNaN(link.load) ? "" : `load ${percent(link.load)}${link.load > 1 ? ", too much" : ""}`,
  link.lagged && !link.state ? `lag ${seconds(link.lag_s)}` : "",
  staleness(link),
].filter(Boolean).join(", ");
