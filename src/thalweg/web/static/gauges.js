// The few figures that tell how a deployment stands, each beside its limit.

import { el, say, set } from "./dom.js";
import { GAUGES, number, standing } from "./format.js";

export class Gauges {
  constructor(limits) {
    this.limits = limits || {};
    this.parts = GAUGES.map((gauge) => {
      const value = el("span", { class: "figure" }), words = el("span", { class: "words small" });
      const fill = el("i"), track = el("span", { class: "track", "aria-hidden": "true" }, fill);
      const limit = number(this.limits[gauge.key]);
      const root = el("div", { class: "gauge", data: { gauge: gauge.key } },
        el("dt", {}, gauge.name, gauge.symbol ? el("abbr", { title: gauge.name, text: gauge.symbol }) : null),
        el("dd", {}, value, track, words));
      track.hidden = !Number.isFinite(limit);
      words.hidden = !gauge.symbol;
      return { ...gauge, root, value, words, fill };
    });
    this.root = el("dl", { class: "gauges", id: "gauges" }, this.parts.map(({ root }) => root));
  }

  show(gauges) {
    for (const { key, show, root, value, words, fill } of this.parts) {
      const given = gauges?.[key], { level, share, words: told } = standing(given, this.limits[key], show);
      say(value, show(given));
      say(words, told || (Number.isFinite(number(this.limits[key])) ? `limit ${show(this.limits[key])}` : "no limit"));
      set(root, "data-level", level);
      set(root, "data-value", String(number(given)));
      fill.style.transform = `scaleX(${Math.min(share ?? 0, 1).toFixed(3)})`;
    }
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
