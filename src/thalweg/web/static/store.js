// What is known about one subject, and the moment that is looked at.

const MOST_FRAMES = 4000;

/**
 * What took a while, from marks with the same event: { kind, title, from, to, open }. Without an end it
 * is still `open` at the last moment that is known.
 */
export function spansOf(marks, lastS) {
  const found = new Map();
  for (const { event, phase, at_s: at, kind, title } of marks) {
    if (!event) continue;
    if (phase === "begin") found.set(event, { event, kind, title, from: at, to: Math.max(lastS, at), open: true });
    else if (found.has(event)) Object.assign(found.get(event), { to: at, open: false });
  }
  return [...found.values()];
}

const byTime = (a, b) => a.at_s - b.at_s;

export class Store {
  constructor(subject) {
    this.subject = subject;
    this.scene = null;
    this.heard = new Map();
    this.clear();
  }

  clear() {
    this.frames = [];
    this.placements = new Map();
    this.marks = [];
    this.index = -1;
    this.following = true;
    this.version = 0;
    this.loaded = false;
    this.renewedAt = performance.now();
  }

  /** Changes and restarts with their beginning and end, as far as marks tell. */
  get spans() {
    if (this.spanned !== this.version) { this.spanned = this.version; this.known = spansOf(this.marks, this.frames.at(-1)?.at_s ?? 0); }
    return this.known;
  }

  /** What is worth a mark: where a change ends, what runs from then on has one at the same moment. */
  get shownMarks() {
    const placed = new Set(this.marks.filter(({ placement }) => placement).map(({ at_s: at }) => at));
    return this.marks.filter(({ kind, phase, at_s: at }) => !(kind === "change" && phase === "end" && placed.has(at)));
  }

  /** Seconds since a run that goes on has last sent a figure. */
  get silentS() {
    return this.scene?.live && this.frames.length ? (performance.now() - this.renewedAt) / 1000 : 0;
  }

  /** Calls `act` when there is new `data`, or another `time` is looked at. */
  on(name, act) {
    if (!this.heard.has(name)) this.heard.set(name, []);
    this.heard.get(name).push(act);
  }

  tell(name) {
    if (name === "data") this.version++;
    for (const act of this.heard.get(name) || []) act();
  }

  load({ frames = [], placements = {}, marks = [] }) {
    const keep = this.following ? null : this.frame?.at_s;
    this.frames = frames.slice().sort(byTime);
    this.placements = new Map(Object.entries(placements));
    this.marks = marks.slice().sort(byTime);
    this.loaded = true;
    // What was read may be old already.
    const oldS = this.scene?.clock === "wall" && this.frames.length ? Date.now() / 1000 - this.frames.at(-1).at_s : 0;
    this.renewedAt = performance.now() - 1000 * Math.max(oldS, 0);
    this.index = this.frames.length - 1;
    if (keep !== null && keep !== undefined) this.index = this.nearest(keep);
    this.tell("data");
    this.tell("time");
  }

  add(kind, value) {
    if (kind === "placement") this.placements.set(value.id, value);
    else if (kind === "mark") {
      const same = ({ at_s: at, kind: of, title, phase }) =>
        at === value.at_s && of === value.kind && title === value.title && phase === value.phase;
      if (!this.marks.some(same)) { this.marks.push(value); this.marks.sort(byTime); }
    }
    else if (kind === "frame") {
      if (this.frames.length && value.at_s <= this.frames.at(-1).at_s) return;
      this.frames.push(value);
      this.renewedAt = performance.now();
      if (this.frames.length > MOST_FRAMES) {
        const gone = MOST_FRAMES >> 2;
        this.frames.splice(0, gone);
        this.index = Math.max(this.index - gone, 0);
      }
      if (this.following || this.index < 0) this.index = this.frames.length - 1;
    }
  }

  get frame() { return this.frames[this.index] || null; }

  /** The placement in force at the moment that is looked at. */
  get placement() {
    const { frame } = this;
    const named = frame && this.placements.get(frame.placement);
    if (named) return named;
    let found = null;
    for (const placement of this.placements.values())
      if (!found || !frame || placement.at_s <= frame.at_s) found = placement;
    return found;
  }

  /** The frame that is closest in time. */
  nearest(atS) {
    const { frames } = this;
    let low = 0, high = frames.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (frames[middle].at_s < atS) low = middle + 1; else high = middle;
    }
    if (low > 0 && atS - frames[low - 1].at_s < frames[low].at_s - atS) low--;
    return low;
  }

  seek(index) {
    const last = this.frames.length - 1, wanted = Math.min(Math.max(index, 0), last);
    this.following = false;
    if (wanted === this.index) { this.tell("time"); return; }
    this.index = wanted;
    this.tell("time");
  }

  follow() {
    this.following = true;
    this.index = this.frames.length - 1;
    this.tell("time");
  }
}
