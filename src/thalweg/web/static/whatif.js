// The view "what-if": other rates, sites taken down; the new plan, its difference, and doing it.

import { askJson, problemsOf } from "./api.js";
import { confirmed } from "./confirm.js";
import { el, list, set, table } from "./dom.js";
import { count, moment } from "./format.js";
import { beforeAndAfter } from "./gauges.js";
import { Rates } from "./rates.js";
import { Tiers } from "./tiers.js";

const MOST_SITES = 50, PATIENCE = 30;
const KINDS = { move: "moves", start: "starts", stop: "stops" };

/** One move as a sentence. */
const sentence = ({ kind, operator, origin, before, after }) => {
  const of = origin ? `${operator}, for data from ${origin},` : operator;
  if (kind === "start") return `${of} starts on ${after}`;
  if (kind === "stop") return `${of} stops on ${before}`;
  return `${of} moves from ${before ?? "nowhere"} to ${after ?? "nowhere"}`;
};

export class WhatIfView {
  constructor(store, { select, announce }) {
    this.store = store;
    this.select = select;
    this.announce = announce;
    this.path = `subjects/${encodeURIComponent(store.subject.id)}`;
    const { scene } = store;
    this.rates = new Rates(scene.sources || [], scene.kind === "run" && !scene.live ? "Last" : "Now");
    this.down = new Set();
    this.strategy = el("select", { id: "what-if-strategy" }, (scene.strategies || []).map(({ name, text }) =>
      el("option", { value: name, title: text, text: name })));
    if (scene.strategy) this.strategy.value = scene.strategy;
    this.about = el("p", { class: "small soft" });
    const tell = () => { this.about.textContent = (scene.strategies || []).find(({ name }) => name === this.strategy.value)?.text || ""; };
    this.strategy.addEventListener("change", tell);
    tell();
    this.button = el("button", { type: "submit", class: "primary", id: "what-if-ask", text: "Ask" });
    const form = el("form", { class: "what-if-form", id: "what-if-form" }, this.rates.root, this.sites(scene.sites),
      el("div", { class: "row" }, el("label", { class: "inline" }, "Strategy ", this.strategy), this.button), this.about,
      scene.kind === "run" && scene.live ? el("p", { class: "small" }, "Something went wrong? ",
        el("button", { type: "button", class: "text", id: "rollback", text: "Roll back the last change…", on: { click: () => this.rollback() } })) : null);
    form.addEventListener("submit", (event) => { event.preventDefault(); this.ask(); });
    this.result = el("div", { class: "what-if-result", id: "what-if-result", "aria-busy": "true" },
      el("p", { class: "empty soft", text: "Planning at the rates of now… Nothing is moved by asking." }));
    this.root = el("div", { class: "what-if-view" }, form, this.result);
    this.ask({ first: true });
  }

  sites(all) {
    const body = el("div", { class: "checks" }), single = all.filter(({ members = 1 }) => members === 1);
    const filter = el("input", { type: "search", placeholder: "site", autocomplete: "off", "aria-label": "Filter sites" });
    const draw = () => {
      const word = filter.value.trim().toLowerCase();
      const found = single.filter(({ name }) => name.toLowerCase().includes(word));
      body.replaceChildren(...found.slice(0, MOST_SITES).map(({ name }) => {
        const input = el("input", { type: "checkbox", data: { down: name }, checked: this.down.has(name) });
        input.addEventListener("change", () => { if (input.checked) this.down.add(name); else this.down.delete(name); });
        return el("label", { class: "check" }, input, name);
      }), found.length > MOST_SITES ? el("span", { class: "small soft", text: `and ${found.length - MOST_SITES} more: use the filter` }) : "");
    };
    filter.addEventListener("input", draw);
    draw();
    return el("fieldset", {}, el("legend", { text: "Take down" }), single.length > MOST_SITES ? filter : null, body,
      el("p", { class: "small soft", text: "Where a site is down nothing runs and no source emits; links past it stay." }));
  }

  /** The first question is the page's own: what would be planned as things are now? */
  async ask({ first = false } = {}) {
    this.button.disabled = true;
    this.button.textContent = "Planning…";
    set(this.result, "aria-busy", "true");
    const body = { rates: this.rates.changed(), down: [...this.down], strategy: this.strategy.value };
    try {
      this.showAnswer(await askJson(`${this.path}/what-if`, { body, patient: PATIENCE }), body);
    } catch (error) {
      this.tiers?.stop();
      this.tiers = null;
      this.result.replaceChildren(el("h2", { text: "No plan" }), list(problemsOf(error), { class: "problems", role: "alert" }));
    }
    this.button.disabled = false;
    this.button.textContent = "Ask";
    set(this.result, "aria-busy", "false");
    set(this.result, "data-asked", body.rates.length + body.down.length);
    if (!first && window.matchMedia("(max-width: 60rem)").matches) this.result.scrollIntoView({ block: "start" });
  }

  /** What was asked, in a line: rates of the run have a moment. */
  question({ rates_at_s: at }, { rates, down }) {
    const then = Number.isFinite(at) ? `the rates measured at ${moment(at, this.store.scene.clock)}` : "the rates of now";
    const what = [rates.length ? `${count(rates.length, "rate")} changed, else` : "at", then, down.length ? `without ${down.join(", ")}` : ""];
    return `Planned ${what.filter(Boolean).join(" ")}. Nothing is moved by asking.`;
  }

  showAnswer(answer, asked) {
    const { scene } = this.store, moves = answer.moves || [];
    this.announce(answer.headline);
    const violated = (name, figures) => {
      const found = figures?.violations || [];
      return el("div", {}, el("h4", { text: name }), found.length ? list(found, { class: "problems" })
        : el("p", { class: "fine", text: "✓ All limits are kept." }));
    };
    this.tiers?.stop();
    this.tiers = answer.placement ? new Tiers(scene, { onSelect: () => {}, legend: false }) : null;
    const apply = el("button", {
      type: "button", class: "primary", id: "what-if-apply", text: "Apply…", on: { click: () => this.apply(answer) },
    });
    this.told = el("div", { id: "apply-result", role: "status" });
    this.result.replaceChildren(...[
      el("h2", { id: "what-if-headline", text: answer.headline }),
      el("p", { class: "small soft when", text: this.question(answer, asked) }),
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Before and after" }, beforeAndAfter(answer.before, answer.after, scene.limits)),
      el("div", { class: "two" }, violated("What runs now, at these rates", answer.before), violated("The new plan", answer.after)),
      el("h3", { text: moves.length ? count(moves.length, "change") : "Nothing would move" }),
      moves.length ? table("Moves", ["Operator", "What", "From", "To"], moves.slice(0, 200).map((move) =>
        [move.origin ? `${move.operator}, data from ${move.origin}` : move.operator, KINDS[move.kind] || move.kind, move.before ?? "–", move.after ?? "–"]), { id: "moves" }) : null,
      moves.length > 200 ? el("p", { class: "small soft", text: `The first 200 of ${moves.length}.` }) : null,
      el("div", { class: "row" }, answer.applicable ? apply : el("p", { class: "soft", id: "why-not", text: answer.why_not || "This plan cannot be applied here." })),
      this.told,
      this.tiers ? el("h3", { text: "The new placement" }) : null, this.tiers?.root ?? null,
    ].filter(Boolean));
    this.tiers?.show(answer.placement, null);
  }

  async apply(answer) {
    const moves = answer.moves || [];
    const yes = await confirmed({
      title: "Apply this plan to what is running?",
      lines: [`${count(moves.length, "change")} on the running deployment:`],
      items: moves.map(sentence), confirm: `Apply ${count(moves.length, "change")}`, id: "confirm-apply",
    });
    if (yes) await this.act("apply", { what_if: answer.id, confirm: true });
  }

  async rollback() {
    const before = [...this.store.placements.values()].sort((a, b) => a.at_s - b.at_s).at(-2);
    const yes = await confirmed({
      title: "Roll back the last change?",
      lines: ["Operators go back to where they ran before the last change."],
      items: before ? [`back to: ${[before.strategy, before.text].filter(Boolean).join(", ")}`] : [],
      confirm: "Roll back", id: "confirm-rollback",
    });
    if (!yes) return;
    this.told ??= el("div", { id: "apply-result", role: "status" });
    if (!this.told.isConnected) this.result.prepend(this.told);
    await this.act("rollback", { confirm: true });
  }

  async act(what, body) {
    this.told.replaceChildren(el("p", { class: "soft", text: "Working…" }));
    try {
      const { done, text } = await askJson(`${this.path}/${what}`, { body });
      this.told.replaceChildren(el("p", { class: done ? "fine" : "problems", text: `${done ? "✓ " : "✕ "}${text}` }));
      const apply = this.root.querySelector("#what-if-apply");
      if (done && what === "apply" && apply) apply.disabled = true;
    } catch (error) {
      this.told.replaceChildren(list(problemsOf(error), { class: "problems", role: "alert" }));
    }
  }

  update() { if (this.store.scene.live) this.rates.refresh(this.store.frames.at(-1)?.rates); }

  stop() { this.tiers?.stop(); }
}
