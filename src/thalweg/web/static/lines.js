// Streams between sites as lines: width is the rate, colour and label the load.

import { set, svg } from "./dom.js";
import { percent } from "./format.js";
import { level, rateOf, widthOf, wordsOf } from "./traffic.js";

const MOST_FOCUSED = 40, MOST_LABELLED = 40;

/** Where a line runs: a curve between the near sides of two boxes. */
function curve(a, b, shift, straight) {
  const ax = a.x + a.w / 2, ay = a.y + a.h / 2, bx = b.x + b.w / 2, by = b.y + b.h / 2;
  if (straight) {
    // To the right of its way: the line back then lies on the other side.
    const far = Math.hypot(bx - ax, by - ay) || 1, dx = (-(by - ay) / far) * Math.abs(shift), dy = ((bx - ax) / far) * Math.abs(shift);
    return [ax + dx, ay + dy, ax + dx, ay + dy, bx + dx, by + dy, bx + dx, by + dy];
  }
  const up = b.y + b.h <= a.y, down = a.y + a.h <= b.y;
  if (up || down) {
    const y0 = up ? a.y : a.y + a.h, y1 = up ? b.y + b.h : b.y;
    const x0 = a.portX ?? ax, x1 = b.portX ?? bx, bend = (y1 - y0) / 2;
    return [x0 + shift, y0, x0 + shift, y0 + bend, x1 + shift, y1 - bend, x1 + shift, y1];
  }
  // Beside each other: below, so that it is not hidden.
  const deep = Math.max(a.y + a.h, b.y + b.h) + 18 + shift;
  return [ax + shift, a.y + a.h, ax + shift, deep, bx + shift, deep, bx + shift, b.y + b.h];
}

const at = ([x0, y0, x1, y1, x2, y2, x3, y3], t) => {
  const s = 1 - t, k = [s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t];
  return [k[0] * x0 + k[1] * x1 + k[2] * x2 + k[3] * x3, k[0] * y0 + k[1] * y1 + k[2] * y2 + k[3] * y3];
};

const path = ([x0, y0, ...rest]) =>
  `M${x0.toFixed(1)} ${y0.toFixed(1)}C${rest.map((value) => value.toFixed(1)).join(" ")}`;

/** The way that a line goes, as one of eight arrows. */
const arrowOf = (line, straight) => {
  if (!straight && line[7] !== line[1]) return line[7] < line[1] ? "↑" : "↓";
  const turn = Math.atan2(line[7] - line[1], line[6] - line[0]);
  return "→↘↓↙←↖↑↗"[(Math.round(turn / (Math.PI / 4)) + 8) % 8];
};

export class Lines {
  constructor(onSelect) {
    this.onSelect = onSelect;
    this.idle = svg("path", { class: "idle" });
    this.group = svg("g", { role: "group", "aria-label": "Streams between sites" });
    // Above all lines, so that none of them strikes a label through.
    this.labels = svg("g", { "aria-hidden": "true" });
    this.root = svg("svg", { class: "lines" }, this.idle, this.group, this.labels);
    this.known = new Map();
  }

  make(link) {
    const name = svg("title"), hit = svg("path", { class: "hit" });
    const stroke = svg("path", { class: "stroke" }), text = svg("text", { "text-anchor": "middle" });
    const ground = svg("rect", { rx: 8, height: 17 }), label = svg("g", { class: "label" }, ground, text);
    const root = svg("g", { class: "link", data: { link: link.key } }, name, hit, stroke);
    const select = () => this.onSelect({ kind: "link", key: link.key, a: link.a, b: link.b });
    root.addEventListener("click", select);
    root.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      select();
    });
    label.addEventListener("click", select);
    return { root, name, hit, stroke, text, ground, label };
  }

  /** Puts the lines of `links` between `boxes` (site → box); `pairs` are links, used or not. */
  place(boxes, links, pairs, { straight, wide, tall, quiet, taken }) {
    set(this.root, "width", wide);
    set(this.root, "height", tall);
    set(this.root, "viewBox", `0 0 ${wide} ${tall}`);
    for (const [key, made] of this.known) if (!links.has(key)) { made.root.remove(); made.label.remove(); this.known.delete(key); }
    const used = new Set();
    const drawn = [...links.values()].filter(({ a, b }) => boxes.has(a) && boxes.has(b));
    const ports = portsOf(drawn, boxes, straight);
    for (const link of drawn) {
      const back = links.has(`${link.b}>${link.a}`);
      const shift = back ? (link.a < link.b ? 5 : -5) : 0;
      const [ax, bx] = ports.get(link.key) || [];
      const line = curve({ ...boxes.get(link.a), portX: ax }, { ...boxes.get(link.b), portX: bx }, shift, straight);
      used.add(`${link.a}>${link.b}`).add(`${link.b}>${link.a}`);
      if (!this.known.has(link.key)) {
        this.known.set(link.key, this.make(link));
        this.group.append(this.known.get(link.key).root);
        this.labels.append(this.known.get(link.key).label);
      }
      const made = this.known.get(link.key), d = path(line);
      set(made.hit, "d", d);
      set(made.stroke, "d", d);
      set(made.root, "tabindex", drawn.length <= MOST_FOCUSED ? "0" : null);
      set(made.root, "role", drawn.length <= MOST_FOCUSED ? "button" : null);
      made.spot = quiet ? null : this.spot(line, taken, wide < 560 ? 58 : 128, wide);
      made.arrow = arrowOf(line, straight);
    }
    const rest = (pairs || []).filter(({ a, b }) => boxes.has(a) && boxes.has(b) && !used.has(`${a}>${b}`));
    set(this.idle, "d", rest.map(({ a, b }) => path(curve(boxes.get(a), boxes.get(b), 0, straight))).join(""));
    this.terse = wide < 560;
  }

  spot(line, taken, w, wide) {
    // A place for the label that nothing else has.
    for (const t of [0.38, 0.5, 0.62, 0.26, 0.74]) {
      const [x, y] = at(line, t), box = { x: x - w / 2, y: y - 9, w, h: 18 };
      if (box.x < 0 || box.x + w > wide) continue;
      const free = taken.every((o) => box.x + w < o.x || o.x + o.w < box.x || box.y + 18 < o.y || o.y + o.h < box.y);
      if (free) { taken.push(box); return [x, y]; }
    }
    return null;
  }

  /** Rates and loads at this moment. */
  paint(links, chosen) {
    let labels = 0;
    for (const [key, made] of this.known) {
      const link = links.get(key);
      if (!link) continue;
      set(made.root, "data-level", level(link.load));
      set(made.root, "data-chosen", key === chosen);
      set(made.root, "data-stale", link.stale ? "yes" : null);
      set(made.stroke, "stroke-width", widthOf(link.bps).toFixed(1));
      const words = `${link.a} to ${link.b}: ${wordsOf(link)}`;
      if (made.name.textContent !== words) made.name.textContent = words;
      set(made.root, "aria-label", words);
      const load = Number.isNaN(link.load) ? "" : `${link.load > 1 ? "▲ " : ""}${percent(link.load)}`;
      const label = `${link.stale ? "◷ " : ""}${this.terse && load ? load : [rateOf(link), load].filter(Boolean).join(" · ")}`;
      const shown = made.spot && label && labels++ < MOST_LABELLED ? `${made.arrow} ${label}` : "";
      set(made.label, "data-level", level(link.load));
      set(made.label, "visibility", shown ? "visible" : "hidden");
      if (!shown) continue;
      if (made.text.textContent !== shown) made.text.textContent = shown;
      const [x, y] = made.spot, wide = 7.1 * shown.length + 12;
      set(made.text, "x", x.toFixed(1));
      set(made.text, "y", (y + 4).toFixed(1));
      set(made.ground, "x", (x - wide / 2).toFixed(1));
      set(made.ground, "y", (y - 8.5).toFixed(1));
      set(made.ground, "width", wide.toFixed(1));
    }
  }
}

function portsOf(links, boxes, straight) {
  // Many lines at one side of a box begin beside each other, in the order of their other ends.
  const ports = new Map();
  if (straight) return ports;
  const sides = new Map();
  for (const link of links) {
    const a = boxes.get(link.a), b = boxes.get(link.b);
    const up = b.y + b.h <= a.y;
    if (!up && !(a.y + a.h <= b.y)) continue;
    for (const [site, other, end, side] of [[link.a, b, 0, up ? "n" : "s"], [link.b, a, 1, up ? "s" : "n"]]) {
      const key = `${side} ${site}`;
      if (!sides.has(key)) sides.set(key, []);
      sides.get(key).push({ key: link.key, end, x: other.x + other.w / 2, box: boxes.get(site) });
    }
  }
  for (const ends of sides.values()) {
    ends.sort((a, b) => a.x - b.x);
    ends.forEach(({ key, end, box }, k) => {
      if (!ports.has(key)) ports.set(key, []);
      const room = Math.min(box.w * 0.8, ends.length * 60);
      ports.get(key)[end] = box.x + box.w / 2 + room * ((k + 0.5) / ends.length - 0.5);
    });
  }
  return ports;
}
