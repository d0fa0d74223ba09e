// A site as a card: its state, its bars, and the operators on it as chips.

import { el, say, set, svg } from "./dom.js";
import { moment, number, percent, seconds, staleness } from "./format.js";
import { level } from "./traffic.js";

const SHAPES = {
  source: () => svg("path", { d: "M1 1 L9 5 L1 9 Z" }),
  transform: () => svg("rect", { x: 1, y: 1, width: 8, height: 8, rx: 1.5 }),
  sink: () => svg("path", { d: "M5 .5 A4.5 4.5 0 1 0 5 9.5 A4.5 4.5 0 1 0 5 .5 Z M5 3 A2 2 0 1 1 5 7 A2 2 0 1 1 5 3 Z", "fill-rule": "evenodd" }),
};

/** The sign of a kind of operator: a triangle, a square or a ring. */
export const sign = (kind) =>
  svg("svg", { class: "sign", viewBox: "0 0 10 10", "aria-hidden": "true" }, (SHAPES[kind] || SHAPES.transform)());

const STATES = { up: "● up", down: "✕ down", starting: "◌ starting", restarting: "↻ restarting", ended: "■ ended" };
const TIMED = new Set(["down", "restarting"]);

/** State of a site with when that began, for people. */
export const stateWords = ({ state, since_s: since }, clock) =>
  `${state}${Number.isFinite(since) ? ` since ${moment(since, clock)}` : ""}`;

/** Operators at a site, each once, with how many instances it has there. */
export function chipsBySite(placement) {
  const sites = new Map();
  const changed = new Set((placement?.changed || []).map(({ operator, site }) => JSON.stringify([operator, site])));
  for (const { operator, site, count = 1 } of placement?.instances || []) {
    if (!sites.has(site)) sites.set(site, new Map());
    const chips = sites.get(site), known = chips.get(operator);
    if (known) known.count += count;
    else chips.set(operator, { operator, site, count, changed: changed.has(JSON.stringify([operator, site])) });
  }
  return sites;
}

export class Card {
  constructor(site, { compact, onSelect }) {
    this.site = site;
    this.compact = compact;
    this.onSelect = onSelect;
    this.state = el("span", { class: "state" });
    this.count = el("span", { class: "count", "aria-hidden": "true" });
    const name = el("button", {
      type: "button", class: "site-name", title: site.name, text: site.name,
      on: { click: () => onSelect({ kind: "site", site: site.name }) },
    });
    this.bars = {};
    const bars = compact ? null : el("div", { class: "bars" },
      ["cpu", "memory"].map((key) => this.bar(key, key === "cpu" ? "CPU" : "Memory")));
    this.lag = el("span", { class: "lag" });
    this.stale = el("p", { class: "stale-note small", hidden: true });
    this.chips = el("ul", { class: "chips" });
    this.root = el("article", { class: "site", data: { site: site.name, tier: site.tier }, "aria-label": site.name },
      el("header", {}, name, this.count, compact ? null : this.lag, this.state), bars, this.stale, this.chips);
  }

  bar(key, name) {
    const fill = el("i"), value = el("span", { class: "value" });
    const root = el("div", { class: "bar", data: { bar: key }, hidden: true },
      el("span", { class: "label", text: name }), el("span", { class: "track" }, fill), value);
    this.bars[key] = { root, fill, value };
    return root;
  }

  /** The chips of a placement; `order` and `kinds` come from the application. */
  place(chips, order, kinds) {
    const sorted = [...(chips?.values() || [])].sort((a, b) => (order.get(a.operator) ?? 0) - (order.get(b.operator) ?? 0));
    this.chips.replaceChildren(...sorted.map((chip) => el("li", {}, this.chip(chip, kinds.get(chip.operator)))));
    const all = sorted.reduce((sum, { count }) => sum + count, 0);
    say(this.count, all ? String(all) : "");
    set(this.root, "data-empty", !sorted.length);
    set(this.root, "data-changed", sorted.some(({ changed }) => changed));
    this.chips.hidden = !sorted.length;
  }

  chip({ operator, site, count, changed }, kind = "transform") {
    const many = count > 1 ? ` ×${count.toLocaleString("en")}` : "";
    return el("button", {
      type: "button", class: "chip", data: { chip: `${operator}@${site}`, kind, changed: changed ? "yes" : "no" },
      "aria-label": `${kind} ${operator}${many} at ${site}${changed ? ", new with the last change" : ""}`,
      on: { click: () => this.onSelect({ kind: "chip", operator, site }) },
    }, sign(kind), el("span", { class: "name", text: operator }), many ? el("span", { class: "many", text: many }) : null,
    changed ? el("span", { class: "new", text: "new" }) : null);
  }

  /** What was measured at the site by a moment; what nobody measures of it is not shown. */
  paint(figures, load, atS, clock) {
    const state = figures?.state ?? "", old = staleness(figures);
    set(this.root, "data-state", state || null);
    set(this.root, "data-stale", old ? "yes" : null);
    set(this.root, "aria-label", [this.site.name, state && stateWords(figures, clock), old && `${figures.lag_s === undefined ? "load" : "lag"} ${old}`].filter(Boolean).join(", "));
    if (this.compact) {
      // No room for bars and lines: the fullest of its links, in a word.
      const known = load !== undefined && !Number.isNaN(load);
      say(this.state, state === "up" || !state ? (known ? `${load > 1 ? "▲" : ""}${percent(load)}` : "") : STATES[state] || state);
      set(this.state, "data-level", known ? level(load) : null);
      set(this.state, "title", known ? "load of its fullest link" : null);
      return;
    }
    const since = figures?.since_s, aged = TIMED.has(state) && Number.isFinite(since) && atS >= since;
    say(this.state, `${STATES[state] || state}${aged ? ` ${seconds(Math.round(atS - since))}` : ""}`);
    set(this.state, "title", Number.isFinite(since) ? `since ${moment(since, clock)}` : null);
    for (const [key, { root, fill, value }] of Object.entries(this.bars)) {
      const share = number(figures?.[key]);
      root.hidden = figures?.[key] === undefined;
      if (root.hidden) continue;
      fill.style.transform = `scaleX(${Number.isNaN(share) ? 0 : Math.min(Math.max(share, 0), 1).toFixed(3)})`;
      set(root, "data-level", share > 1 ? "over" : share > 0.8 ? "high" : "fine");
      say(value, percent(share));
    }
    say(this.lag, figures?.lag_s === undefined ? "" : `lag ${seconds(figures.lag_s)}`);
    say(this.stale, old ? `◷ ${figures.lag_s === undefined ? "load" : "lag"} ${old}` : "");
    this.stale.hidden = !old;
  }
}
