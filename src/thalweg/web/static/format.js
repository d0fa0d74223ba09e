// Numbers for people. Zero is a figure like any other; unknown is "unknown", infinity "∞".

/** What the server sent, as a number: unknown is NaN. */
export const number = (value) =>
  value === "inf" ? Infinity : value === "-inf" ? -Infinity : typeof value === "number" ? value : NaN;

const short = (value) => {
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(3)));
};

const shown = (given, write) => {
  const value = number(given);
  if (Number.isNaN(value)) return "unknown";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  return write(value);
};

const scaled = (units) => (given) => shown(given, (value) => {
  let unit = 0;
  while (Math.abs(value) >= 999.5 && unit < units.length - 1) { value /= 1000; unit++; }
  return `${short(value)} ${units[unit]}`;
});

export const bits = scaled(["bps", "kbps", "Mbps", "Gbps", "Tbps"]);
export const bytes = scaled(["B", "kB", "MB", "GB", "TB"]);
export const plain = (given) => shown(given, short);
export const percent = (given) => shown(given, (value) => {
  if (value > 0 && value < 0.0005) return "<0.1 %";
  return `${Math.abs(value) < 0.0995 ? Number((value * 100).toFixed(1)) : Math.round(value * 100)} %`;
});
export const perSecond = (given) => shown(given, (value) =>
  value >= 99_950 ? `${scaled(["", "k", "M", "G"])(value).replace(/ $/, "")}/s` : `${short(value)}/s`);

export const seconds = (given) => shown(given, (value) => {
  const size = Math.abs(value);
  if (size === 0) return "0 s";
  if (size < 0.9995e-3) return `${short(value * 1e6)} µs`;
  if (size < 0.9995) return `${short(value * 1e3)} ms`;
  if (size < 120) return `${short(value)} s`;
  if (size < 7200) return `${short(value / 60)} min`;
  return `${short(value / 3600)} h`;
});

const two = (value) => String(value).padStart(2, "0");

/** A moment: the time of day, or the time since a run began. */
export function moment(atS, clock) {
  if (!Number.isFinite(atS)) return "–";
  if (clock === "wall") return new Date(atS * 1000).toLocaleTimeString("en-GB");
  if (Math.abs(atS) < 120) return `${Number(atS.toFixed(1))} s`;
  const whole = Math.round(atS), hours = Math.floor(whole / 3600);
  const rest = `${two(Math.floor((whole % 3600) / 60))}:${two(whole % 60)}`;
  return hours ? `${hours}:${rest}` : rest;
}

/** A moment that is past, with how long before `nowS` it was: an old reason is not read as one of now. */
export const dated = (atS, nowS, clock) =>
  `${moment(atS, clock)}${Number.isFinite(nowS) && nowS >= atS ? ` (${seconds(Math.round(nowS - atS))} ago)` : ""}`;

/** How old a measured figure is that was not renewed; empty where it is fresh. */
export const staleness = (of) => (of?.stale ? `stale, ${seconds(Math.round(of.age_s)).replace(" ", "\u00a0")} old` : "");

export const count = (value, one, many = `${one}s`) =>
  `${value.toLocaleString("en")} ${value === 1 ? one : many}`;

/** The figures of a deployment that have a place of their own. */
export const GAUGES = [
  { key: "response_time_s", name: "Response time", symbol: "T", show: seconds },
  { key: "uplink_bps", name: "Uplink", symbol: "B", show: bits },
  { key: "usage", name: "Usage", symbol: "RU", show: plain },
  { key: "events_in_per_s", name: "Events in", symbol: "", show: perSecond },
  { key: "events_out_per_s", name: "Events out", symbol: "", show: perSecond },
];

/** How a value stands to its limit, in words; the mark is read without colour. */
export function standing(given, limitGiven, show) {
  const value = number(given), limit = number(limitGiven);
  if (!Number.isFinite(limit) || Number.isNaN(value)) return { level: "none", words: "" };
  const share = limit > 0 ? value / limit : value > 0 ? Infinity : 0;
  if (share > 1) return { level: "over", share, words: `▲ over the limit, ${show(limit)}` };
  return { level: share > 0.8 ? "high" : "fine", share, words: `${percent(share)} of the limit, ${show(limit)}` };
}
