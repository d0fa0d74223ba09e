// What is known about one subject, and the moment that is looked at.

const MOST_FRAMES = 4000;

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
    this.index = this.frames.length - 1;
    if (keep !== null && keep !== undefined) this.index = this.nearest(keep);
    this.tell("data");
    this.tell("time");
  }

  add(kind, value) {
    if (kind === "placement") this.placements.set(value.id, value);
    else if (kind === "mark") {
      const same = ({ at_s: at, kind: of, title }) => at === value.at_s && of === value.kind && title === value.title;
      if (!this.marks.some(same)) { this.marks.push(value); this.marks.sort(byTime); }
    }
    else if (kind === "frame") {
      if (this.frames.length && value.at_s <= this.frames.at(-1).at_s) return;
      this.frames.push(value);
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
