// Sites in rows by tier, or at their positions, with operators on them and streams between them.

import { el, say, set, svg } from "./dom.js";
import { Card, chipsBySite, sign } from "./cards.js";
import { bits, count } from "./format.js";
import { Lines } from "./lines.js";
import { keyOf, traffic, widthOf } from "./traffic.js";

const TIERS = [["cloud", "Cloud"], ["fog", "Fog"], ["edge", "Edge"]];
export const MANY_SITES = 30;
const MOST_LINES = 60, MANY_PAUSE_MS = 200;

/** Whether all sites (or all but a few without one) have a position. */
export const hasPositions = ({ sites }) => {
  const known = sites.filter(({ x, y }) => x !== null && x !== undefined && y !== null && y !== undefined);
  return known.length >= 2 && known.length >= sites.length / 2;
};

export class Tiers {
  constructor(scene, { onSelect = () => {}, legend = true } = {}) {
    this.scene = scene;
    this.compact = scene.sites.length > MANY_SITES;
    this.order = new Map(scene.operators.map(({ name }, k) => [name, k]));
    this.kinds = new Map(scene.operators.map(({ name, kind }) => [name, kind]));
    this.direct = new Set((scene.links || []).flatMap(({ a, b }) => [keyOf(a, b), keyOf(b, a)]));
    this.layout = "tiers";
    this.chosen = null;
    this.lines = new Lines(onSelect);
    this.cards = new Map(scene.sites.map((site) => [site.name, new Card(site, { compact: this.compact, onSelect })]));
    const ordered = untangled(scene);
    const rows = TIERS.map(([tier, name]) => {
      const mine = ordered.filter((site) => site.tier === tier);
      if (!mine.length) return null;
      const all = mine.reduce((sum, { members = 1 }) => sum + members, 0);
      return el("section", { class: "tier", data: { tier, few: mine.length < 3 ? "yes" : "no" }, "aria-label": `${name}, ${count(all, "site")}` },
        el("h3", {}, name, el("span", { class: "soft", text: ` ${all.toLocaleString("en")}` })),
        el("div", { class: "cards" }, mine.map(({ name: of }) => this.cards.get(of).root)));
    });
    this.field = el("div", { class: `tiers${this.compact ? " compact" : ""}`, data: { layout: "tiers" } }, this.lines.root, rows);
    this.note = el("p", { class: "small soft" });
    this.root = el("div", { class: "tiers-view" }, this.field, legend ? legendOf() : null, this.note);
    // Boxes are only known when the browser has put them somewhere.
    this.watch = new ResizeObserver(() => this.arrange());
    this.watch.observe(this.field);
    if (this.compact) this.watchCards();
  }

  setLayout(layout) {
    this.layout = layout;
    if (layout !== "map") this.field.classList.remove("pills");
    set(this.field, "data-layout", layout);
    this.arrange();
  }

  choose(chosen) {
    this.chosen = chosen;
    for (const made of this.field.querySelectorAll("[data-chosen]")) made.removeAttribute("data-chosen");
    if (chosen?.kind === "site") this.cards.get(chosen.site)?.root.setAttribute("data-chosen", "");
    if (chosen?.kind === "chip") this.chipOf(chosen)?.setAttribute("data-chosen", "");
    if (this.links && this.links.size > MOST_LINES) this.arrange();
    else if (this.links) this.paint();
  }

  chipOf({ operator, site }) {
    return [...this.field.querySelectorAll("[data-chip]")].find((chip) => chip.dataset.chip === `${operator}@${site}`);
  }

  /** Shows a placement as it was at a frame (or as planned, without one). */
  show(placement, frame) {
    const links = traffic(placement, frame, this.direct);
    const same = placement === this.placement && this.links && links.size === this.links.size &&
      [...links.keys()].every((key) => this.links.has(key));
    if (placement !== this.placement) {
      const chips = chipsBySite(placement);
      for (const [name, card] of this.cards) card.place(chips.get(name), this.order, this.kinds);
    }
    this.placement = placement;
    this.frame = frame;
    this.links = links;
    this.paintCards();
    if (same) this.paint(); else this.arrange();
  }

  paintCards() {
    if (!this.compact) {
      for (const [name, card] of this.cards) card.paint(this.frame?.sites?.[name], undefined, this.frame?.at_s, this.scene.clock);
      return;
    }
    // Of hundreds only those on the screen, and not more often than one can read.
    if (this.later) return;
    const loads = fullest(this.links);
    for (const name of this.seen) this.cards.get(name).paint(this.frame?.sites?.[name], loads.get(name), this.frame?.at_s, this.scene.clock);
    this.later = setTimeout(() => { this.later = 0; if (this.painted !== this.frame) this.paintCards(); }, MANY_PAUSE_MS);
    this.painted = this.frame;
  }

  watchCards() {
    this.seen = new Set();
    this.sight = new IntersectionObserver((changes) => {
      for (const { target, isIntersecting } of changes)
        if (isIntersecting) this.seen.add(target.dataset.site); else this.seen.delete(target.dataset.site);
      if (this.links) this.paintCards();
    }, { rootMargin: "100px" });
    for (const { root } of this.cards.values()) this.sight.observe(root);
  }

  paint() {
    this.lines.paint(this.links, this.chosen?.kind === "link" ? this.chosen.key : null);
  }

  arrange() {
    if (!this.links || !this.field.isConnected || !this.field.clientWidth) return;
    const narrow = this.field.clientWidth < 560;
    this.field.classList.toggle("pills", this.layout === "map" && narrow && !this.compact);
    if (this.layout === "map") this.putAtPositions();
    else {
      this.field.style.height = "";
      for (const { root } of this.cards.values()) root.style.transform = "";
    }
    const outer = this.field.getBoundingClientRect(), boxes = new Map();
    for (const [name, { root }] of this.cards) {
      const { left, top, width, height } = root.getBoundingClientRect();
      if (width) boxes.set(name, { x: left - outer.left, y: top - outer.top, w: width, h: height });
    }
    const taken = [...boxes.values()];
    for (const head of this.field.querySelectorAll(".tier h3")) {
      const { left, top, width, height } = head.getBoundingClientRect();
      if (width) taken.push({ x: left - outer.left, y: top - outer.top, w: Math.min(width, 80), h: height });
    }
    const drawn = this.drawn();
    this.lines.place(boxes, drawn, this.compact ? [] : this.scene.links, {
      straight: this.layout === "map", wide: this.field.clientWidth, tall: this.field.clientHeight, quiet: this.compact, taken,
    });
    say(this.note, [
      this.scene.left_out || "",
      drawn === this.links ? "" : this.layout === "map" ? `Lines: the ${drawn.size} busiest of ${this.links.size}; the table has all.`
        : "Choose a site to see its lines; a percentage is the load of the fullest link from there. The table has all links.",
      this.layout === "map" && (this.compact || narrow) ? "Numbers at sites: instances of operators there." : "",
    ].filter(Boolean).join(" "));
    this.paint();
  }

  drawn() {
    if (this.links.size <= MOST_LINES) return this.links;
    // Through rows and rows of cards lines tell nothing, but for a few.
    if (this.layout !== "map") {
      const { kind, site, key } = this.chosen || {};
      const mine = ([of, { a, b }]) => (kind === "link" ? of === key : a === site || b === site);
      return new Map([...this.links].filter(mine).slice(0, MOST_LINES));
    }
    // Full links matter most, then wide ones.
    const rank = ({ load, bps }) => (load > 0.8 ? 1e15 * load : 0) + (bps || 0);
    const sorted = [...this.links].sort(([, a], [, b]) => rank(b) - rank(a));
    return new Map(sorted.slice(0, MOST_LINES));
  }

  putAtPositions() {
    const placed = this.scene.sites.filter(({ x, y }) => Number.isFinite(x) && Number.isFinite(y));
    const xs = placed.map(({ x }) => x), ys = placed.map(({ y }) => y);
    const west = Math.min(...xs), east = Math.max(...xs), south = Math.min(...ys), north = Math.max(...ys);
    const wide = this.field.clientWidth;
    const ratio = Math.min(Math.max((north - south) / Math.max(east - west, 1), 0.45), wide < 560 ? 1.3 : 0.62);
    const tall = Math.round(Math.max(Math.min(wide * ratio, window.innerHeight * 0.66), 380)), rim = this.compact ? 24 : 10;
    this.field.style.height = `${tall}px`;
    // Without a position: along the upper rim, above all others.
    const loose = this.scene.sites.filter((site) => !placed.includes(site)), top = loose.length ? 0.35 : 0;
    const share = (value, from, to) => (to > from ? (value - from) / (to - from) : 0.5);
    const spots = this.scene.sites.map((site) => {
      const { root } = this.cards.get(site.name), w = root.offsetWidth, h = root.offsetHeight;
      const number = loose.indexOf(site);
      const x = number < 0 ? share(site.x, west, east) : (number + 0.5) / loose.length;
      const y = number < 0 ? top + (1 - top) * (1 - share(site.y, south, north)) : 0;
      return { root, w, h, x: rim + w / 2 + x * (wide - w - 2 * rim), y: rim + h / 2 + y * (tall - h - 2 * rim) };
    });
    if (!this.compact) pushApart(spots, wide, tall, rim);
    for (const { root, x, y, w, h } of spots)
      root.style.transform = `translate(${Math.round(x - w / 2)}px, ${Math.round(y - h / 2)}px)`;
  }

  stop() {
    this.watch.disconnect();
    this.sight?.disconnect();
    clearTimeout(this.later);
  }
}

/** Site → load of the fullest link that leaves it. */
function fullest(links) {
  const found = new Map();
  for (const { a, load } of links.values()) if (!(load <= found.get(a))) found.set(a, load);
  return found;
}

/** Sites of each tier in the order of those above that they are linked to: fewer lines cross. */
function untangled({ sites, links }) {
  const rank = new Map(sites.map(({ name }, k) => [name, k])), tier = new Map(sites.map(({ name, tier: of }) => [name, of]));
  const above = new Map();
  for (const { a, b } of links || [])
    for (const [low, high] of [[a, b], [b, a]]) {
      const up = TIERS.findIndex(([name]) => name === tier.get(high)), down = TIERS.findIndex(([name]) => name === tier.get(low));
      if (up >= 0 && up < down) above.set(low, [...(above.get(low) || []), rank.get(high)]);
    }
  const middle = ({ name }) => {
    const found = above.get(name);
    return found ? found.reduce((sum, k) => sum + k, 0) / found.length : Infinity;
  };
  return sites.map((site, k) => [middle(site), k, site])
    .sort(([a, i], [b, j]) => (a === b ? i - j : a - b)).map(([, , site]) => site);
}

function pushApart(spots, wide, tall, rim) {
  // Cards that lie on each other give way along the shorter side, a little at a time.
  const GAP = 16;
  for (let round = 0; round < 120; round++) {
    let moved = false;
    for (let i = 0; i < spots.length; i++)
      for (let j = i + 1; j < spots.length; j++) {
        const a = spots[i], b = spots[j];
        const dx = (a.w + b.w) / 2 + GAP - Math.abs(a.x - b.x), dy = (a.h + b.h) / 2 + GAP - Math.abs(a.y - b.y);
        if (dx <= 0 || dy <= 0) continue;
        moved = true;
        if (dx < dy) { const by = (a.x <= b.x ? -1 : 1) * (dx / 2 + 0.5); a.x += by; b.x -= by; }
        else { const by = (a.y <= b.y ? -1 : 1) * (dy / 2 + 0.5); a.y += by; b.y -= by; }
      }
    for (const spot of spots) {
      spot.x = Math.min(Math.max(spot.x, spot.w / 2 + rim), wide - spot.w / 2 - rim);
      spot.y = Math.min(Math.max(spot.y, spot.h / 2 + rim), tall - spot.h / 2 - rim);
    }
    if (!moved) return;
  }
}

function legendOf() {
  const sample = (bps) => el("span", { class: "item" },
    svg("svg", { class: "sample", viewBox: "0 0 34 14", "aria-hidden": "true" },
      svg("path", { d: "M1 7H33", class: "stroke", "stroke-width": widthOf(bps).toFixed(1) })), bits(bps));
  const load = (name, text) => el("span", { class: "item link", data: { level: name } },
    svg("svg", { class: "sample", viewBox: "0 0 34 14", "aria-hidden": "true" },
      svg("path", { d: "M1 7H33", class: "stroke", "stroke-width": "5" })), text);
  const kind = (name) => el("span", { class: "item" }, sign(name), name);
  return el("div", { class: "legend small", "aria-label": "Legend" },
    el("div", {}, el("b", { text: "Operators" }), kind("source"), kind("transform"), kind("sink")),
    el("div", {}, el("b", { text: "Line width" }), sample(1e4), sample(1e6), sample(1e8)),
    el("div", {}, el("b", { text: "Link load" }), load("low", "to 50 %"), load("mid", "to 80 %"), load("high", "to 100 %"), load("over", "more, dashed")));
}
