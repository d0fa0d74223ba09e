// A city in motion: drawn here for the page that stands alone and for the one that is served.
// `page.py` puts this text into its page as it is, but for the word `export`.
"use strict";

/**
 * Draws what `pack_city` packed. `$` finds a part of `city.html` by its name; `at_s` is the moment
 * to begin with. Gives back what redraws (other colours, another width) and what stops it.
 */
export function showCity(data, $, { at_s: atS = null } = {}) {
  const KINDS = { u1: Uint8Array, u2: Uint16Array, i4: Int32Array, f4: Float32Array };
  const unpack = ({ kind, data: text }) =>
    new KINDS[kind](Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  // Distinct to most colour-blind eyes (Okabe and Ito), on light and dark ground.
  const OPERATOR_COLOURS = ["#d55e00", "#0a84c6", "#009e73", "#b8579a", "#c08a00", "#6a5acd"];
  const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3], [4, 2], [1, 4]];
  const CORNERS = [0, 3, 4];
  const AWAY = 0xffff, LARGEST = 0xfffe, ALL = -1, TRAIL_S = 4, LINES_AT_ONCE = 25;

  const { ticks, tick_s: tickS, start_s: startS, stride, operators, users, streams } = data;
  const [west, south, east, north] = data.box;
  const width = Math.max(east - west, 1), height = Math.max(north - south, 1);
  const brokers = {
    names: data.brokers.names,
    parent: unpack(data.brokers.parent),
    middle: unpack(data.brokers.middle),
    leaves: unpack(data.brokers.leaves),
    areas: unpack(data.brokers.areas),
  };
  const brokerHeight = new Uint8Array(brokers.names.length);
  for (let b = brokers.names.length - 1; b > 0; b--) {
    const above = brokers.parent[b];
    brokerHeight[above] = Math.max(brokerHeight[above], brokerHeight[b] + 1);
  }
  const cars = {
    names: data.vehicles.names,
    first: unpack(data.vehicles.first),
    count: unpack(data.vehicles.count),
    x: unpack(data.vehicles.x),
    y: unpack(data.vehicles.y),
  };
  const carAt = new Int32Array(cars.names.length);
  for (let v = 1; v < carAt.length; v++) carAt[v] = carAt[v - 1] + cars.count[v - 1];
  const members = unpack(data.instances.vehicles), life = unpack(data.instances.life);
  const instances = life.length / 2, moments = unpack(data.moments);

  const approaches = data.approaches.map((packed, number) => {
    const start = Int32Array.from(unpack(packed.start));
    const moves = Object.fromEntries(Object.entries(packed.moves).map(([k, v]) => [k, unpack(v)]));
    const source = new Int32Array(moves.tick.length), hosts = start.slice();
    for (let m = 0; m < source.length; m++) {
      const at = moves.instance[m] * operators.length + moves.operator[m];
      source[m] = hosts[at];
      hosts[at] = moves.target[m];
    }
    return {
      name: packed.name, dash: DASHES[number % DASHES.length], number, start, moves, source,
      hosts: start.slice(), done: 0, seen: 0,
      now: unpack(packed.now), cost: unpack(packed.cost), moved: unpack(packed.moved),
    };
  });

  // What the reader has chosen.
  let tick = 0, playing = false, speed = 10, shown = approaches.length - 1, chosen = ALL;
  let colours = {};

  const readColours = () => {
    const style = getComputedStyle($("maps"));
    for (const name of ["ground", "paper", "ink", "soft", "line", "leaf", "link", "broker", "car"])
      colours[name] = style.getPropertyValue(`--city-${name}`).trim() || "#808080";
  };

  const UNITS = ["B", "kB", "MB", "GB", "TB"];
  const bytes = (value) => {
    let unit = 0;
    while (value >= 999.5 && unit < UNITS.length - 1) { value /= 1000; unit++; }
    return `${Number(value.toPrecision(3))} ${UNITS[unit]}`;
  };

  const before = (sorted, value) => {
    // How many of the sorted numbers are at most `value`.
    let low = 0, high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] <= value) low = middle + 1; else high = middle;
    }
    return low;
  };

  const follow = (approach) => {
    // Hosts at `tick`: forward from what is known, or from the start when time was set back.
    const now = Math.floor(tick), { moves, hosts } = approach;
    if (now < approach.seen) { hosts.set(approach.start); approach.done = 0; }
    approach.seen = now;
    while (approach.done < moves.tick.length && moves.tick[approach.done] <= now) {
      const m = approach.done++;
      hosts[moves.instance[m] * operators.length + moves.operator[m]] = moves.target[m];
    }
  };

  const place = [0, 0];
  const locate = (car) => {
    // Where a vehicle is, as shares of the map; false where it is not there.
    const frame = tick / stride - cars.first[car], whole = Math.floor(frame);
    if (frame < 0 || whole >= cars.count[car]) return false;
    const a = carAt[car] + whole, b = whole + 1 < cars.count[car] ? a + 1 : a;
    const away = cars.x[a] === AWAY, gone = cars.x[b] === AWAY;
    if (away) return false;
    const share = gone ? 0 : frame - whole;
    place[0] = (cars.x[a] + (gone ? 0 : (cars.x[b] - cars.x[a]) * share)) / LARGEST;
    place[1] = (cars.y[a] + (gone ? 0 : (cars.y[b] - cars.y[a]) * share)) / LARGEST;
    return true;
  };

  const lives = (k) => life[2 * k] <= tick && tick < life[2 * k + 1];

  // --- The map ---------------------------------------------------------------------------------

  // Sizes are asked for once: to ask while text changes lays out the whole page each time.
  const sizes = new Map();
  const fit = (canvas, ratio) => {
    const dots = window.devicePixelRatio || 1;
    if (!sizes.has(canvas)) {
      const given = canvas.clientWidth || 300;
      sizes.set(canvas, [given, ratio ? Math.round(given * ratio) : canvas.clientHeight || 150]);
    }
    const [wide, tall] = sizes.get(canvas);
    if (ratio) canvas.style.height = `${tall}px`;
    if (canvas.width !== Math.round(wide * dots) || canvas.height !== Math.round(tall * dots)) {
      canvas.width = Math.round(wide * dots);
      canvas.height = Math.round(tall * dots);
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(dots, 0, 0, dots, 0, 0);
    pen.clearRect(0, 0, wide, tall);
    return [pen, wide, tall];
  };

  const line = (pen, x0, y0, x1, y1) => { pen.moveTo(x0, y0); pen.lineTo(x1, y1); };
  const dot = (pen, x, y, radius) => { pen.moveTo(x + radius, y); pen.arc(x, y, radius, 0, 2 * Math.PI); };

  const drawMap = (canvas, approach) => {
    const RIM = 14;
    const [pen, wide, tall] = fit(canvas, Math.min(Math.max(height / width, 0.3), 1.1));
    const scale = Math.min((wide - 2 * RIM) / width, (tall - 2 * RIM) / height);
    const left = (wide - width * scale) / 2, top = (tall - height * scale) / 2;
    const X = (x) => left + (x - west) * scale, Y = (y) => top + (north - y) * scale;
    const carX = (share) => left + share * width * scale;
    const carY = (share) => top + (1 - share) * height * scale;
    const at = (b) => [X(brokers.middle[2 * b]), Y(brokers.middle[2 * b + 1])];
    drawBrokers(pen, X, Y, at, scale);
    follow(approach);
    pen.fillStyle = colours.car;
    pen.beginPath();
    // Of many, squares: at this size they look the same, and are drawn much faster.
    const many = cars.names.length > 400;
    for (let v = 0; v < cars.names.length; v++) {
      if (!locate(v)) continue;
      if (many) pen.rect(carX(place[0]) - 1.4, carY(place[1]) - 1.4, 2.8, 2.8);
      else dot(pen, carX(place[0]), carY(place[1]), 2.2);
    }
    pen.fill();
    drawNames(pen, X, Y, at, wide);
    drawTrails(pen, approach, at);
    if (chosen === ALL) drawAll(pen, approach, at, carX, carY);
    else drawOne(pen, approach, at, carX, carY, wide);
  };

  const drawBrokers = (pen, X, Y, at, scale) => {
    const { areas, leaves, names, parent } = brokers;
    pen.lineWidth = 1;
    pen.fillStyle = colours.leaf;
    pen.strokeStyle = colours.line;
    for (let k = 0; k < leaves.length; k++) {
      const [w, s, e, n] = areas.subarray(4 * k, 4 * k + 4);
      pen.fillRect(X(w), Y(n), (e - w) * scale, (n - s) * scale);
      pen.strokeRect(X(w), Y(n), (e - w) * scale, (n - s) * scale);
    }
    pen.strokeStyle = colours.link;
    pen.beginPath();
    for (let b = 1; b < names.length; b++) line(pen, ...at(b), ...at(parent[b]));
    pen.stroke();
    pen.fillStyle = colours.broker;
    pen.beginPath();
    for (let b = 0; b < names.length; b++) {
      const [x, y] = at(b), half = 2 + 1.5 * Math.min(brokerHeight[b], 4);
      pen.rect(x - half, y - half, 2 * half, 2 * half);
    }
    pen.fill();
  };

  const drawNames = (pen, X, Y, at, wide) => {
    // Brokers above others first; a name that would lie on another one, or on a broker, is left out.
    const { areas, leaves, names } = brokers, taken = [];
    for (let b = 0; b < names.length; b++) {
      const [x, y] = at(b), half = brokerHeight[b] > 0 ? 20 : 6;
      taken.push([x - half, y - half / 2, x + half, y + half / 2]);
    }
    pen.font = "10px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.strokeStyle = colours.leaf;
    pen.lineWidth = 3;
    pen.lineJoin = "round";
    const write = (text, x, y, colour) => {
      const half = pen.measureText(text).width / 2 + 3, box = [x - half, y - 7, x + half, y + 7];
      if (box[0] < 0 || box[2] > wide) return;
      if (taken.some(([w, n, e, s]) => box[0] < e && w < box[2] && box[1] < s && n < box[3])) return;
      taken.push(box);
      pen.strokeText(text, x, y);
      pen.fillStyle = colour;
      pen.fillText(text, x, y);
    };
    const above = [...names.keys()].filter((b) => brokerHeight[b] > 0).sort((a, b) => brokerHeight[b] - brokerHeight[a]);
    for (const b of above) write(names[b], at(b)[0], at(b)[1] - 29, colours.ink);
    for (let k = 0; k < leaves.length; k++) {
      const [w, s, e, n] = areas.subarray(4 * k, 4 * k + 4);
      // In the middle of an edge: the corners are where the brokers above are drawn.
      const fits = X(e) - X(w) >= pen.measureText(names[leaves[k]]).width + 30 && Y(s) - Y(n) >= 64;
      if (fits) write(names[leaves[k]], X((w + e) / 2), Y(n) + 9, colours.soft);
    }
  };

  const drawTrails = (pen, { moves, source, done }, at) => {
    // Moves of the last seconds fade out.
    for (let m = done - 1; m >= 0; m--) {
      const age = (tick - moves.tick[m]) * tickS;
      if (age > TRAIL_S) break;
      if (chosen !== ALL && moves.instance[m] !== chosen) continue;
      const [x0, y0] = at(source[m]), [x1, y1] = at(moves.target[m]);
      const bend = 0.18 * (moves.operator[m] + 1);
      pen.globalAlpha = (chosen === ALL ? 0.55 : 0.9) * (1 - age / TRAIL_S);
      pen.strokeStyle = OPERATOR_COLOURS[moves.operator[m] % OPERATOR_COLOURS.length];
      pen.lineWidth = chosen === ALL ? 1.5 : 3;
      pen.beginPath();
      pen.moveTo(x0, y0);
      pen.quadraticCurveTo((x0 + x1) / 2 + (y1 - y0) * bend, (y0 + y1) / 2 - (x1 - x0) * bend, x1, y1);
      pen.stroke();
    }
    pen.globalAlpha = 1;
  };

  const offset = (operator, far) => {
    // Side by side around the broker, the first one on the left.
    const turn = Math.PI * (1 - (2 * operator) / operators.length);
    return operators.length === 1 ? [0, 0] : [Math.cos(turn) * far, Math.sin(turn) * far];
  };

  const drawAll = (pen, approach, at, carX, carY) => {
    const { hosts } = approach, counts = operators.map(() => new Map());
    let alive = 0;
    for (let k = 0; k < instances; k++) {
      if (!lives(k)) continue;
      alive++;
      for (let o = 0; o < operators.length; o++) {
        const host = hosts[k * operators.length + o];
        counts[o].set(host, (counts[o].get(host) || 0) + 1);
      }
    }
    if ($("lines").checked && alive) {
      pen.lineWidth = 1;
      pen.globalAlpha = Math.min(0.5, Math.max(0.06, 12 / alive));
      for (const [a, b] of streams) {
        const operator = a >= 0 ? a : b, user = -1 - (a >= 0 ? b : a);
        if (operator < 0 || user < 0) continue;
        pen.strokeStyle = OPERATOR_COLOURS[operator % OPERATOR_COLOURS.length];
        // Several in one stroke: faster, and where many meet it is still darker.
        pen.beginPath();
        for (let k = 0, held = 0; k < instances; k++) {
          if (!lives(k) || !locate(members[k * users.length + user])) continue;
          line(pen, carX(place[0]), carY(place[1]), ...at(hosts[k * operators.length + operator]));
          if (++held % LINES_AT_ONCE) continue;
          pen.stroke();
          pen.beginPath();
        }
        pen.stroke();
      }
      pen.globalAlpha = 1;
    }
    // As large as the share of all that is there, so that maps side by side compare.
    pen.font = "bold 10px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    counts.forEach((of, o) => {
      for (const [host, count] of of) {
        const radius = 4 + 18 * Math.sqrt(count / alive), [x, y] = at(host), [dx, dy] = offset(o, radius + 0.5);
        marker(pen, x + dx, y + dy, radius, o);
        if (pen.measureText(String(count)).width > 2 * radius - 3) continue;
        pen.fillStyle = "#ffffff";
        pen.fillText(String(count), x + dx, y + dy + 0.5);
      }
    });
  };

  const marker = (pen, x, y, radius, operator) => {
    pen.fillStyle = OPERATOR_COLOURS[operator % OPERATOR_COLOURS.length];
    pen.strokeStyle = colours.ground;
    pen.lineWidth = 1.5;
    pen.beginPath();
    dot(pen, x, y, radius);
    pen.fill();
    pen.stroke();
  };

  const drawOne = (pen, approach, at, carX, carY, wide) => {
    const k = chosen, ends = {};
    users.forEach((_, u) => {
      if (locate(members[k * users.length + u])) ends[-1 - u] = [carX(place[0]), carY(place[1])];
    });
    const alive = lives(k);
    operators.forEach((_, o) => {
      if (!alive) return;
      const [x, y] = at(approach.hosts[k * operators.length + o]), [dx, dy] = offset(o, 8.5);
      ends[o] = [x + dx, y + dy];
    });
    if ($("lines").checked) {
      pen.strokeStyle = colours.ink;
      pen.lineWidth = 1.5;
      pen.beginPath();
      for (const [a, b] of streams) if (ends[a] && ends[b]) line(pen, ...ends[a], ...ends[b]);
      pen.stroke();
    }
    operators.forEach((name, o) => { if (ends[o]) marker(pen, ...ends[o], 8, o); });
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    users.forEach((user, u) => {
      if (!ends[-1 - u]) return;
      const [x, y] = ends[-1 - u], text = `${user}: ${cars.names[members[k * users.length + u]]}`;
      pen.fillStyle = colours.ink;
      pen.beginPath();
      dot(pen, x, y, 4.5);
      pen.fill();
      const right = x + 12 + pen.measureText(text).width < wide;
      pen.textAlign = right ? "left" : "right";
      pen.lineWidth = 3;
      pen.strokeStyle = colours.leaf;
      pen.strokeText(text, x + (right ? 8 : -8), y);
      pen.fillText(text, x + (right ? 8 : -8), y);
    });
  };

  // --- Figures ---------------------------------------------------------------------------------

  const sign = (pen, x, y, radius, { number }) => {
    // A shape of its own for each approach: a disc, a triangle, a diamond; then the same ones hollow.
    const corners = CORNERS[number % CORNERS.length];
    pen.beginPath();
    if (!corners) dot(pen, x, y, radius * 0.85);
    for (let c = 0; c < corners; c++) {
      const turn = (2 * Math.PI * c) / corners - Math.PI / 2;
      if (c) pen.lineTo(x + radius * Math.cos(turn), y + radius * Math.sin(turn));
      else pen.moveTo(x + radius * Math.cos(turn), y + radius * Math.sin(turn));
    }
    pen.closePath();
    pen.setLineDash([]);
    pen.fillStyle = number >= CORNERS.length ? colours.ground : colours.ink;
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 1.5;
    pen.fill();
    pen.stroke();
  };

  const sample = (pen, approach) => {
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 2;
    pen.setLineDash(approach.dash);
    pen.beginPath();
    line(pen, 0, 9, 40, 9);
    pen.stroke();
    sign(pen, 20, 9, 5, approach);
  };

  const drawChart = () => {
    const [pen, wide, tall] = fit($("chart"), 0);
    const LEFT = 6, RIGHT = 6, TOP = 16, BOTTOM = 18;
    const last = moments.length - 1;
    const most = Math.max(1e-9, ...approaches.map((a) => a.cost[last]));
    const X = (t) => LEFT + ((wide - LEFT - RIGHT) * t) / Math.max(ticks - 1, 1);
    const Y = (c) => tall - BOTTOM - ((tall - TOP - BOTTOM) * c) / most;
    pen.strokeStyle = colours.line;
    pen.lineWidth = 1;
    pen.beginPath();
    for (const share of [0, 0.5, 1]) line(pen, LEFT, Y(most * share), wide - RIGHT, Y(most * share));
    pen.stroke();
    pen.fillStyle = colours.soft;
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "bottom";
    pen.textAlign = "left";
    pen.fillText(`${bytes(most)}·s`, LEFT, Y(most) - 2);
    pen.fillText(`${bytes(most / 2)}·s`, LEFT, Y(most / 2) - 2);
    pen.fillText(`${startS} s`, LEFT, tall - 2);
    pen.textAlign = "right";
    pen.fillText(`${startS + (ticks - 1) * tickS} s`, wide - RIGHT, tall - 2);
    const every = Math.max(1, Math.floor(moments.length / Math.max(wide, 100)));
    for (const approach of approaches) {
      pen.strokeStyle = colours.ink;
      pen.lineWidth = approach === approaches[shown] ? 2.5 : 1.5;
      pen.setLineDash(approach.dash);
      pen.beginPath();
      for (let k = 0; k <= last; k += every) pen.lineTo(X(moments[k]), Y(approach.cost[k]));
      pen.lineTo(X(moments[last]), Y(approach.cost[last]));
      pen.stroke();
      // Beside each other, so that lines that lie on each other are told apart too.
      for (let share = 0.15 + 0.05 * approach.number; share < 1; share += 0.25) {
        const k = Math.round(last * share);
        sign(pen, X(moments[k]), Y(approach.cost[k]), 4.5, approach);
      }
    }
    pen.setLineDash([]);
    pen.strokeStyle = OPERATOR_COLOURS[0];
    pen.lineWidth = 1;
    pen.beginPath();
    line(pen, X(tick), TOP, X(tick), tall - BOTTOM);
    pen.stroke();
  };

  const describe = ({ hosts }) => {
    // The map in words.
    if (chosen === ALL) {
      let alive = 0;
      for (let k = 0; k < instances; k++) alive += lives(k);
      return `${alive.toLocaleString("en")} instances have all their vehicles on the map`;
    }
    if (!lives(chosen)) return "Its vehicles are not all on the map now";
    const where = (name, o) => `${name} is at ${brokers.names[hosts[chosen * operators.length + o]]}`;
    return operators.map(where).join(", ");
  };

  const clock = () => `${Math.round((startS + Math.floor(tick) * tickS) * 10) / 10} s`;

  const tellTotals = () => {
    const k = Math.max(before(moments, Math.floor(tick)) - 1, 0);
    approaches.forEach((approach, number) => {
      const [now, cost, moved] = rows[number];
      now.textContent = bytes(approach.now[k]);
      cost.textContent = `${bytes(approach.cost[k])}·s`;
      moved.textContent = approach.moved[k].toLocaleString("en");
    });
    $("clock").textContent = clock();
    $("time").value = String(Math.floor(tick));
    $("time").setAttribute("aria-valuetext", clock());
  };

  const announce = () => {
    const sums = approaches.map((a, n) => `${a.name} ${rows[n][1].textContent}, ${rows[n][2].textContent} moves`);
    $("status").textContent = `At ${clock()}: ${sums.join("; ")}`;
  };

  // --- The page --------------------------------------------------------------------------------

  const make = (tag, parent, text) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    parent.appendChild(made);
    return made;
  };

  const samples = [];
  const rows = approaches.map((approach) => {
    const { name } = approach;
    const row = make("tr", $("totals"));
    const head = make("th", row, name);
    head.setAttribute("scope", "row");
    samples.push([make("canvas", head), approach]);
    return [make("td", row), make("td", row), make("td", row)];
  });
  const figures = approaches.map((approach) => {
    const { name } = approach, figure = make("figure", $("maps"));
    samples.push([make("canvas", make("h2", figure, name)), approach]);
    const canvas = make("canvas", figure);
    const caption = make("figcaption", figure);
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Map of brokers, vehicles and operators under ${name}`);
    return [figure, canvas, caption];
  });

  const option = (select, value, text) => { make("option", select, text).value = String(value); };
  approaches.forEach(({ name }, number) => option($("approach"), number, name));
  if (approaches.length > 1) option($("approach"), ALL, "side by side");
  $("approach").value = String(shown);
  option($("instance"), ALL, `all ${data.instances.all.toLocaleString("en")}`);
  for (let k = 0; k < instances; k++) {
    const names = users.map((_, u) => cars.names[members[k * users.length + u]]);
    option($("instance"), k, `${k}: ${names.join(" → ")}`);
  }
  $("about").textContent =
    `${data.instances.all.toLocaleString("en")} instances of ${operators.join(" and ")} between vehicles, ` +
    `on ${brokers.names.length.toLocaleString("en")} brokers`;
  for (const note of data.notes) make("li", $("notes"), note);
  $("time").max = String(ticks - 1);

  const legend = [
    ...operators.map((name, o) => [`operator ${name}; a number says how many`, (pen) => marker(pen, 20, 9, 6, o)]),
    ["broker; larger ones are above others", (pen) => { pen.fillStyle = colours.broker; pen.fillRect(16, 5, 8, 8); }],
    ["vehicle", (pen) => { pen.fillStyle = colours.car; pen.beginPath(); dot(pen, 20, 9, 2.5); pen.fill(); }],
    ["link between brokers", (pen) => { pen.strokeStyle = colours.link; pen.beginPath(); line(pen, 8, 9, 32, 9); pen.stroke(); }],
    ["a move, fading for four seconds", (pen) => {
      pen.strokeStyle = OPERATOR_COLOURS[0]; pen.lineWidth = 2; pen.beginPath();
      pen.moveTo(8, 14); pen.quadraticCurveTo(20, 0, 32, 14); pen.stroke();
    }],
    ...approaches.map((approach) => [`cost of ${approach.name}`, (pen) => sample(pen, approach)]),
  ].map(([text, draw]) => {
    const item = make("li", $("legend"));
    const canvas = make("canvas", item);
    canvas.setAttribute("aria-hidden", "true");
    make("span", item, text);
    return [canvas, draw];
  });

  const draw = () => {
    figures.forEach(([figure, canvas, caption], number) => {
      if (figure.hidden) return;
      drawMap(canvas, approaches[number]);
      caption.textContent = describe(approaches[number]);
    });
    tellTotals();
    drawChart();
  };
  const redraw = () => {
    readColours();
    sizes.clear();
    $("maps").className = shown === ALL ? "many" : "";
    // All that is to be seen first: how wide one map is depends on the others.
    figures.forEach(([figure], number) => { figure.hidden = shown !== ALL && shown !== number; });
    for (const [canvas, paint] of legend) paint(fit(canvas, 0)[0]);
    for (const [canvas, approach] of samples) if (canvas.clientWidth) sample(fit(canvas, 0)[0], approach);
    draw();
  };
  const seek = (to) => { tick = Math.min(Math.max(to, 0), ticks - 1); draw(); };

  let last = 0;
  const advance = (now) => {
    if (!playing) return;
    tick = Math.min(tick + (Math.min(now - last, 250) / 1000) * (speed / tickS), ticks - 1);
    last = now;
    draw();
    if (tick >= ticks - 1) play(false); else requestAnimationFrame(advance);
  };
  const play = (wanted) => {
    if (wanted && tick >= ticks - 1) tick = 0;
    playing = wanted;
    $("play").textContent = playing ? "Pause" : "Play";
    if (playing) requestAnimationFrame((now) => { last = now; advance(now); });
    else announce();
  };

  $("controls").addEventListener("submit", (event) => event.preventDefault());
  $("play").addEventListener("click", () => play(!playing));
  $("time").addEventListener("input", () => seek(Number($("time").value)));
  $("time").addEventListener("change", announce);
  $("speed").addEventListener("change", () => { speed = Number($("speed").value); });
  $("approach").addEventListener("change", () => { shown = Number($("approach").value); redraw(); });
  $("instance").addEventListener("change", () => {
    chosen = Number($("instance").value);
    if (chosen !== ALL && !lives(chosen)) seek(life[2 * chosen]); else draw();
  });
  $("lines").addEventListener("change", draw);
  const keyed = (event) => {
    // Controls that are in use keep their own keys; a city that is put aside hears nothing.
    if ($("maps").isConnected === false) return;
    if (event.target !== document.body || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = Math.max(1, Math.round(1 / tickS));
    const keys = {
      " ": () => play(!playing),
      ArrowLeft: () => seek(Math.floor(tick) - step),
      ArrowRight: () => seek(Math.floor(tick) + step),
      Home: () => seek(0),
      End: () => seek(ticks - 1),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  };
  const scheme = window.matchMedia("(prefers-color-scheme: dark)");
  document.addEventListener("keydown", keyed);
  window.addEventListener("resize", redraw);
  const watch = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(redraw);
  if (watch) watch.observe($("maps"));
  scheme.addEventListener("change", redraw);
  if (atS !== null) tick = Math.min(Math.max((atS - startS) / tickS, 0), ticks - 1);
  redraw();
  announce();
  return {
    redraw,
    stop: () => {
      play(false);
      if (watch) watch.disconnect();
      document.removeEventListener("keydown", keyed);
      window.removeEventListener("resize", redraw);
      scheme.removeEventListener("change", redraw);
    },
  };
}
