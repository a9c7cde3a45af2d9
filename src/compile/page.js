'use strict';
// Draws what the data block holds (its format: viz.h). Nothing is fetched.
const data = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);

// ---- colours: one for each operator, the same in every bundle; [light, dark]
const kColours = {
  linear: ['#3b6fd4', '#5d8df0'], attention: ['#d9622b', '#f0824e'], rms_norm: ['#2e9e6b', '#44bd86'], glu: ['#8a54c7', '#a97be3'],
  rope: ['#1c9aa8', '#36bccb'], rope_table: ['#0f6f7a', '#2894a0'], kv_append: ['#c9a010', '#e3bd35'], add: ['#7d8797', '#97a2b4'],
  bias_add: ['#98a84a', '#b3c35f'], embed: ['#a5642a', '#c68450'], scale: ['#5c8f34', '#7cb352'], gather_rows: ['#b04a6d', '#d26a8e'],
  soft_cap: ['#6a6fb8', '#8a8fd8'], sample: ['#cc3f8f', '#e862ae'],
  // fused: near the colour of the operator that most of their time is
  linear_add: ['#2f5bb0', '#7ba3f5'], linear_part: ['#5580c9', '#8fb0ee'], linear_bias: ['#3f7bb8', '#64a4e0'], norm_linear: ['#2c72a8', '#4f9ad2'],
  norm_linear_bias: ['#3a8296', '#5cabc0'], glu_linear: ['#6a5ad0', '#8d80f0'], norm_glu_linear: ['#5a48b4', '#7f6ee0'],
  norm_rope: ['#1f9b8a', '#39c2ae'], norm_add: ['#5a9a80', '#7cc0a4'], rope_kv_append: ['#b08a1c', '#d0a93a'],
  norm_rope_kv_append: ['#977818', '#bb9834'], rope_attention: ['#c4561c', '#e67a45'], norm_rope_attention: ['#ac4a18', '#d16c3c'],
  attention_part: ['#e0703c', '#f5935f'], attention_merge: ['#b8653a', '#d98a60'],
};
const kProtocolColour = ['#b9c0cc', '#4b5567'];
const dark = () => document.documentElement.classList.contains('dark');
const colour = op => (kColours[op] || kProtocolColour)[dark() ? 1 : 0];
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// ---- units
const ns = v => v < 1e3 ? v.toFixed(0) + ' ns' : v < 1e6 ? (v / 1e3).toFixed(2) + ' µs' : (v / 1e6).toFixed(3) + ' ms';
function bytes(v) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let u = 0;
  while (v >= 999.5 && u < 4) { v /= 1000; ++u; }
  return (u && v < 100 ? v.toFixed(v < 10 ? 2 : 1) : v.toFixed(0)) + ' ' + units[u];
}
const escape = s => String(s).replace(/[&<>"]/g, c => ({'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;'}[c]));

// ---- the program that is shown
let P;                       // its record in the data
let lanes;                   // [worker] -> packet indices, in order of execution
let readers;                 // [packet] -> packets that wait for one of its signals
let view = {from: 0, to: 1}; // ns, shared by timeline and memory map
let selected = -1, hovered = -1, only = null, matches = null;

const packetName = p => `${data.programs.indexOf(P)}:${p}`;
const opOf = p => data.ops[P.packets.op[p]];
const nodeOf = p => data.nodes[P.packets.node[p]];
const layerOf = node => node && node.layer >= 0 ? `layer ${node.layer}` : '';
function waitsOf(p) { return P.waits.slice(P.packets.first_wait[p], P.packets.first_wait[p] + P.packets.n_waits[p]); }
function signalsOf(p) { return P.signals.slice(P.packets.first_signal[p], P.packets.first_signal[p] + P.packets.n_signals[p]); }
const signallers = wait => P.signallers[wait.signallers];

function openProgram(index) {
  P = data.programs[index];
  selected = hovered = -1;
  const n = P.packets.op.length;
  lanes = Array.from({length: data.model.workers}, () => []);
  for (let p = 0; p < n; ++p) lanes[P.packets.worker[p]].push(p);
  readers = Array.from({length: n}, () => []);
  for (let p = 0; p < n; ++p) {
    for (const wait of waitsOf(p)) for (const s of signallers(wait)) readers[s].push(p);
  }
  view = {from: 0, to: P.span};
  $('arena').textContent = `${bytes(P.arena_bytes)}, ${P.buffers.length} buffers; two share bytes only when their lifetimes do not meet (square-root scale)`;
  search();
  fillLegend();
  fillOperators();
  resize();
  inspect(-1);
}

// ---- canvases
const kAxis = 18, kLeft = 58;
function prepare(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const g = canvas.getContext('2d');
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  g.font = '11px system-ui, "DejaVu Sans", sans-serif';
  g.textBaseline = 'middle';
  return {g, width, height};
}
const toX = (t, width) => kLeft + (t - view.from) / (view.to - view.from) * (width - kLeft);
const toTime = (x, width) => view.from + (x - kLeft) / (width - kLeft) * (view.to - view.from);

// As many decimals as tell the marks apart, and no more.
function axisLabel(t, step) {
  const [unit, name] = view.to >= 1e6 ? [1e6, ' ms'] : view.to >= 1e3 ? [1e3, ' µs'] : [1, ' ns'];
  return (t / unit).toFixed(Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9))) + name;
}

function axis(g, width, height) {
  const rough = (view.to - view.from) / (width / 110);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(k => k * power).find(s => s >= rough);
  g.fillStyle = css('--dim');
  g.strokeStyle = css('--line');
  g.textAlign = 'center';
  for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
    const x = toX(t, width);
    g.beginPath();
    g.moveTo(x, 0);
    g.lineTo(x, height - kAxis);
    g.stroke();
    if (x > kLeft + 20 && x < width - 24) g.fillText(axisLabel(t, step), x, height - kAxis / 2);
  }
}

const laneHeight = height => (height - kAxis) / lanes.length;
const faded = p => (only !== null && P.packets.op[p] !== only) || (matches && !matches.has(p));

// The first packet of the lane that ends after t; lanes are sorted by time.
function firstAfter(lane, t) {
  let low = 0, high = lane.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (P.packets.end[lane[middle]] < t) low = middle + 1; else high = middle;
  }
  return low;
}

function drawTimeline() {
  const {g, width, height} = prepare($('timeline'));
  const lane = laneHeight(height), pad = lane > 12 ? 2 : lane > 5 ? 0.5 : 0;
  g.fillStyle = css('--lane');
  for (let w = 0; w < lanes.length; ++w) g.fillRect(kLeft, w * lane + pad, width - kLeft, lane - 2 * pad);
  axis(g, width, height);
  for (let w = 0; w < lanes.length; ++w) {
    if (lane >= 11 || w % Math.ceil(11 / lane) === 0) {
      g.fillStyle = css('--dim');
      g.textAlign = 'right';
      g.fillText(lane >= 14 ? `w ${w}` : w, kLeft - 6, (w + 0.5) * lane);
    }
    let lastX = -1, lastColour = '';
    for (let i = firstAfter(lanes[w], view.from); i < lanes[w].length; ++i) {
      const p = lanes[w][i];
      const x = Math.max(toX(P.packets.start[p], width), kLeft);
      if (x > width) break;
      const right = Math.min(toX(P.packets.end[p], width), width);
      const fill = colour(opOf(p));
      if (right - x < 0.7 && x - lastX < 0.7 && fill === lastColour) continue;  // it would paint the same pixel again
      g.globalAlpha = faded(p) ? 0.13 : 1;
      g.fillStyle = fill;
      const gap = right - x > 4 ? 0.6 : 0;
      g.fillRect(x, w * lane + pad, Math.max(right - x - gap, 0.7), lane - 2 * pad);
      if (right - x > 44 && lane > 14) label(g, p, x, right - x, (w + 0.5) * lane);
      lastX = x;
      lastColour = fill;
    }
  }
  g.globalAlpha = 1;
  if (hovered >= 0 && hovered !== selected) outline(g, hovered, width, lane, 1);
  if (selected >= 0) drawEdges(g, width, lane);
}

// The longest name of the packet that fits into its rectangle.
function label(g, p, x, room, y) {
  const node = nodeOf(p), weight = node && node.weight;
  const names = weight ? [`${opOf(p)} ${weight}`, weight, opOf(p)] : [opOf(p)];
  const text = names.find(name => g.measureText(name).width < room - 8);
  if (!text) return;
  g.fillStyle = dark() ? '#0d1016' : '#ffffff';
  g.textAlign = 'left';
  g.fillText(text, x + 4, y);
}

function outline(g, p, width, lane, thickness) {
  const x = toX(P.packets.start[p], width), right = toX(P.packets.end[p], width);
  if (right < kLeft || x > width) return;
  g.strokeStyle = css('--mark');
  g.lineWidth = thickness;
  g.strokeRect(x - 1, P.packets.worker[p] * lane + 1, Math.max(right - x, 2) + 2, lane - 2);
  g.lineWidth = 1;
}

// Arrows from those whom the selected packet waits for, and to those who wait for it.
function drawEdges(g, width, lane) {
  g.save();
  g.beginPath();
  g.rect(kLeft, 0, width - kLeft, lane * lanes.length);
  g.clip();
  const place = (p, t) => [toX(t, width), (P.packets.worker[p] + 0.5) * lane];
  const arrow = (from, to, style) => {
    const [x0, y0] = place(from, P.packets.end[from]), [x1, y1] = place(to, P.packets.start[to]);
    const bend = Math.max(12, Math.abs(x1 - x0) / 2);
    g.strokeStyle = style;
    g.beginPath();
    g.moveTo(x0, y0);
    g.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
    g.stroke();
    g.fillStyle = style;
    g.beginPath();
    g.arc(x1, y1, 2.5, 0, 7);
    g.fill();
  };
  const sources = new Set(waitsOf(selected).flatMap(signallers));
  g.globalAlpha = sources.size + readers[selected].length > 60 ? 0.35 : 0.9;
  for (const p of sources) arrow(p, selected, css('--mark'));
  for (const p of new Set(readers[selected])) arrow(selected, p, css('--accent'));
  g.globalAlpha = 1;
  outline(g, selected, width, lane, 2);
  g.restore();
}

// Offsets are drawn on a square-root scale, up to the highest byte in use in the view: logits are as large as all other buffers together.
const inView = b => b.end >= view.from && b.start <= view.to;
const arenaTop = () => P.buffers.reduce((top, b) => inView(b) ? Math.max(top, b.offset + b.bytes) : top, 1);

function drawMemory() {
  const {g, width, height} = prepare($('memory'));
  axis(g, width, height);
  const tall = height - kAxis, top = arenaTop();
  const toY = offset => tall * (1 - Math.sqrt(offset / top));
  g.textAlign = 'right';
  for (const share of [0, 1 / 16, 1 / 4, 9 / 16, 1]) {
    g.fillStyle = css('--dim');
    g.fillText(bytes(top * share), kLeft - 5, Math.min(Math.max(toY(top * share), 7), tall - 7));
    g.fillStyle = css('--line');
    g.fillRect(kLeft, toY(top * share), width - kLeft, 1);
  }
  P.buffers.filter(inView).forEach(b => {
    const x = Math.max(toX(b.start, width), kLeft), right = Math.min(toX(b.end, width), width);
    const node = data.nodes[b.node];
    const touched = selected >= 0 && P.packets.operands[selected].some(t => P.tensors[t].space === 'arena' && P.tensors[t].node === b.node);
    g.globalAlpha = only !== null && node.op !== only ? 0.13 : 1;
    g.fillStyle = colour(data.ops[node.op]);
    const y = toY(b.offset + b.bytes), deep = toY(b.offset) - y;
    g.fillRect(x, y, Math.max(right - x - 0.5, 0.8), Math.max(deep - 0.5, 0.8));
    const name = `%${b.node}` + (node.weight ? ' ' + node.weight : '');
    if (deep > 12 && g.measureText(name).width < right - x - 8) {
      g.fillStyle = dark() ? '#0d1016' : '#ffffff';
      g.textAlign = 'left';
      g.fillText(name, x + 4, y + deep / 2);
    }
    if (touched) {
      g.globalAlpha = 1;
      g.strokeStyle = css('--mark');
      g.lineWidth = 2;
      g.strokeRect(x, y, Math.max(right - x, 2), Math.max(deep, 2));
      g.lineWidth = 1;
    }
  });
  g.globalAlpha = 1;
}

// The whole step in a strip: how many workers are busy, in the colour of what most of them do; a frame shows the view.
function drawOverview() {
  const {g, width, height} = prepare($('overview'));
  const columns = Math.max(1, Math.floor((width - kLeft) / 2));
  const busy = Array.from({length: columns}, () => new Float64Array(data.ops.length));
  for (let p = 0; p < P.packets.op.length; ++p) {
    const a = P.packets.start[p] / P.span * columns, b = P.packets.end[p] / P.span * columns;
    for (let c = Math.floor(a); c < Math.min(b, columns); ++c) busy[c][P.packets.op[p]] += Math.min(b, c + 1) - Math.max(a, c);
  }
  busy.forEach((byOp, c) => {
    let y = height - 2;
    byOp.forEach((share, op) => {
      const tall = share / lanes.length * (height - 4);
      g.fillStyle = colour(data.ops[op]);
      g.fillRect(kLeft + c * 2, y - tall, 2, tall);
      y -= tall;
    });
  });
  g.fillStyle = css('--dim');
  g.textAlign = 'right';
  g.fillText('busy', kLeft - 6, height / 2);
  const x0 = kLeft + view.from / P.span * (width - kLeft), x1 = kLeft + view.to / P.span * (width - kLeft);
  g.strokeStyle = css('--accent');
  g.lineWidth = 2;
  g.strokeRect(x0 + 1, 1, Math.max(x1 - x0 - 2, 2), height - 2);
}

let queued = false;
function draw() {
  if (queued) return;
  queued = true;
  requestAnimationFrame(() => { queued = false; drawOverview(); drawTimeline(); drawMemory(); });
}
function resize() {
  const workers = lanes.length;
  $('timeline').style.height = Math.min(Math.max(workers * (workers > 8 ? 22 : 60), 140), 560) + kAxis + 'px';
  const top = $('memory').getBoundingClientRect().top + scrollY;
  $('memory').style.height = Math.max(230, innerHeight - top - 18) + 'px';  // what the window has left
  draw();
}

// ---- tables
function fillLegend() {
  const used = [...new Set(P.packets.op)].sort((a, b) => a - b);
  $('legend').innerHTML = used.map(op => `<button data-op="${op}" class="${only !== null && only !== op ? 'off' : ''}">` +
    `<span class="swatch" style="background:${colour(data.ops[op])}"></span>${data.ops[op]}</button>`).join('');
}

function fillOperators() {
  const rows = new Map();
  let total = 0;
  for (let p = 0; p < P.packets.op.length; ++p) {
    const row = rows.get(P.packets.op[p]) || {packets: 0, time: 0, weights: 0};
    row.packets += 1;
    row.time += P.packets.end[p] - P.packets.start[p];
    row.weights += P.packets.weight_bytes[p];
    total += P.packets.end[p] - P.packets.start[p];
    rows.set(P.packets.op[p], row);
  }
  const sorted = [...rows].sort((a, b) => b[1].time - a[1].time);
  const idle = Math.max(0, P.span * lanes.length - total);
  const line = (name, row, share, fill, attribute) => `<tr ${attribute}><td>${fill ? `<span class="swatch" style="background:${fill}"></span> ` : ''}` +
    `${name}</td><td class="n">${row.packets}</td><td class="n">${row.weights ? bytes(row.weights) : ''}</td><td class="n">${ns(row.time)}</td>` +
    `<td class="n">${(share * 100).toFixed(1)}%</td><td class="bar"><i style="width:${share * 100}%;background:${fill || css('--dim')}"></i></td></tr>`;
  const all = total + idle;
  $('operators').innerHTML = '<tr><th>operator</th><th class="n">packets</th><th class="n">weights</th><th class="n">worker time</th><th class="n">share</th><th></th></tr>' +
    sorted.map(([op, row]) => line(data.ops[op], row, row.time / all, colour(data.ops[op]), `data-op="${op}"`)).join('') +
    line('idle, waiting', {packets: '', weights: 0, time: idle}, idle / all, '', 'class="total"');
}

function fillPlan() {
  const total = data.memory.reduce((sum, row) => sum + row[1], 0);
  $('plan').innerHTML = data.memory.map(([name, size]) => `<tr><td>${escape(name)}</td><td class="n">${bytes(size)}</td>` +
    `<td class="bar"><i style="width:${size / total * 100}%;background:${css('--accent')}"></i></td></tr>`).join('') +
    `<tr class="total"><td>total</td><td class="n">${bytes(total)}</td><td></td></tr>`;
}

// ---- one packet
function links(packets) {
  const kShown = 24;
  const list = [...new Set(packets)];
  return list.slice(0, kShown).map(p => `<a class="packet" data-packet="${p}">${packetName(p)} ${opOf(p)}</a>`).join(' ') +
    (list.length > kShown ? `<span class="dim"> and ${list.length - kShown} more</span>` : '') || '<span class="dim">nobody</span>';
}
const rowsName = rows => 'the number of ' + ({1: '', T: 'token ', S: 'sample '}[rows] || '') + 'row tiles';
function threshold(wait) {
  const tiles = wait.per_row_tile ? (wait.per_row_tile > 1 ? wait.per_row_tile + ' × ' : '') + rowsName(wait.rows) : '';
  return [tiles, wait.constant || !tiles ? wait.constant : ''].filter(x => x !== '').join(' + ');
}
const counterText = entry => `counter ${entry.counter}${entry.band === 'row' ? ' + row tile' : ''}`;
function tensorText(t) {
  const tensor = P.tensors[t];
  return `<tr><td><code>${escape(tensor.name)}</code></td><td>${tensor.dtype}[${tensor.rows}, ${tensor.cols}]</td>` +
    `<td>${tensor.space}</td><td class="n">${tensor.space === 'step' ? '' : bytes(tensor.bytes)}</td></tr>`;
}

function describe(p) {
  const q = P.packets, node = nodeOf(p);
  const columns = q.col_count[p] === 1 ? `column tile ${q.col_first[p]} of ${q.tile_cols[p]} columns` :
    q.col_count[p] ? `column tiles ${q.col_first[p]} to ${q.col_first[p] + (q.col_count[p] - 1) * q.col_stride[p]}` +
    (q.col_stride[p] > 1 ? ` in steps of ${q.col_stride[p]}` : '') + ` of ${q.tile_cols[p]} columns` : '';
  const rows = q.row_stride[p] === 1 && q.row_first[p] === 0 ? 'all row tiles' : `row tiles ${q.row_first[p]}, ${q.row_first[p] + q.row_stride[p]}, …`;
  const lane = lanes[q.worker[p]], index = p - lane[0];
  const idle = q.start[p] - (index > 0 ? q.end[lane[index - 1]] : 0);
  return {columns, rows, idle,
    title: `<b>${packetName(p)}</b> <span class="swatch" style="background:${colour(opOf(p))}"></span> <b>${opOf(p)}</b> ${layerOf(node)}`};
}

function inspect(p) {
  selected = p;
  if (p < 0) {
    $('inspector').innerHTML = '<p class="dim">Click a packet in the timeline. Its number is PROGRAM:PACKET, as plowc explain why takes it.</p>';
    draw();
    return;
  }
  const q = P.packets, d = describe(p), node = nodeOf(p);
  const waits = waitsOf(p), signals = signalsOf(p);
  $('inspector').innerHTML = `<div>${d.title}</div><div class="dim">${[d.columns, node ? d.rows : ''].filter(Boolean).join('; ')}</div>` +
    `<div>starts at ${ns(q.start[p])}, runs ${ns(q.end[p] - q.start[p])}, after ${ns(Math.max(d.idle, 0))} idle, on worker ${q.worker[p]}</div>` +
    (node ? `<h3>from the operator</h3><code>${escape(node.text)}</code>` : '') +
    (q.operands[p].length ? `<h3>reads, then writes</h3><table>${q.operands[p].map(tensorText).join('')}</table>` : '') +
    waits.map(w => `<h3>waits until ${counterText(w)} is at least ${threshold(w)}; signalled by</h3>${links(signallers(w))}`).join('') +
    (waits.length ? '' : '<h3>waits for no counter: what it reads was made before it on this worker</h3>') +
    (signals.length ? `<h3>signals ${signals.map(counterText).join(', ')}; waited for by</h3>${links(readers[p])}` : '<h3>signals no counter: who reads its output follows on this worker</h3>');
  draw();
}

function show(p) {  // selects, and brings it into view
  const span = view.to - view.from;
  if (P.packets.end[p] < view.from || P.packets.start[p] > view.to) setView(P.packets.start[p] - span / 2, P.packets.start[p] + span / 2);
  inspect(p);
}

function search() {
  const words = $('search').value.toLowerCase().split(/\s+/).filter(Boolean);
  matches = null;
  $('found').textContent = '';
  if (words.length) {
    matches = new Set();
    for (let p = 0; p < P.packets.op.length; ++p) {
      const node = nodeOf(p);
      const text = `${packetName(p)} ${opOf(p)} ${node ? node.text : ''} ${layerOf(node)} ${P.packets.operands[p].map(t => P.tensors[t].name).join(' ')}`.toLowerCase();
      if (words.every(word => text.includes(word))) matches.add(p);
    }
    $('found').textContent = `${matches.size} of ${P.packets.op.length}`;
  }
  draw();
}

// ---- pointer and keys
function setView(from, to) {
  const span = Math.min(Math.max(to - from, P.span / 1e5), P.span);
  const start = Math.min(Math.max(from, 0), P.span - span);
  view = {from: start, to: start + span};
  draw();
}
function packetAt(event) {
  const canvas = $('timeline'), width = canvas.clientWidth;
  const worker = Math.floor(event.offsetY / laneHeight(canvas.clientHeight));
  if (event.offsetX < kLeft || !lanes[worker]) return -1;
  const slack = (view.to - view.from) / width * 2, t = toTime(event.offsetX, width);
  const lane = lanes[worker];
  const p = lane[firstAfter(lane, t)];
  if (p !== undefined && P.packets.start[p] <= t) return p;
  const near = lane[firstAfter(lane, t - slack)];
  return near !== undefined && P.packets.start[near] <= t + slack ? near : -1;
}
function bufferAt(event) {
  const canvas = $('memory'), tall = canvas.clientHeight - kAxis;
  const t = toTime(event.offsetX, canvas.clientWidth), offset = Math.max(0, 1 - event.offsetY / tall) ** 2 * arenaTop();
  return P.buffers.find(b => b.start <= t && t <= b.end && b.offset <= offset && offset < b.offset + b.bytes);
}
function tip(event, html) {
  const box = $('tip');
  box.hidden = !html;
  if (!html) return;
  box.innerHTML = html;
  box.style.left = Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8) + 'px';
  box.style.top = Math.min(event.clientY + 14, innerHeight - box.offsetHeight - 8) + 'px';
}
function packetTip(p) {
  const q = P.packets, d = describe(p), node = nodeOf(p);
  const counters = waitsOf(p).map(w => `${counterText(w)} ≥ ${threshold(w)}`);
  return `${d.title}<div class="dim">${d.columns}</div><div>${ns(q.end[p] - q.start[p])} from ${ns(q.start[p])}</div>` +
    (counters.length ? `<div>waits: ${counters.slice(0, 4).join(', ')}${counters.length > 4 ? ', …' : ''}</div>` : '') +
    (q.operands[p].length ? `<code>${q.operands[p].map(t => escape(P.tensors[t].name)).join(', ')}</code>` : node ? `<code>${escape(node.text)}</code>` : '');
}
function attach(canvas, hover, click) {
  let dragFrom = null, moved = false;
  canvas.addEventListener('pointerdown', e => { dragFrom = {x: e.offsetX, view}; moved = false; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener('pointerup', e => { if (dragFrom && !moved) click(e); dragFrom = null; });
  canvas.addEventListener('pointermove', e => {
    if (!dragFrom) { hover(e); return; }
    const by = (dragFrom.x - e.offsetX) / (canvas.clientWidth - kLeft) * (dragFrom.view.to - dragFrom.view.from);
    if (Math.abs(dragFrom.x - e.offsetX) > 3) moved = true;
    if (moved) { tip(e, ''); setView(dragFrom.view.from + by, dragFrom.view.to + by); }
  });
  canvas.addEventListener('pointerleave', e => { tip(e, ''); hovered = -1; draw(); });
  canvas.addEventListener('wheel', e => {
    e.preventDefault();
    const span = view.to - view.from;
    if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) { setView(view.from + e.deltaX / 800 * span, view.to + e.deltaX / 800 * span); return; }
    const factor = Math.exp(e.deltaY / 400), t = toTime(Math.max(e.offsetX, kLeft), canvas.clientWidth);
    setView(t - (t - view.from) * factor, t + (view.to - t) * factor);
  }, {passive: false});
}
attach($('timeline'), e => {
  const p = packetAt(e);
  if (p !== hovered) { hovered = p; draw(); }
  tip(e, p < 0 ? '' : packetTip(p));
}, e => inspect(packetAt(e)));
attach($('memory'), e => {
  const b = bufferAt(e);
  tip(e, b ? `<b>${bytes(b.bytes)}</b> at offset ${b.offset}<div>alive ${ns(b.start)} to ${ns(b.end)}</div><code>${escape(data.nodes[b.node].text)}</code>` : '');
}, e => {
  const b = bufferAt(e);
  if (b) inspect(P.packets.node.findIndex(node => node === b.node));
});
{
  const strip = $('overview');
  const move = e => {
    const t = (e.offsetX - kLeft) / (strip.clientWidth - kLeft) * P.span, span = view.to - view.from;
    setView(t - span / 2, t + span / 2);
  };
  strip.addEventListener('pointerdown', e => { strip.setPointerCapture(e.pointerId); move(e); });
  strip.addEventListener('pointermove', e => { if (e.buttons) move(e); });
}
document.addEventListener('click', e => {
  const packet = e.target.closest('[data-packet]'), op = e.target.closest('[data-op]');
  if (packet) show(+packet.dataset.packet);
  if (op) { only = only === +op.dataset.op ? null : +op.dataset.op; fillLegend(); draw(); }
});
document.addEventListener('keydown', e => {
  if (e.target.tagName === 'INPUT' || e.target.tagName === 'SELECT') return;
  const span = view.to - view.from;
  if (e.key === '0') setView(0, P.span);
  if (e.key === 'Escape') inspect(-1);
  if (e.key === '+' || e.key === '=') setView(view.from + span / 4, view.to - span / 4);
  if (e.key === '-') setView(view.from - span / 2, view.to + span / 2);
  if (selected >= 0 && (e.key === 'ArrowRight' || e.key === 'ArrowLeft')) {
    const lane = lanes[P.packets.worker[selected]], next = lane[selected - lane[0] + (e.key === 'ArrowRight' ? 1 : -1)];
    if (next !== undefined) show(next);
  }
});
$('search').addEventListener('input', search);
$('search').addEventListener('keydown', e => { if (e.key === 'Enter' && matches && matches.size) show([...matches].find(p => p > selected) ?? [...matches][0]); });
$('program').addEventListener('change', e => openProgram(+e.target.value));
$('fit').addEventListener('click', () => setView(0, P.span));
function paint() { fillLegend(); fillOperators(); fillPlan(); inspect(selected); }
$('theme').addEventListener('click', () => { document.documentElement.classList.toggle('dark'); paint(); });
addEventListener('resize', resize);

const model = data.model;
document.title = `${model.name} - plow schedule`;
$('title').textContent = model.name;
$('facts').textContent = `${model.architecture ? model.architecture + ' ' : ''}on ${model.isa}, ${model.workers} workers, ${model.layers} layers, context ${model.max_context}, ${model.max_slots} slots`;
$('program').innerHTML = data.programs.map((p, i) => `<option value="${i}">${i}: up to ${p.max_rows} row${p.max_rows > 1 ? 's' : ''}, ${p.packets.op.length} packets, ${ns(p.predicted_ns)}</option>`).join('');
// The fragment chooses what is shown first: #dark, #light, #packet=INDEX, #zoom=FROM,TO (shares of the step).
const wish = new URLSearchParams(location.hash.slice(1));
if (wish.has('dark') || (!wish.has('light') && matchMedia('(prefers-color-scheme: dark)').matches)) document.documentElement.classList.add('dark');
openProgram(0);
fillPlan();
if (wish.has('zoom')) { const [a, b] = wish.get('zoom').split(',').map(Number); setView(a * P.span, b * P.span); }
if (wish.has('packet')) show(+wish.get('packet'));
