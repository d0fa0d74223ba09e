// The view "charts": gauges, sites and links over time, with what happened when.

import { Chart, COLOURS } from "./chart.js";
import { el, set } from "./dom.js";
import { bits, bytes, moment, number, percent, perSecond, plain, seconds, staleness } from "./format.js";
import { symbolOf } from "./slider.js";

const WINDOWS = [[0, "all so far"], [3600, "last hour"], [600, "last 10 min"], [120, "last 2 min"]];

// What is stale or of a site that is not up is a gap: a line would look like a figure of that moment.
const AGEING = new Set(["load", "lag_s", "bps"]);
const live = (of, key) => (of?.stale && AGEING.has(key) ? NaN : number(of?.[key]));
const blank = (of, key) => (of?.stale && AGEING.has(key) ? staleness(of) : of?.state && of.state !== "up" ? of.state : "unknown");

const gauge = (key) => (frame) => number(frame.gauges?.[key]);
const column = (frames, read) => {
  const values = new Float64Array(frames.length);
  for (let k = 0; k < values.length; k++) values[k] = read(frames[k]);
  return values;
};

const peak = (values) => { let most = -Infinity; for (const value of values) if (value > most) most = value; return most; };

/** The series of a figure: the one that decides, and its sources where they are not the same. */
function sources(frames, title, key) {
  const decided = { name: title, values: column(frames, gauge(key)) };
  if (!frames.some((frame) => frame.estimated)) return { series: [decided], note: "" };
  const measured = (frame) => (frame.measured?.stale ? NaN : number(frame.measured?.[key]));
  const series = [{ name: "estimated", values: column(frames, (frame) => number(frame.estimated?.[key])) }];
  if (frames.some((frame) => frame.measured?.[key] !== undefined))
    series.push({ name: "measured", values: column(frames, measured), blank: (k) => staleness(frames[k]?.measured) || "unknown" });
  const apart = decided.values.some((value, k) => series.every(({ values }) => !Object.is(values[k], value)));
  return { series: apart ? [...series, { ...decided, name: "used for decisions" }] : series, note: "" };
}

/** The named parts of frames that have a figure `key`, the highest first, at most eight. */
function parts(frames, group, key) {
  const names = new Set();
  const every = Math.max(1, Math.floor(frames.length / 50));
  for (let k = frames.length - 1; k >= 0; k -= every)
    for (const [name, of] of Object.entries(frames[k][group] || {})) if (of[key] !== undefined) names.add(name);
  const all = [...names].map((name) => ({
    name: name.replace(">", " → "), values: column(frames, (frame) => live(frame[group]?.[name], key)),
    blank: (k) => blank(frames[k]?.[group]?.[name], key),
  }));
  if (all.length <= COLOURS) return { series: all, note: "" };
  const series = all.map((of) => [peak(of.values), of]).sort(([a], [b]) => b - a).slice(0, COLOURS).map(([, of]) => of);
  return { series, note: `the ${COLOURS} highest of ${all.length}` };
}

const lasting = ({ from, to, open }, goesOn) =>
  (!open ? `took ${seconds(to - from)}` : goesOn ? "under way" : "no end was recorded");

export class ChartsView {
  constructor(store) {
    this.store = store;
    const { limits = {} } = store.scene, seek = (index) => store.seek(index);
    const one = (id, title, show, key, limitName) => ({
      chart: new Chart({ id, title, show, limit: number(limits[key]), limitName, onSeek: seek }),
      read: (frames) => sources(frames, title, key),
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
      many("cpu", "CPU by site, of its cores", percent, "sites", "cpu"),
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
    const from = frames[0]?.at_s ?? 0, marks = store.shownMarks.filter(({ at_s: at }) => at >= from && at <= end);
    const spans = store.spans.filter(({ from: begin, to }) => to >= from && begin <= end);
    for (const { chart, read, optional } of this.charts) {
      const { series, note } = read(frames);
      const empty = optional && !series.length;
      if (chart.root.hidden !== empty) chart.root.hidden = empty;
      if (!empty) chart.setData({ frames, first, series, marks, spans, clock: store.scene.clock, note });
    }
    this.listMarks();
    // On slow machines less often, so that the rest of the page is not kept waiting.
    this.pause = Math.max(450, 6 * (performance.now() - now));
  }

  listMarks() {
    const { store } = this, shown = store.shownMarks, took = new Map(store.spans.map((span) => [span.event, span]));
    const text = JSON.stringify([shown.map(({ at_s: at, title }) => [at, title]), store.spans.map(({ open }) => open), store.scene.live]);
    if (text === this.listed) return;
    this.listed = text;
    this.marks.replaceChildren(...shown.slice(-200).map((mark) => el("li", { data: { at: mark.at_s } },
      el("button", {
        type: "button", class: "mark-row", data: { mark: mark.kind }, title: mark.text || mark.title,
        on: { click: () => store.seek(store.nearest(mark.at_s)) },
      }, el("span", { class: "symbol", "aria-hidden": "true", text: symbolOf(mark.kind) }),
      el("span", { class: "when", text: moment(mark.at_s, store.scene.clock) }),
      el("span", { class: "what" }, el("b", { text: mark.title }), mark.text && mark.text !== mark.title ? el("span", { class: "soft", text: ` ${mark.text}` }) : null,
      mark.phase === "begin" ? el("span", { class: "soft", text: ` (${lasting(took.get(mark.event), store.scene.live)})` }) : null)))));
    if (!shown.length) this.marks.replaceChildren(el("li", { class: "soft", text: "Nothing yet." }));
  }

  stop() { this.watch.disconnect(); clearTimeout(this.later); }
}
