// The few figures that tell how a deployment stands, each beside its limit.

import { el, say, set } from "./dom.js";
import { GAUGES, number, staleness, standing } from "./format.js";

export class Gauges {
  constructor(limits) {
    this.limits = limits || {};
    this.parts = GAUGES.map((gauge) => {
      const value = el("span", { class: "figure" }), words = el("span", { class: "words small" });
      const role = el("span", { class: "role small soft", text: "used for decisions", hidden: true });
      const estimated = el("span", { class: "source", data: { source: "estimated" } }), measured = el("span", { class: "source", data: { source: "measured" } });
      const sources = el("span", { class: "sources small", hidden: true }, estimated, measured);
      const fill = el("i"), track = el("span", { class: "track", "aria-hidden": "true" }, fill);
      const limit = number(this.limits[gauge.key]);
      const root = el("div", { class: "gauge", data: { gauge: gauge.key } },
        el("dt", {}, gauge.name, gauge.symbol ? el("abbr", { title: gauge.name, text: gauge.symbol }) : null),
        el("dd", {}, value, role, track, words, sources));
      track.hidden = !Number.isFinite(limit);
      words.hidden = !gauge.symbol;
      return { ...gauge, root, value, role, words, fill, sources, estimated, measured };
    });
    this.root = el("dl", { class: "gauges", id: "gauges" }, this.parts.map(({ root }) => root));
  }

  /** The figures of a frame, beside their limits; where there are two sources, each with its name. */
  show(frame) {
    const sites = Object.values(frame?.sites || {}), ended = sites.length > 0 && sites.every(({ state }) => state === "ended");
    for (const part of this.parts) {
      const { key, show, root, value, words, fill } = part, given = frame?.gauges?.[key], over = ended && Number.isNaN(number(given));
      const { level, share, words: told } = standing(given, this.limits[key], show);
      say(value, over ? "ended" : show(given));
      say(words, told || (Number.isFinite(number(this.limits[key])) ? `limit ${show(this.limits[key])}` : "no limit"));
      set(root, "data-level", level);
      set(root, "data-value", String(number(given)));
      fill.style.transform = `scaleX(${Math.min(share ?? 0, 1).toFixed(3)})`;
      this.source(part, over ? {} : frame);
    }
  }

  source({ key, symbol, show, role, sources, estimated, measured }, frame) {
    const known = Boolean(symbol && frame?.estimated);
    role.hidden = sources.hidden = !known;
    if (!known) return;
    say(estimated, `estimated ${show(frame.estimated[key])}`);
    // Links measure what they send; nobody measures the other two.
    measured.hidden = key !== "uplink_bps" && frame.measured?.[key] === undefined;
    const old = staleness(frame.measured);
    // A backlog that is sent, and rows that a change hands over, end by themselves.
    const passing = key === "uplink_bps" ? frame.measured?.passing_bps : 0;
    const more = passing > 0 ? `, and ${show(passing)} in passing` : "";
    say(measured, `measured ${show(frame.measured?.[key])}${more}${old ? `, ${old}` : ""}`);
    set(measured, "data-stale", old ? "yes" : null);
  }
}

/** Gauges before and after a change, in one table of words and figures. */
export function beforeAndAfter(before, after, limits) {
  const cell = (figures, { key, show }) => {
    const { level, words } = standing(figures?.[key], limits?.[key], show);
    return el("td", { class: "number", data: { level } }, el("b", { text: show(figures?.[key]) }),
      words ? el("div", { class: "small words", text: words }) : null);
  };
  const rows = GAUGES.filter(({ key }) => [before, after].some((figures) => !Number.isNaN(number(figures?.[key]))))
    .map((gauge) => el("tr", { data: { gauge: gauge.key } },
      el("th", { scope: "row", text: gauge.name }), cell(before, gauge), cell(after, gauge),
      el("td", { class: "number", text: Number.isFinite(number(limits?.[gauge.key])) ? gauge.show(limits[gauge.key]) : "none" })));
  const head = ["", "Now", "New plan", "Limit"];
  return el("table", { class: "before-after" }, el("caption", { class: "hidden", text: "What runs now, at these rates, and the new plan" }),
    el("thead", {}, el("tr", {}, head.map((text, k) => el("th", { scope: "col", class: k ? "number" : null, text })))),
    el("tbody", {}, rows));
}
