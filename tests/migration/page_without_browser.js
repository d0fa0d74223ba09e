// Runs the script of a page on elements that only remember; prints what a reader would see.
"use strict";
const fs = require("fs"), vm = require("vm");
const html = fs.readFileSync(process.argv[2], "utf8");
const steps = JSON.parse(process.argv[3]);
const data = /<script type="application\/json" id="data">([\s\S]*?)<\/script>/.exec(html)[1];
const script = /<script>([\s\S]*?)<\/script>/.exec(html)[1];
const known = new Map(), calls = { n: 0 };
const pen = new Proxy({}, {
  get: (_, name) => (name === "measureText" ? () => ({ width: 10 }) : () => { calls.n++; }),
  set: () => true,
});
const element = () => {
  const heard = {};
  return {
    children: [], style: {}, value: "", textContent: "", hidden: false, checked: true,
    clientWidth: 600, clientHeight: 200, width: 0, height: 0,
    appendChild(child) { this.children.push(child); },
    setAttribute() {},
    addEventListener(name, act) { heard[name] = act; },
    fire(name, event) { heard[name](event || {}); },
    getContext: () => pen,
  };
};
const keys = {};
const document = {
  body: {}, documentElement: {}, createElement: element,
  addEventListener(name, act) { keys[name] = act; },
  getElementById(id) {
    if (!known.has(id)) known.set(id, element());
    if (id === "data") known.get(id).textContent = data;
    return known.get(id);
  },
};
const frames = [];
vm.runInNewContext(script, {
  document,
  window: {
    devicePixelRatio: 2, location: { hash: "" }, addEventListener() {},
    matchMedia: () => ({ addEventListener() {} }),
  },
  getComputedStyle: () => ({ getPropertyValue: () => "#123456" }),
  requestAnimationFrame: (act) => frames.push(act),
  atob: (text) => Buffer.from(text, "base64").toString("latin1"),
});
const seen = () => ({
  clock: known.get("clock").textContent,
  status: known.get("status").textContent,
  play: known.get("play").textContent,
  maps: known.get("maps").children.map((figure) => !figure.hidden),
  captions: known.get("maps").children.map((figure) => figure.children[2].textContent),
  options: known.get("instance").children.map((option) => option.textContent),
  totals: known.get("totals").children.map((row) => row.children.map((cell) => cell.textContent)),
  calls: calls.n,
});
const told = [seen()];
for (const [id, event, value] of steps) {
  if (id === "key") keys.keydown({ key: value, target: document.body, preventDefault() {} });
  else if (id === "frame") frames.shift()(value);
  else {
    if (value !== null) document.getElementById(id).value = value;
    document.getElementById(id).fire(event);
  }
  told.push(seen());
}
console.log(JSON.stringify(told));
