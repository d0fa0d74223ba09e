// The panel about one site, link or operator: its numbers, and why it is there.

import { askJson, problemsOf } from "./api.js";
import { stateWords } from "./cards.js";
import { byId, el, list, say } from "./dom.js";
import { bits, bytes, dated, percent, seconds, staleness } from "./format.js";

const FIGURES = [
  ["cpu", "CPU", percent], ["memory", "memory", percent],
  ["memory_bytes", "memory used", bytes], ["load", "load", percent], ["bps", "data rate", bits], ["lag_s", "lag", seconds],
];

const factsOf = (facts) =>
  el("dl", { class: "facts" }, facts.flatMap(([name, value]) => [el("dt", { text: name }), el("dd", { text: value })]));

/** The figures that are measured of a part; of those that are not known now it says so. */
const figuresOf = (figures, clock) => (figures ? [
  ...(figures.state ? [["state", stateWords(figures, clock)]] : []),
  ...FIGURES.filter(([key]) => figures[key] !== undefined).map(([key, name, show]) => [name, show(figures[key])]),
  ...(figures.stale ? [["these figures are", staleness(figures)]] : []),
] : []);

const deviationsOf = (frame, operator, site) => (frame?.deviations || [])
  .filter((of) => of.operator === operator && (of.site === null || of.site === site))
  .map((of) => [`${of.figure}, measured`, `${of.measured}, declared ${of.declared}`]);

export class Details {
  constructor({ onClose }) {
    this.root = byId("details");
    this.onClose = onClose;
    this.chosen = null;
    this.root.addEventListener("keydown", (event) => { if (event.key === "Escape") this.close(); });
  }

  open(store, chosen) {
    this.back = document.activeElement;
    this.store = store;
    this.chosen = chosen;
    this.asked = null;
    this.now = el("div", { class: "now" });
    this.when = el("p", { class: "small soft when" });
    this.why = el("div", { class: "why", "aria-live": "polite" });
    this.title = el("h2", { id: "details-title", tabindex: "-1", text: this.name() });
    this.root.replaceChildren(
      el("header", {}, this.title, el("button", {
        type: "button", class: "plain close", "aria-label": "Close the details", text: "✕", on: { click: () => this.close() },
      })), this.now, el("h3", { text: "Why it is there" }), this.when, this.why);
    this.root.hidden = false;
    this.update();
    this.title.focus({ preventScroll: true });
    this.root.scrollIntoView({ block: "nearest" });
  }

  name() {
    const { kind, operator, site, a, b } = this.chosen;
    return kind === "chip" ? `${operator} at ${site}` : kind === "site" ? site : `${a} → ${b}`;
  }

  close() {
    if (!this.chosen) return;
    this.chosen = null;
    this.root.hidden = true;
    this.root.replaceChildren();
    this.onClose();
    if (this.back?.isConnected) this.back.focus({ preventScroll: true });
  }

  /** Numbers at the moment that is looked at; the reason is asked once for each placement. */
  update() {
    if (!this.chosen) return;
    const { frame, placement } = this.store;
    const facts = this.facts(frame, placement), text = JSON.stringify(facts);
    if (text !== this.told) { this.told = text; this.now.replaceChildren(factsOf(facts)); }
    this.date();
    const id = placement?.id ?? null;
    if (this.asked === null || this.asked !== id) { this.asked = id; this.explain(id); }
  }

  /** When the reasons were given, against the moment that is looked at. */
  date() {
    const { scene, frame } = this.store, at = this.decidedAt;
    say(this.when, Number.isFinite(at) ? `Decided at ${dated(at, frame?.at_s, scene.clock)}` : "");
  }

  facts(frame, placement) {
    const { kind, operator, site, key, a, b } = this.chosen, { scene } = this.store;
    if (kind === "link") {
      const link = scene.links.find((of) => (of.a === a && of.b === b) || (of.a === b && of.b === a));
      const flows = (placement?.flows || []).filter((flow) => flow.a === a && flow.b === b);
      const streams = flows.map((flow) => [`${flow.source} → ${flow.target}`, `${bits(flow.bps)} planned`]);
      return [...figuresOf(frame?.links?.[key], scene.clock), ...(link?.facts || []), ...streams];
    }
    if (kind === "site") {
      const here = (placement?.instances || []).filter((instance) => instance.site === site);
      const names = [...new Set(here.map((instance) => instance.operator))];
      const facts = scene.sites.find(({ name }) => name === site)?.facts || [];
      return [...figuresOf(frame?.sites?.[site], scene.clock), ...facts, ["operators here", names.join(", ") || "none"]];
    }
    const mine = (placement?.instances || []).filter((instance) => instance.operator === operator && instance.site === site);
    const about = scene.operators.find(({ name }) => name === operator);
    const nodes = [...new Set(mine.map(({ node }) => node).filter(Boolean))];
    const origins = [...new Set(mine.map(({ origin }) => origin).filter(Boolean))];
    const some = (names) => (names.length > 6 ? `${names.slice(0, 6).join(", ")} and ${names.length - 6} more` : names.join(", "));
    return [
      ...deviationsOf(frame, operator, site),
      ["kind", about?.kind || ""], ["instances", String(mine.reduce((sum, { count = 1 }) => sum + count, 0))],
      ...(nodes.length ? [["on", some(nodes)]] : []), ...(origins.length ? [["data from", some(origins)]] : []), ...(about?.facts || []),
    ];
  }

  async explain(placement) {
    const { kind, operator, site, key } = this.chosen, chosen = this.chosen;
    const query = kind === "link" ? { link: key } : kind === "site" ? { site } : { operator, site };
    this.why.replaceChildren(el("p", { class: "soft", text: "Asking…" }));
    this.decidedAt = null;
    this.date();
    try {
      const found = await askJson(`subjects/${encodeURIComponent(this.store.subject.id)}/why`, { query: { ...query, placement } });
      if (this.chosen !== chosen || this.asked !== placement) return;
      this.decidedAt = found.decided_at_s ?? null;
      this.date();
      this.why.replaceChildren(...[
        list(found.why || [], { class: "reasons" }) || el("p", { class: "soft", text: "No reason is known." }),
        found.facts?.length ? factsOf(found.facts) : null,
      ].filter(Boolean));
    } catch (error) {
      if (this.chosen === chosen) this.why.replaceChildren(list(problemsOf(error), { class: "problems" }));
    }
  }
}
