// One chart over time on a canvas: lines, a limit, marks, and the moment that is looked at.

import { el, say, set } from "./dom.js";
import { moment } from "./format.js";
import { symbolOf } from "./slider.js";

const DASHES = [[], [6, 3], [2, 3], [9, 3, 2, 3], [12, 4], [1, 3], [5, 2, 1, 2, 1, 2], [3, 6]];
const LEFT = 8, RIGHT = 10, TOP = 30, BOTTOM = 20;
export const COLOURS = 8;

const coloursNow = () => {
  const style = getComputedStyle(document.documentElement), of = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: of("ink"), soft: of("soft"), line: of("line"), limit: of("over"), accent: of("accent"), card: of("card"),
    series: Array.from({ length: COLOURS }, (_, k) => of(`s${k + 1}`)),
  };
};

const fit = (canvas) => {
  const dots = window.devicePixelRatio || 1, wide = canvas.clientWidth, tall = canvas.clientHeight;
  canvas.width = Math.round(wide * dots);
  canvas.height = Math.round(tall * dots);
  const pen = canvas.getContext("2d");
  pen.setTransform(dots, 0, 0, dots, 0, 0);
  return [pen, wide, tall];
};

/** A round step that gives about `wanted` of them over `span`. */
export function roundStep(span, wanted, base = [1, 2, 5, 10]) {
  const raw = span / wanted, power = 10 ** Math.floor(Math.log10(raw));
  return base.find((factor) => factor * power >= raw - 1e-12) * power;
}

const timeStep = (span, wanted) =>
  [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400].find((step) => span / step <= wanted) ||
  (span < 1 ? roundStep(span, wanted) : 86400 * Math.ceil(span / 86400 / wanted));

export class Chart {
  /** `series`: [{ name, values(frames) }] with NaN where unknown; `show` writes a value. */
  constructor({ id, title, unit, show, limit, limitName, onSeek }) {
    Object.assign(this, { show, limit, limitName, onSeek });
    this.base = el("canvas", { class: "base", "aria-hidden": "true" });
    this.over = el("canvas", { class: "over", tabindex: "0", role: "img", data: { "time-keys": "" } });
    this.title = title;
    this.legend = el("ul", { class: "keys small" });
    this.tip = el("p", { class: "tip small", hidden: true });
    this.root = el("figure", { class: "chart", data: { chart: id } },
      el("figcaption", {}, el("h3", { text: title }), unit ? el("span", { class: "soft small", text: unit }) : null),
      el("div", { class: "plot" }, this.base, this.over, this.tip), this.legend);
    this.hover = null;
    this.over.addEventListener("pointermove", (event) => { this.hover = event.offsetX; this.paintOver(); });
    this.over.addEventListener("pointerleave", () => { this.hover = null; this.paintOver(); });
    this.over.addEventListener("click", (event) => { const k = this.indexAt(event.offsetX); if (k >= 0) onSeek(this.first + k); });
  }

  /** New data: `frames` from number `first` on, `marks` within, and the series. */
  setData({ frames, first, series, marks, spans = [], clock, note }) {
    Object.assign(this, { frames, first, marks, spans, clock });
    this.series = series;
    const names = series.map(({ name }) => name).join("\n") + (note || "");
    if (names !== this.names) {
      this.names = names;
      this.keys = series.map(({ name }, k) => {
        const value = el("b"), swatch = el("canvas", { class: "swatch", "aria-hidden": "true" });
        return { root: el("li", {}, swatch, el("span", { text: name }), value), value, swatch, k };
      });
      this.legend.replaceChildren(...this.keys.map(({ root }) => root), ...(note ? [el("li", { class: "soft", text: note })] : []));
    }
    this.paint();
  }

  paint() {
    if (!this.frames || !this.base.clientWidth) return;
    this.colours = coloursNow();
    this.pen = null;
    const [pen, wide, tall] = fit(this.base);
    this.wide = wide;
    this.tall = tall;
    const { frames, series, colours } = this;
    this.t0 = frames.length ? frames[0].at_s : 0;
    this.t1 = frames.length > 1 ? frames.at(-1).at_s : this.t0 + 1;
    let most = 0;
    for (const { values } of series) for (const value of values) if (Number.isFinite(value) && value > most) most = value;
    const limit = Number.isFinite(this.limit) && this.limit > 0 ? this.limit : null;
    // A limit far above the data would flatten it: then only its label tells.
    const far = limit !== null && most > 0 && limit > 8 * most;
    this.most = (Math.max(most, limit !== null && !far ? limit : 0) || 1) * 1.08;
    this.grid(pen, wide, tall);
    this.paintSpans(pen, wide, tall);
    this.paintMarks(pen, tall);
    series.forEach(({ values }, k) => this.line(pen, values, k));
    if (limit !== null) this.paintLimit(pen, wide, limit, far);
    for (const { swatch, k } of this.keys) {
      const [ink, w, h] = fit(swatch);
      this.stroke(ink, k);
      ink.beginPath(); ink.moveTo(0, h / 2); ink.lineTo(w, h / 2); ink.stroke();
    }
    if (!frames.length) {
      pen.fillStyle = colours.soft;
      pen.fillText("no data yet", LEFT, tall / 2);
    }
    fit(this.over);
    this.paintOver();
  }

  X(t) { return LEFT + ((this.wide - LEFT - RIGHT) * (t - this.t0)) / (this.t1 - this.t0 || 1); }
  Y(value) { return this.tall - BOTTOM - ((this.tall - TOP - BOTTOM) * Math.min(value, this.most)) / this.most; }

  stroke(pen, k) {
    pen.strokeStyle = this.colours.series[k % COLOURS];
    pen.lineWidth = 1.75;
    pen.setLineDash(DASHES[k % DASHES.length]);
  }

  grid(pen, wide, tall) {
    const { colours } = this;
    pen.font = "11px system-ui, sans-serif";
    pen.strokeStyle = colours.line;
    pen.fillStyle = colours.soft;
    pen.lineWidth = 1;
    pen.textBaseline = "bottom";
    const step = roundStep(this.most, 3.4);
    for (let value = 0; value <= this.most; value += step) {
      const y = Math.round(this.Y(value)) + 0.5;
      pen.beginPath(); pen.moveTo(LEFT, y); pen.lineTo(wide - RIGHT, y); pen.stroke();
      if (value > 0) pen.fillText(this.show(value), LEFT, y - 1);
    }
    const span = this.t1 - this.t0, hop = timeStep(span, Math.max(Math.floor(wide / 90), 2));
    pen.textBaseline = "alphabetic";
    for (let t = Math.ceil(this.t0 / hop) * hop; t <= this.t1; t += hop) {
      const x = this.X(t);
      pen.beginPath(); pen.moveTo(x, tall - BOTTOM); pen.lineTo(x, tall - BOTTOM + 4); pen.stroke();
      const text = moment(t, this.clock), half = pen.measureText(text).width / 2;
      pen.fillText(text, Math.min(Math.max(x - half, 0), wide - 2 * half), tall - 4);
    }
  }

  /** What takes a while: a shade from its beginning to its end, with a bar on top. */
  paintSpans(pen, wide, tall) {
    const { colours } = this;
    for (const { kind, from, to } of this.spans) {
      const x0 = Math.max(this.X(from), LEFT), x1 = Math.min(Math.max(this.X(to), x0 + 2), wide - RIGHT);
      pen.fillStyle = kind === "restart" || kind === "failure" ? colours.limit : colours.accent;
      pen.globalAlpha = 0.1;
      pen.fillRect(x0, 16, x1 - x0, tall - BOTTOM - 16);
      pen.globalAlpha = 1;
      pen.fillRect(x0, 16, x1 - x0, 2);
    }
  }

  paintMarks(pen, tall) {
    const { colours } = this;
    pen.textBaseline = "top";
    this.markAt = [];
    for (const mark of this.marks) {
      const x = this.X(mark.at_s);
      this.markAt.push(x);
      pen.strokeStyle = colours.soft;
      pen.globalAlpha = 0.55;
      pen.setLineDash([1, 3]);
      pen.beginPath(); pen.moveTo(x, 16); pen.lineTo(x, tall - BOTTOM); pen.stroke();
      pen.globalAlpha = 1;
      pen.fillStyle = mark.kind === "failure" || mark.kind === "rollback" ? colours.limit : colours.ink;
      pen.textAlign = "center";
      pen.fillText(symbolOf(mark.kind), x, 3);
    }
    pen.textAlign = "left";
    pen.setLineDash([]);
  }

  line(pen, values, k) {
    // At most two points for each column of pixels: the least and the most there.
    const { frames } = this;
    this.stroke(pen, k);
    pen.lineJoin = "round";
    pen.beginPath();
    let open = false, column = -1, low = 0, high = 0, last = 0;
    const close = () => {
      if (column < 0) return;
      // A moment alone, with nothing known before and after it, is a line of a pixel.
      if (open) pen.lineTo(column, this.Y(low)); else { pen.moveTo(column - 0.5, this.Y(low)); pen.lineTo(column + 0.5, this.Y(low)); }
      if (high !== low) { pen.lineTo(column, this.Y(high)); }
      if (last !== high) pen.lineTo(column, this.Y(last));
      open = true;
      column = -1;
    };
    for (let i = 0; i < frames.length; i++) {
      const value = values[i];
      if (Number.isNaN(value)) { close(); open = false; continue; }
      const x = Math.round(this.X(frames[i].at_s) * 2) / 2;
      if (x === column) { low = Math.min(low, value); high = Math.max(high, value); last = value; continue; }
      close();
      column = x; low = high = last = value;
    }
    close();
    pen.stroke();
    pen.setLineDash([]);
  }

  paintLimit(pen, wide, limit, far) {
    const { colours } = this, y = far ? TOP - 4 : this.Y(limit);
    pen.strokeStyle = pen.fillStyle = colours.limit;
    pen.lineWidth = 1.5;
    if (!far) {
      pen.setLineDash([8, 4]);
      pen.beginPath(); pen.moveTo(LEFT, y); pen.lineTo(wide - RIGHT, y); pen.stroke();
      pen.setLineDash([]);
    }
    const text = `${far ? "↑ " : ""}${this.limitName} ${this.show(limit)}`;
    pen.font = "600 11px system-ui, sans-serif";
    pen.textAlign = "right";
    pen.textBaseline = "bottom";
    pen.strokeStyle = colours.card;
    pen.lineWidth = 3;
    pen.strokeText(text, wide - RIGHT, y - 2);
    pen.fillText(text, wide - RIGHT, y - 2);
    pen.textAlign = "left";
    pen.font = "11px system-ui, sans-serif";
  }

  indexAt(x) {
    const { frames } = this;
    if (!frames?.length) return -1;
    const t = this.t0 + ((x - LEFT) / (this.wide - LEFT - RIGHT)) * (this.t1 - this.t0);
    let low = 0, high = frames.length - 1;
    while (low < high) { const middle = (low + high) >> 1; if (frames[middle].at_s < t) low = middle + 1; else high = middle; }
    return low > 0 && t - frames[low - 1].at_s < frames[low].at_s - t ? low - 1 : low;
  }

  /** The moment that is looked at, as the number of its frame. */
  setCursor(index) { this.cursor = index; this.paintOver(); }

  paintOver() {
    const { frames, over, wide, tall } = this;
    if (!frames || !wide) return;
    const pen = over.getContext("2d");
    pen.clearRect(0, 0, wide, tall);
    const hovered = this.hover === null ? -1 : this.indexAt(this.hover);
    // There may be newer frames than those that are drawn.
    const now = Math.min((this.cursor ?? -1) - this.first, frames.length - 1), k = hovered >= 0 ? hovered : now;
    const upright = (x, width, alpha) => {
      pen.globalAlpha = alpha;
      pen.strokeStyle = this.colours.accent;
      pen.lineWidth = width;
      pen.beginPath(); pen.moveTo(x, 16); pen.lineTo(x, tall - BOTTOM); pen.stroke();
      pen.globalAlpha = 1;
    };
    if (frames[now]) upright(this.X(frames[now].at_s), 2, 0.9);
    if (hovered >= 0) upright(this.X(frames[hovered].at_s), 1, 0.8);
    const values = this.keys.map(({ value, k: s }) => {
      const figure = this.series[s].values[k];
      say(value, figure === undefined ? "–" : Number.isNaN(figure) ? this.series[s].blank?.(k) ?? "unknown" : this.show(figure));
      if (frames[k] && Number.isFinite(figure)) {
        pen.fillStyle = this.colours.series[s % COLOURS];
        pen.beginPath(); pen.arc(this.X(frames[k].at_s), this.Y(figure), 3, 0, 7); pen.fill();
      }
      return value.textContent;
    });
    const when = frames[k] ? moment(frames[k].at_s, this.clock) : "";
    set(over, "aria-label", `${this.title} at ${when}: ${this.series.map(({ name }, s) => `${name} ${values[s]}`).join(", ")}`);
    this.tip.hidden = hovered < 0;
    if (hovered < 0) return;
    const near = this.marks.filter((_, m) => Math.abs(this.markAt[m] - this.hover) < 6).map(({ kind, title }) => `${symbolOf(kind)} ${title}`);
    const t = frames[k]?.at_s, during = this.spans.filter(({ from, to }) => from <= t && t <= to)
      .map(({ kind, title, from, to, open }) => `${symbolOf(kind)} ${title}${open ? "" : `, ${(to - from).toFixed(1)} s`}`);
    say(this.tip, [...new Set([when, ...near, ...during])].join("  "));
    this.tip.style.left = `${Math.min(this.hover + 10, Math.max(wide - 170, 0))}px`;
  }
}
