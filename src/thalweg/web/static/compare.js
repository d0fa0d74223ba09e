// The view "compare": strategies side by side on the same problem.

import { askJson, problemsOf } from "./api.js";
import { el, list, set } from "./dom.js";
import { bits, count, moment, number, plain, seconds } from "./format.js";
import { Tiers } from "./tiers.js";

const ALL_CLOUD = "cloud-only", PATIENCE = 30;
const COLUMNS = [
  { key: "response_time_s", name: "Response time", show: seconds, limit: "response_time_s" },
  { key: "aggregate_latency_s", name: "Sum of latencies", show: seconds },
  { key: "worst_latency_s", name: "Worst latency", show: seconds },
  { key: "uplink_bps", name: "Uplink", show: bits, limit: "uplink_bps" },
  { key: "usage", name: "Usage", show: plain, limit: "usage" },
  { key: "seconds", name: "Time to plan", show: seconds },
  { key: "candidates", name: "Candidates", show: (value) => number(value).toLocaleString("en"), bare: true },
];

export class CompareView {
  constructor(store, { announce }) {
    this.store = store;
    this.announce = announce;
    const { scene } = store, strategies = scene.strategies || [];
    // What runs now is a row of its own; beside it what the strategy would do, and all in the cloud.
    this.boxes = strategies.map(({ name, text }) => {
      const input = el("input", { type: "checkbox", name: "strategy", value: name, data: { strategy: name }, checked: name === scene.strategy || name === ALL_CLOUD });
      return { input, root: el("label", { class: "check" }, input, el("span", {}, el("b", { text: name }), el("span", { class: "soft small", text: ` ${text}` }))) };
    });
    this.button = el("button", { type: "submit", class: "primary", id: "compare-run", text: "Compare" });
    const form = el("form", { id: "compare-form" },
      el("fieldset", {}, el("legend", { text: "Strategies" }), el("div", { class: "checks wide" }, this.boxes.map(({ root }) => root))),
      el("div", { class: "row" }, this.button));
    form.addEventListener("submit", (event) => { event.preventDefault(); this.ask(); });
    this.result = el("div", { id: "compare-result", "aria-busy": "true" }, el("p", { class: "soft", text: "Planning…" }));
    this.drawing = el("div", { id: "compare-placement" });
    this.root = el("div", { class: "compare-view" }, form, this.result, this.drawing);
    this.ask();
  }

  async ask() {
    const strategies = this.boxes.filter(({ input }) => input.checked).map(({ input }) => input.value);
    if (!strategies.length) {
      this.result.replaceChildren(el("p", { class: "problems", role: "alert", text: "Choose at least one strategy." }));
      return;
    }
    this.button.disabled = true;
    set(this.result, "aria-busy", "true");
    this.button.textContent = "Planning…";
    this.tiers?.stop();
    this.tiers = null;
    this.drawing.replaceChildren();
    try {
      this.showRows(await askJson(`subjects/${encodeURIComponent(this.store.subject.id)}/compare`, { body: { strategies }, patient: PATIENCE }));
    } catch (error) {
      this.result.replaceChildren(list(problemsOf(error), { class: "problems", role: "alert" }));
    }
    this.button.disabled = false;
    this.button.textContent = "Compare";
    set(this.result, "aria-busy", "false");
  }

  showRows({ best, rows, rates_at_s: ratesAt }) {
    const { limits = {} } = this.store.scene;
    const columns = COLUMNS.filter(({ key }) => rows.some((row) => row[key] !== null && row[key] !== undefined));
    const most = new Map(columns.map(({ key }) => [key, Math.max(0, ...rows.map((row) => number(row[key])).filter(Number.isFinite))]));
    const cell = (row, { key, show, limit, bare }) => {
      const value = number(row[key]), bar = el("i");
      bar.style.transform = `scaleX(${Number.isFinite(value) && most.get(key) > 0 ? (value / most.get(key)).toFixed(3) : 0})`;
      const over = limit && value > number(limits[limit]);
      return el("td", { class: "number", data: { level: over ? "over" : "fine" } }, `${over ? "▲ " : ""}${row[key] === null || row[key] === undefined ? "–" : show(row[key])}`,
        bare || Number.isNaN(value) ? null : el("span", { class: "track", "aria-hidden": "true" }, bar));
    };
    const words = (row) => {
      if (row.refusal) return el("td", { class: "says" }, el("span", { class: "problems", text: `✕ refused: ${row.refusal}` }));
      if (row.violations?.length) return el("td", { class: "says" }, list(row.violations, { class: "problems" }));
      return el("td", { class: "says" }, el("span", { class: "fine", text: "✓ keeps all limits" }));
    };
    const show = (row) => el("td", {}, row.placement ? el("button", {
      type: "button", data: { show: row.strategy }, text: "Show", "aria-label": `Show the placement of ${row.strategy}`, on: { click: () => this.draw(row) },
    }) : null);
    const body = rows.map((row) => el("tr", { data: { row: row.running ? "running" : row.strategy, best: row.best ? "yes" : "no" } },
      el("th", { scope: "row" }, row.strategy, row.best ? el("span", { class: "badge", text: "★ best" }) : null),
      columns.map((column) => cell(row, column)), words(row), show(row)));
    const when = Number.isFinite(ratesAt) ? el("p", { class: "small soft when", text: `At the rates measured at ${moment(ratesAt, this.store.scene.clock)}.` }) : "";
    this.result.replaceChildren(when, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Strategies compared" },
      el("table", { class: "compare" }, el("caption", { class: "hidden", text: "Strategies compared" }),
        el("thead", {}, el("tr", {}, el("th", { scope: "col", text: "Strategy" }), columns.map(({ name }) => el("th", { scope: "col", class: "number", text: name })),
          el("th", { scope: "col", text: "Limits" }), el("th", { scope: "col" }, el("span", { class: "hidden", text: "Placement" })))),
        el("tbody", {}, body))));
    this.announce(`${count(rows.filter(({ running }) => !running).length, "strategy", "strategies")} compared${best ? `, best: ${rows.filter((row) => row.best).map(({ strategy }) => strategy).join(", ")}` : ""}`);
    const first = rows.find(({ strategy, running }) => !running && strategy === best);
    if (first?.placement) this.draw(first);
  }

  draw({ strategy, placement }) {
    if (!this.tiers) this.tiers = new Tiers(this.store.scene, { legend: false });
    for (const made of this.result.querySelectorAll("[data-show]")) set(made, "aria-pressed", made.dataset.show === strategy ? "true" : "false");
    this.drawing.replaceChildren(el("h3", { text: `Placement by ${strategy}` }), this.tiers.root);
    this.tiers.show(placement, null);
  }

  update() {}

  stop() { this.tiers?.stop(); }
}
