// The rates of the sources, to be changed: at most fifty rows at a time, the others by a filter.

import { el } from "./dom.js";
import { count, number, perSecond } from "./format.js";

const MOST_ROWS = 50;
const clean = (value) => Number(Number(value).toPrecision(6));

export class Rates {
  constructor(sources, nowIs = "Now") {
    this.rows = sources.map(({ source, site, rate }) => ({ source, site, now: number(rate), wanted: null }));
    this.body = el("tbody");
    this.note = el("p", { class: "small soft", "aria-live": "polite" });
    this.filter = el("input", { type: "search", id: "rate-filter", placeholder: "source or site", autocomplete: "off" });
    this.filter.addEventListener("input", () => this.draw());
    this.factor = el("input", { type: "number", id: "all-factor", min: "0", step: "any", value: "2", inputmode: "decimal" });
    const all = el("button", { type: "button", id: "all-set", text: "Set", on: { click: () => this.multiplyAll() } });
    const back = el("button", { type: "button", class: "text", id: "rates-reset", text: "As now", on: { click: () => this.reset() } });
    this.root = el("fieldset", { class: "rates" }, el("legend", { text: "Rates" }),
      el("div", { class: "row" }, el("label", { class: "inline" }, "All sources × ", this.factor), all, back),
      this.rows.length > MOST_ROWS ? el("label", { class: "inline" }, "Filter ", this.filter) : null,
      el("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": "Rates of sources" },
        el("table", {}, el("thead", {}, el("tr", {}, ["Source", nowIs, "What if", ""].map((text, k) =>
          el("th", { scope: "col", class: k === 1 || k === 2 ? "number" : null, text })))), this.body)),
      this.note);
    this.draw();
  }

  draw() {
    const word = this.filter.value.trim().toLowerCase();
    const found = this.rows.filter(({ source, site }) => `${source} ${site}`.toLowerCase().includes(word));
    this.body.replaceChildren(...found.slice(0, MOST_ROWS).map((row) => this.line(row)));
    this.tell(found.length);
  }

  line(row) {
    const name = `${row.source} at ${row.site}`;
    const input = el("input", {
      type: "number", min: "0", step: "any", inputmode: "decimal", "aria-label": `Events per second of ${name}`,
      data: { rate: `${row.source}@${row.site}` },
    });
    const write = () => {
      input.value = row.wanted === null ? (Number.isFinite(row.now) ? String(clean(row.now)) : "") : String(row.wanted);
      if (row.wanted === null) input.removeAttribute("data-edited"); else input.setAttribute("data-edited", "");
    };
    const want = (value) => { row.wanted = Number.isFinite(value) && value !== clean(row.now) ? value : null; };
    input.addEventListener("input", () => {
      want(input.value === "" ? NaN : Number(input.value));
      input.toggleAttribute("data-edited", row.wanted !== null);
      this.tell();
    });
    const times = (factor) => el("button", {
      type: "button", class: "quick", text: `×${factor}`, "aria-label": `${name} times ${factor}`,
      on: { click: () => { want(clean((row.wanted ?? row.now) * factor)); write(); this.tell(); } },
    });
    write();
    const now = el("td", { class: "number", text: perSecond(row.now) });
    row.paint = () => {
      now.textContent = perSecond(row.now);
      if (row.wanted === null && input !== document.activeElement) write();
    };
    return el("tr", {}, el("th", { scope: "row" }, row.source, el("span", { class: "soft", text: ` ${row.site}` })),
      now, el("td", { class: "number" }, input),
      el("td", { class: "quick" }, times(2), times(5)));
  }

  /** Rates of now, by source and site: what was typed stays, all else follows. */
  refresh(rates) {
    for (const row of this.rows) {
      const now = number(rates?.[row.source]?.[row.site]);
      if (!Number.isFinite(now) || now === row.now) continue;
      row.now = now;
      row.paint?.();
    }
  }

  multiplyAll() {
    const factor = Number(this.factor.value);
    if (!Number.isFinite(factor) || factor < 0 || this.factor.value === "") { this.factor.reportValidity(); return; }
    for (const row of this.rows) row.wanted = Number.isFinite(row.now) && factor !== 1 ? clean(row.now * factor) : null;
    this.draw();
  }

  reset() { for (const row of this.rows) row.wanted = null; this.draw(); }

  tell(found) {
    this.found = found ?? this.found;
    const edited = this.changed().length, more = this.found > MOST_ROWS ? `The first ${MOST_ROWS} of ${this.found.toLocaleString("en")}. ` : "";
    this.note.textContent = `${more}${edited ? `${count(edited, "rate")} changed.` : "No rate changed."}`;
  }

  /** Only what differs from now. */
  changed() {
    return this.rows.filter(({ wanted }) => wanted !== null).map(({ source, site, wanted }) => ({ source, site, rate: wanted }));
  }
}
