// The bar of time: plays, pauses, seeks, and follows what is new.

import { byId, el, say, set } from "./dom.js";
import { moment } from "./format.js";

const MOST_MARKS = 150, MARK_PX = 15;
export const SYMBOLS = { first: "●", adapt: "▲", move: "◆", rollback: "↶", restart: "↻", repair: "✚", failure: "✕", change: "■" };
export const symbolOf = (kind) => SYMBOLS[kind] || "•";

export class Slider {
  constructor() {
    this.root = byId("transport");
    this.time = byId("time");
    this.playing = false;
    this.speed = 10;
    this.store = null;
    byId("play").addEventListener("click", () => this.play(!this.playing));
    byId("live").addEventListener("click", () => { this.play(false); this.store?.follow(); });
    byId("speed").addEventListener("change", (event) => { this.speed = Number(event.target.value); });
    this.time.addEventListener("input", () => { this.play(false); this.store?.seek(Number(this.time.value)); });
    document.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => { if (this.store?.scene) this.putMarks(); }).observe(byId("marks"));
  }

  /** Another subject, or none. */
  show(store) {
    this.play(false);
    this.store = store;
    this.known = -1;
    this.root.hidden = !store;
  }

  key(event) {
    // Controls that are in use keep their own keys.
    const free = event.target === document.body || event.target.closest?.("[data-time-keys]");
    if (!this.store || this.root.hidden || !free || event.ctrlKey || event.metaKey || event.altKey) return;
    const { index, frames } = this.store;
    const acts = {
      " ": () => this.play(!this.playing),
      ArrowLeft: () => this.step(index - 1), ArrowRight: () => this.step(index + 1),
      Home: () => this.step(0), End: () => this.step(frames.length - 1),
    };
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  }

  step(index) { this.play(false); this.store.seek(index); }

  play(wanted) {
    const { store } = this;
    wanted = wanted && store !== null && store.frames.length > 1;
    if (wanted && store.index >= store.frames.length - 1) store.seek(0);
    if (wanted) store.following = false;
    this.playing = wanted;
    say(byId("play"), wanted ? "❚❚ Pause" : "▶ Play");
    if (!wanted) return;
    let at = store.frame.at_s, last = null, mine = store.index;
    const advance = (now) => {
      if (!this.playing || this.store !== store) return;
      // Somebody sought meanwhile: go on from there.
      if (store.index !== mine) at = store.frame.at_s;
      if (last !== null) at += (Math.min(now - last, 250) / 1000) * this.speed;
      last = now;
      let next = store.index;
      while (next + 1 < store.frames.length && store.frames[next + 1].at_s <= at) next++;
      mine = next;
      if (next !== store.index) store.seek(next);
      if (next >= store.frames.length - 1) { this.play(false); if (store.scene.live) store.follow(); return; }
      requestAnimationFrame(advance);
    };
    requestAnimationFrame(advance);
  }

  update() {
    const { store } = this;
    if (!store) return;
    const { frames, index, scene, following } = store, frame = store.frame;
    this.time.max = String(Math.max(frames.length - 1, 0));
    this.time.value = String(Math.max(index, 0));
    this.time.disabled = frames.length < 2;
    byId("play").disabled = frames.length < 2;
    const text = frame ? moment(frame.at_s, scene.clock) : store.loaded ? "no data yet" : "loading";
    say(byId("clock"), text);
    set(this.time, "aria-valuetext", text);
    const live = byId("live");
    live.hidden = !scene.live && frames.length < 2;
    say(live, scene.live ? (following ? "● Live" : "Go live") : following ? "At the end" : "To the end");
    set(live, "aria-pressed", following ? "true" : "false");
    set(live, "data-following", following ? "yes" : "no");
    if (this.known !== store.version) { this.known = store.version; this.putMarks(); }
  }

  putSpans(last) {
    const { store } = this, share = (at) => (100 * store.nearest(at)) / last;
    byId("spans").replaceChildren(...store.spans.slice(-MOST_MARKS).map(({ kind, title, from, to, open }) => {
      const begin = moment(from, store.scene.clock), end = open ? (store.scene.live ? "still under way" : "no end was recorded") : `to ${moment(to, store.scene.clock)}`;
      const made = el("i", { class: "span", role: "img", data: { span: kind, open: open ? "yes" : "no" }, title: `${begin} ${title}`, "aria-label": `${title}, from ${begin} ${end}` });
      made.style.left = `${share(from).toFixed(2)}%`;
      made.style.width = `${Math.max(share(to) - share(from), 0).toFixed(2)}%`;
      return made;
    }));
  }

  putMarks() {
    const { store } = this, last = Math.max(store.frames.length - 1, 1);
    const marks = store.shownMarks.slice(-MOST_MARKS);
    const text = JSON.stringify(marks.map(({ at_s: at, kind }) => [at, kind]));
    this.putSpans(last);
    if (text !== this.marks) {
      this.marks = text;
      byId("marks").replaceChildren(...marks.map((mark) => el("button", {
        type: "button", class: "mark", tabindex: "-1", data: { mark: mark.kind }, text: symbolOf(mark.kind),
        title: `${moment(mark.at_s, store.scene.clock)} ${mark.title}`,
        "aria-label": `${mark.title}, at ${moment(mark.at_s, store.scene.clock)}`,
        on: { click: () => this.step(store.nearest(mark.at_s)) },
      })));
    }
    // Each at its moment, but none on another: the later one gives way to the right, then all to the left.
    const made = [...byId("marks").children], wide = byId("marks").clientWidth;
    const gap = Math.min(MARK_PX, wide / Math.max(made.length, 1));
    const x = marks.map(({ at_s: at }) => (wide * store.nearest(at)) / last);
    for (let k = 1; k < x.length; k++) x[k] = Math.max(x[k], x[k - 1] + gap);
    for (let k = x.length - 1, most = wide; k >= 0; k--, most -= gap) x[k] = Math.min(x[k], most);
    made.forEach((mark, k) => { mark.style.left = `${x[k].toFixed(1)}px`; });
  }
}
