// The view "charts": gauges, sites and links over time, with what happened when.

import { Chart, COLOURS } from "./chart.js";
import { el, set } from "./dom.js";
import { bits, bytes, moment, number, percent, perSecond, plain, seconds } from "./format.js";
import { symbolOf } from "./slider.js";

const WINDOWS = [[0, "all so far"], [3600, "last hour"], [600, "last 10 min"], [120, "last 2 min"]];

const gauge = (key) => (frame) => number(frame.gauges?.[key]);
const column = (frames, read) => {
  const values = new Float64Array(frames.length);
  for (let k = 0; k < values.length; k++) values[k] = read(frames[k]);
  return values;
};

const peak = (values) => { let most = -Infinity; for (const value of values) if (value > most) most = value; return most; };

/** The named parts of frames that have known values of `key`, the highest first, at most eight. */
function parts(frames, group, key) {
  const names = new Set();
  const every = Math.max(1, Math.floor(frames.length / 50));
  for (let k = frames.length - 1; k >= 0; k -= every)
    for (const [name, of] of Object.entries(frames[k][group] || {})) if (!Number.isNaN(number(of[key]))) names.add(name);
  const all = [...names].map((name) => ({
    name: name.replace(">", " → "), values: column(frames, (frame) => number(frame[group]?.[name]?.[key])),
  }));
  if (all.length <= COLOURS) return { series: all, note: "" };
  const series = all.map((of) => [peak(of.values), of]).sort(([a], [b]) => b - a).slice(0, COLOURS).map(([, of]) => of);
  return { series, note: `the ${COLOURS} highest of ${all.length}` };
}

export class ChartsView {
  constructor(store) {
    this.store = store;
    const { limits = {} } = store.scene, seek = (index) => store.seek(index);
    const one = (id, title, show, key, limitName) => ({
      chart: new Chart({ id, title, show, limit: number(limits[key]), limitName, onSeek: seek }),
      read: (frames) => ({ series: [{ name: title, values: column(frames, gauge(key)) }], note: "" }),
    });
    const many = (id, title, show, group, key) => ({
      chart: new Chart({ id, title, show, limit: NaN, onSeek: seek }), read: (frames) => parts(frames, group, key), optional: true,
    });
    this.charts = [
      one("response-time", "Response time T", seconds, "response_time_s", "Tmax"),
      one("uplink", "Uplink B", bits, "uplink_bps", "Bmax"),
      one("usage", "Resource usage RU", plain, "usage", "RUmax"),
      {
        chart: new Chart({ id: "events", title: "Events", show: perSecond, limit: NaN, onSeek: seek }),
        read: (frames) => ({ series: [["in", "events_in_per_s"], ["out", "events_out_per_s"]].map(([name, key]) => ({ name, values: column(frames, gauge(key)) })), note: "" }),
      },
      many("cpu", "CPU by site", percent, "sites", "cpu"),
      many("memory", "Memory by site", percent, "sites", "memory"),
      many("memory-used", "Memory used by site", bytes, "sites", "memory_bytes"),
      many("link-load", "Load by link", percent, "links", "load"),
      many("link-lag", "Lag by link", seconds, "links", "lag_s"),
      many("site-lag", "Lag by site", seconds, "sites", "lag_s"),
    ];
    this.span = el("select", { id: "window" }, WINDOWS.map(([value, text]) => el("option", { value, text })));
    this.span.addEventListener("change", () => { this.drawn = -1; this.update(); });
    this.marks = el("ol", { class: "mark-list", id: "mark-list" });
    this.root = el("div", { class: "charts-view" },
      el("div", { class: "bar-row" }, el("p", { class: "small soft", text: "Click or tap a chart to look at that moment; with a chart in focus, arrow keys step." }),
        el("label", { class: "inline" }, "Show ", this.span)),
      el("div", { class: "charts" }, this.charts.map(({ chart }) => chart.root)),
      el("h3", { text: "What happened" }), this.marks);
    this.drawn = -1;
    this.pause = 450;
    this.watch = new ResizeObserver(() => this.repaint());
    this.watch.observe(this.root);
  }

  repaint() { for (const { chart } of this.charts) chart.paint(); }

  update() {
    const { store } = this, now = performance.now();
    // Many new frames in a second need not be drawn one by one.
    if (this.drawn !== store.version && (this.drawn < 0 || now - this.drawnAt > this.pause)) this.draw(now);
    else if (this.drawn !== store.version && !this.later) this.later = setTimeout(() => { this.later = 0; this.update(); }, this.pause + 50);
    for (const { chart } of this.charts) chart.setCursor(store.index);
    for (const made of this.marks.children) {
      const at = Number(made.dataset.at);
      set(made, "data-past", store.frame && at <= store.frame.at_s ? "yes" : "no");
    }
  }

  draw(now) {
    const { store } = this, span = Number(this.span.value);
    this.drawn = store.version;
    this.drawnAt = now;
    const end = store.frames.at(-1)?.at_s ?? 0;
    const first = span ? Math.max(store.nearest(end - span), 0) : 0, frames = store.frames.slice(first);
    const from = frames[0]?.at_s ?? 0, marks = store.marks.filter(({ at_s: at }) => at >= from && at <= end);
    for (const { chart, read, optional } of this.charts) {
      const { series, note } = read(frames);
      const empty = optional && !series.length;
      if (chart.root.hidden !== empty) chart.root.hidden = empty;
      if (!empty) chart.setData({ frames, first, series, marks, clock: store.scene.clock, note });
    }
    this.listMarks();
    // On slow machines less often, so that the rest of the page is not kept waiting.
    this.pause = Math.max(450, 6 * (performance.now() - now));
  }

  listMarks() {
    const { store } = this, text = JSON.stringify(store.marks.map(({ at_s: at, title }) => [at, title]));
    if (text === this.listed) return;
    this.listed = text;
    this.marks.replaceChildren(...store.marks.slice(-200).map((mark) => el("li", { data: { at: mark.at_s } },
      el("button", {
        type: "button", class: "mark-row", data: { mark: mark.kind }, title: mark.text || mark.title,
        on: { click: () => store.seek(store.nearest(mark.at_s)) },
      }, el("span", { class: "symbol", "aria-hidden": "true", text: symbolOf(mark.kind) }),
      el("span", { class: "when", text: moment(mark.at_s, store.scene.clock) }),
      el("span", { class: "what" }, el("b", { text: mark.title }), mark.text && mark.text !== mark.title ? el("span", { class: "soft", text: ` ${mark.text}` }) : null)))));
    if (!store.marks.length) this.marks.replaceChildren(el("li", { class: "soft", text: "Nothing yet." }));
  }

  stop() { this.watch.disconnect(); clearTimeout(this.later); }
}
