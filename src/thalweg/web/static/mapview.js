// The view "map": what runs where at the moment that is looked at, drawn and as tables.

import { stateWords } from "./cards.js";
import { el, list, say, table } from "./dom.js";
import { count, dated, percent, plain, seconds, staleness } from "./format.js";
import { hasPositions, MANY_SITES, Tiers } from "./tiers.js";
import { rateOf } from "./traffic.js";

const MOST_ROWS = 200;

const fold = (id, name, fill) => {
  const inner = el("div");
  const root = el("details", { id, class: "fold" }, el("summary", { text: name }), inner);
  root.addEventListener("toggle", () => { if (root.open) fill(inner); });
  return { root, refill: () => { if (root.open && !inner.contains(document.activeElement)) fill(inner); } };
};

export class MapView {
  constructor(store, { select }) {
    this.store = store;
    this.select = select;
    const { scene } = store;
    this.tiers = new Tiers(scene, { onSelect: select });
    this.reason = el("div", { class: "plan-text", "aria-live": "off" });
    this.when = el("b", { class: "when" });
    this.broken = el("div", { id: "broken" });
    this.deviations = el("section", { id: "deviations", "aria-label": "Declared against measured", hidden: true });
    this.links = fold("links", "Links and their load", (at) => this.fillLinks(at));
    this.where = fold("where", "What runs where, as a table", (at) => this.fillWhere(at));
    this.root = el("div", { class: "map-view" },
      el("div", { class: "bar-row" }, this.reason, this.tools(scene)),
      this.broken, this.tiers.root, this.deviations, this.links.root, this.where.root);
  }

  tools(scene) {
    const made = el("div", { class: "tools" });
    if (hasPositions(scene)) {
      const choice = (value, text) => {
        const input = el("input", { type: "radio", name: "layout", value, checked: value === "tiers" });
        input.addEventListener("change", () => this.tiers.setLayout(value));
        return el("label", {}, input, el("span", { text }));
      };
      made.append(el("fieldset", { class: "switch", id: "layout" }, el("legend", { class: "hidden", text: "Layout" }),
        choice("tiers", "Tiers"), choice("map", "Map")));
    }
    if (scene.sites.length > MANY_SITES) {
      const input = el("input", { type: "checkbox", id: "only-used" });
      input.addEventListener("change", () => {
        this.tiers.field.classList.toggle("only-used", input.checked);
        this.tiers.arrange();
      });
      made.append(el("label", { class: "check" }, input, "only sites with operators"));
    }
    return made;
  }

  update() {
    const { placement, frame } = this.store;
    if (placement !== this.shown || this.store.loaded !== this.loaded) {
      this.shown = placement;
      this.loaded = this.store.loaded;
      const head = placement ? [placement.strategy, placement.text].filter(Boolean).join(": ") : this.loaded ? "No placement yet." : "Loading what happened so far…";
      this.reason.replaceChildren(...[
        el("p", { class: "soft" }, this.when, head),
        placement?.violations?.length ? el("p", { class: "small soft", text: "By the model, at the rates of then:" }) : null,
        placement ? list(placement.violations || [], { class: "problems" }) : null,
      ].filter(Boolean));
      this.where.refill();
    }
    const timed = this.store.scene.clock === "wall" && Number.isFinite(placement?.at_s);
    say(this.when, timed ? `Decided at ${dated(placement.at_s, frame?.at_s, "wall")}: ` : "");
    this.showBroken(frame?.broken || []);
    this.showDeviations(frame?.deviations || []);
    this.tiers.show(placement, frame);
    const now = performance.now();
    if (now - (this.filled || 0) > 500) { this.filled = now; this.links.refill(); }
  }

  /** Limits that are broken at this moment, whatever was planned. */
  showBroken(broken) {
    const text = broken.join("\n");
    if (text === this.brokenText) return;
    this.brokenText = text;
    this.broken.replaceChildren(...(broken.length ? [el("p", { class: "small soft", text: "At this moment:" }), list(broken, { class: "problems" })] : []));
  }

  showDeviations(found) {
    const text = JSON.stringify(found);
    if (text === this.deviationsText) return;
    this.deviationsText = text;
    this.deviations.hidden = !found.length;
    const span = ({ low, high }) => (low === null || high === null ? "unknown" : `${low} to ${high}`);
    this.deviations.replaceChildren(...(found.length ? [
      el("h3", { text: "Declared against measured" }),
      el("p", { class: "small soft", text: `${count(found.length, "declared figure")} more than 20 % from what is measured; plans are made with what is measured.` }),
      table("Declared against measured",
        ["Operator", "Site", "Figure", { name: "Declared", number: true }, { name: "Measured", number: true }, { name: "Interval", number: true }, { name: "Measured / declared", number: true }],
        found.map((of) => [of.operator, of.site ?? "all", of.figure, of.declared, of.measured, span(of), `× ${plain(of.ratio)}`])),
    ] : []));
  }

  choose(chosen) { this.tiers.choose(chosen); }

  fillLinks(at) {
    const all = [...(this.tiers.links || new Map()).values()];
    const rows = all.slice(0, MOST_ROWS).map((link) => [
      el("button", {
        type: "button", class: "text", data: { "link-row": link.key }, text: `${link.a} → ${link.b}`,
        on: { click: () => this.select({ kind: "link", key: link.key, a: link.a, b: link.b }) },
      }), rateOf(link), [Number.isNaN(link.bps) ? "" : link.known, staleness(link)].filter(Boolean).join(", "), `${percent(link.load)}${link.load > 1 ? " ▲" : ""}`,
      link.lagged || !Number.isNaN(link.lag_s) ? seconds(link.lag_s) : "–",
      [...new Set(link.streams.map(({ source, target }) => `${source} → ${target}`))].join(", "),
    ]);
    at.replaceChildren(
      rows.length ? table("Links and their load", ["Link", { name: "Rate", number: true }, "Known", { name: "Load", number: true }, { name: "Lag", number: true }, "Streams"], rows)
        : el("p", { class: "soft", text: "No stream crosses sites now." }),
      all.length > MOST_ROWS ? el("p", { class: "small soft", text: `The ${MOST_ROWS} busiest of ${all.length}.` }) : "");
  }

  fillWhere(at) {
    const { placement, frame, scene } = this.store, here = new Map();
    for (const { operator, site, count: many = 1 } of placement?.instances || []) {
      if (!here.has(site)) here.set(site, new Map());
      here.get(site).set(operator, (here.get(site).get(operator) || 0) + many);
    }
    const used = scene.sites.filter(({ name }) => here.has(name)), empty = scene.sites.length - used.length;
    const rows = used.slice(0, MOST_ROWS).map(({ name, tier }) => [
      el("button", { type: "button", class: "text", text: name, on: { click: () => this.select({ kind: "site", site: name }) } }),
      tier, frame?.sites?.[name]?.state ? stateWords(frame.sites[name], scene.clock) : "–",
      [...here.get(name)].map(([operator, many]) => (many > 1 ? `${operator} ×${many}` : operator)).join(", "),
    ]);
    at.replaceChildren(table("What runs where", ["Site", "Tier", "State", "Operators"], rows));
    const rest = [empty ? `${count(empty, "site")} with nothing on ${empty === 1 ? "it" : "them"}.` : "",
      used.length > MOST_ROWS ? `The first ${MOST_ROWS} of ${used.length}.` : ""].filter(Boolean);
    if (rest.length) at.append(el("p", { class: "small soft", text: rest.join(" ") }));
  }

  stop() { this.tiers.stop(); }
}
