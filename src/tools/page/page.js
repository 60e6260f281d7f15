"use strict";
const run = JSON.parse(document.getElementById("run").textContent);
const sum = run.sum;
const $ = (id) => document.getElementById(id);

// Words and numbers ---------------------------------------------------------------------------------------------------

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (n >= 1024 && unit + 1 < units.length) { n /= 1024; unit++; }
  return (unit === 0 ? n.toFixed(0) : n < 10 ? n.toFixed(1) : n.toFixed(0)) + " " + units[unit];
}
function seconds(s) {
  if (s >= 100) return s.toFixed(0) + " s";
  if (s >= 1) return s.toFixed(2) + " s";
  if (s >= 0.001) return (s * 1e3).toFixed(s < 0.01 ? 1 : 0) + " ms";
  return s === 0 ? "0 s" : (s * 1e6).toFixed(0) + " µs";
}
const count = (n, thing) => `${n.toLocaleString("en")} ${thing}${n === 1 ? "" : "s"}`;
const percent = (part, whole) => (whole > 0 ? `${Math.round((100 * part) / whole)} %` : "–");

/** An element: make("td", {class: "n"}, "text", child, …). Text is never taken for HTML. */
function make(name, attributes, ...children) {
  const svg = name === "svg" || name === "circle";
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}
function table(heads, rows) {
  const numeric = (i) => (heads[i].startsWith(">") ? { class: "n" } : {});
  const head = make("tr", {}, ...heads.map((text, i) => make("th", numeric(i), text.replace(/^>/, ""))));
  const body = rows.map((row) => make("tr", {}, ...row.map((cell, i) => make("td", numeric(i), cell))));
  return make("div", { class: "scroll" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)));
}
const dot = (color) => make("span", { class: "dot", style: `--c:var(${color})` });

// The head ------------------------------------------------------------------------------------------------------------

const waitPlaces = {
  flush: "flushes", close: "closes", request: "event sets", arena: "room in the arena", filter: "filters of chunks",
  read: "reads", open: "opens", write: "synchronous writes", exit: "the end", other: "elsewhere",
};
const processes = run.processes.map((p) => p.summary);
const longest = Math.max(...processes.map((p) => p.run_seconds));
const waitsOf = (summary) => Object.values(summary.waits).reduce((all, wait) => all + (wait.seconds || 0), 0);
const waited = waitsOf(sum);
const storage = sum.overlap.storage_seconds, hidden = sum.overlap.hidden_seconds;
const deferred = sum.written.asynchronous.bytes, synchronous = sum.written.synchronous.bytes;

function verdict() {
  let head, rest;
  const share = storage > 0 ? hidden / storage : 0;
  if (storage === 0) {
    head = deferred + synchronous === 0 ? "Nothing was written" : "Nothing was written in the background";
    rest = synchronous > 0 ? "All of it was written while the program waited: see below for the reasons." : "";
  } else {
    const much = waited > 0.15 * sum.run_seconds;
    const all = processes.length === 1 ? "its" : "its processes'";
    head = much ? `The program waited for ${percent(waited, sum.run_seconds)} of ${all} time`
      : `${percent(hidden, storage)} of storage's work was hidden`;
    rest = `Storage was at work for ${seconds(storage)}; in ${seconds(hidden)} of that nobody waited. `;
    rest += share > 0.9 && !much ? "The program went on as if storage cost nothing."
      : `The program waited ${seconds(waited)} of ${seconds(sum.run_seconds)}.`;
    if (much && run.advice.length > 0) rest += " There is advice below.";
  }
  $("verdict").append(make("h1", {}, head), make("p", {}, rest));
  $("command").textContent = run.command;
  document.title = run.command ? `${run.command} – tidelane` : "tidelane";
  const who = processes.length === 1 ? `process ${processes[0].tidelane.pid}` : `${processes.length} processes`;
  $("made").textContent = `${who} · page made ${run.made} by tidelane ${run.version}`;
}

function donut(part, color) {
  const around = 2 * Math.PI * 26;
  const ring = (extra) => make("circle", { cx: 32, cy: 32, r: 26, ...extra });
  return make("svg", { class: "donut", viewBox: "0 0 64 64", "aria-hidden": "true" },
    ring({ stroke: "var(--soft)" }),
    ring({ stroke: `var(${color})`, "stroke-dasharray": `${around * part} ${around}`, transform: "rotate(-90 32 32)" }));
}
function card(label, value, under, graphic) {
  const words = make("div", {}, make("div", { class: "label" }, label), make("div", { class: "value" }, value),
    make("div", { class: "under" }, under));
  $("cards").append(make("div", { class: "card" }, graphic, words));
}
function cards() {
  const all = deferred + synchronous;
  card("run", seconds(longest), processes.length === 1 ? count(sum.counters.files_opened, "file") + " opened"
    : `${processes.length} processes, ${count(sum.counters.files_opened, "file")} opened`);
  if (storage > 0) card("hidden", percent(hidden, storage), `of ${seconds(storage)} on storage`, donut(hidden / storage, "--lane"));
  if (all > 0) card("asynchronous", bytes(deferred), `${percent(deferred, all)} of ${bytes(all)}`, donut(deferred / all, "--write"));
  const share = sum.run_seconds > 0 ? Math.min(waited / sum.run_seconds, 1) : 0;
  card("waited", seconds(waited), `${percent(waited, sum.run_seconds)} of the program's time`, donut(share, "--wait"));
  if (sum.merged.requests_out > 0) {
    card("merged", count(sum.merged.writes_in, "write"), `into ${count(sum.merged.requests_out, "request")}`);
  }
}
function problems() {
  const wrong = sum.problems, list = [];
  if (wrong.count > 0) list.push(`${count(wrong.count, "write")} failed. First: ${wrong.first}`);
  const names = (files) => files.files.filter((name) => name).join(", ");
  if (wrong.not_stored.count > 0) list.push(`Not stored, so damaged: ${names(wrong.not_stored)}`);
  if (wrong.not_closed.count > 0) list.push(`Never closed by the program: ${names(wrong.not_closed)}`);
  if (run.timeline && run.timeline.lost > 0) list.push(`The timeline was too long: its first ${count(run.timeline.lost, "span")} are lost`);
  if (list.length === 0) return;
  $("problems").hidden = false;
  $("problems").className = "card bad";
  $("problems").append(make("h2", {}, "What went wrong"), make("ul", {}, ...list.map((text) => make("li", {}, text))));
}

// Tables --------------------------------------------------------------------------------------------------------------

function timeSpent() {
  const shades = ["--wait", "--read", "--through", "--write", "--gap"];
  const places = Object.entries(sum.waits).filter(([, wait]) => wait.times > 0).sort((a, b) => b[1].seconds - a[1].seconds);
  const own = Math.max(sum.run_seconds - waited, 0);
  const parts = [["the program itself", own, "", "--program"]];
  places.forEach(([place, wait], i) => {
    parts.push([`waited for ${waitPlaces[place] || place}`, wait.seconds, wait.times.toLocaleString("en"), shades[Math.min(i, 4)]]);
  });
  const all = parts.reduce((total, part) => total + part[1], 0) || 1;
  const bar = make("div", { class: "bar" });
  for (const [name, s, , color] of parts) {
    bar.append(make("div", { style: `width:${(100 * s) / all}%;background:var(${color})`, title: `${name}: ${seconds(s)}` }));
  }
  const label = (color, text) => make("span", {}, dot(color), text);
  const rows = parts.map(([name, s, times, color]) => [label(color, name), seconds(s), percent(s, all), times]);
  $("time").append(bar, table(["", ">time", ">share", ">times"], rows));
}
function advice() {
  const list = run.advice.length > 0 ? run.advice.map((text) => make("li", {}, text))
    : [make("li", { class: "good" }, "No setting would make a difference that matters.")];
  $("advice").append(make("ul", {}, ...list));
}
function fallbacks() {
  const reasons = new Map();
  for (const summary of processes) {
    for (const reason of summary.written.synchronous.reasons || []) {
      const known = reasons.get(reason.reason) || { ...reason, count: 0, bytes: 0 };
      known.count += reason.count;
      known.bytes += reason.bytes;
      reasons.set(reason.reason, known);
    }
  }
  if (reasons.size === 0) {
    return $("fallbacks").append(make("ul", {}, make("li", { class: "good" }, "Nothing: everything was asynchronous.")));
  }
  const rows = [...reasons.values()].sort((a, b) => b.bytes - a.bytes).map((reason) => [
    reason.bytes > 0 ? bytes(reason.bytes) : "–",
    count(reason.count, reason.unit === "process" ? "time" : reason.unit),
    make("span", {}, reason.text, make("span", { class: "key" }, `  ${reason.reason}`)),
  ]);
  $("fallbacks").append(table([">bytes", ">how often", "why"], rows));
}
function ranks() {
  if (processes.length < 2) return;
  $("processes").hidden = false;
  const rows = run.processes.map(({ rank, summary }) => [
    rank >= 0 ? String(rank) : "–", String(summary.tidelane.pid), seconds(summary.run_seconds),
    bytes(summary.written.asynchronous.bytes), bytes(summary.written.synchronous.bytes), seconds(waitsOf(summary)),
    percent(summary.overlap.hidden_seconds, summary.overlap.storage_seconds), String(summary.problems.count),
  ]);
  $("ranks").append(table([">rank", ">process", ">run", ">asynchronous", ">synchronous", ">waited", ">hidden", ">errors"], rows));
}
function settings() {
  const rows = (list) => table(["setting", "value", "from"], list.map((s) => [
    make("code", {}, s.name), make("code", {}, s.value), s.note ? `${s.origin}: ${s.note}` : s.origin]));
  const list = processes[0].settings || [];
  const changed = list.filter((s) => s.origin !== "default" && s.name !== "summary" && s.name !== "trace");
  $("settings").append(changed.length > 0 ? rows(changed) : make("p", { class: "faint" }, "All have their defaults."));
  $("settings").append(make("details", { class: "inner" }, make("summary", {}, "all settings"), rows(list)));
}
function counters() {
  const grid = make("div", { class: "grid" });
  for (const [name, value] of Object.entries(sum.counters)) {
    const text = name.endsWith("_ns") ? seconds(value / 1e9) : name.includes("bytes") ? bytes(value) : value.toLocaleString("en");
    grid.append(make("div", value === 0 ? { class: "zero" } : {}, make("code", {}, name.replace(/_ns$/, "")), make("span", {}, text)));
  }
  $("counters").append(grid);
}

/** What the cost model expected of the epochs, and what they took (docs/summary.md, `model`). */
function predictions() {
  const readers = processes.map((summary) => summary.model && summary.model.reads).filter((reads) => reads && reads.epochs > 0);
  const models = processes.map((summary) => summary.model).filter((model) => model && model.epochs > 0);
  if (models.length + readers.length === 0) return;
  $("predictions").hidden = false;
  if (readers.length > 0) $("predicted").append(make("p", { class: "faint" }, readingWords(readers)));
  if (models.length === 0) return;
  const epochs = models.flatMap((model) => model.decisions || []);
  const total = models.reduce((all, model) => all + model.epochs, 0);
  const known = models.filter((model) => model.forecasts > 0);
  const errors = known.map((model) => Math.round(100 * model.forecast_error));
  const words = `${count(total, "epoch")}: an I/O phase and the computation after it. ` + (errors.length === 0 ? ""
    : `What was expected of them is off by ${between(errors)} % on average.`);
  const last = epochs.slice(-40), most = Math.max(...last.map(longer), 1e-9);
  const rows = last.map((epoch) => {
    const expected = epoch.expected, other = expected && (epoch.mode === "async" ? expected.sync : expected.async);
    const off = expected && !epoch.last && epoch.seconds > 0 ? Math.round((100 * (expected.chosen - epoch.seconds)) / epoch.seconds) : null;
    return [String(epoch.epoch), bytes(epoch.bytes), make("span", {}, dot(epoch.mode === "async" ? "--lane" : "--through"), epoch.mode),
      expectation(epoch, most), seconds(epoch.seconds), expected ? seconds(expected.chosen) : "–",
      epoch.last ? "the last" : off === null ? "–" : `${off > 0 ? "+" : ""}${off} %`, expected ? seconds(other) : "–"];
  });
  $("predicted").append(make("p", { class: "faint" }, words),
    table([">epoch", ">bytes", "mode", "measured, and expected (line)", ">measured", ">expected", ">off", ">other mode"], rows));
}
function readingWords(readers) {
  const sum = (key) => readers.reduce((all, reads) => all + reads[key], 0);
  const errors = readers.filter((reads) => reads.forecasts > 0).map((reads) => Math.round(100 * reads.forecast_error));
  return `${count(sum("epochs"), "epoch")} of reading, ${sum("asynchronous")} of them brought by lanes.`
    + (errors.length === 0 ? "" : ` What was expected of them is off by ${between(errors)} % on average.`);
}
const between = (errors) => `${Math.min(...errors)}${errors.length > 1 ? ` to ${Math.max(...errors)}` : ""}`;
const longer = (epoch) => Math.max(epoch.seconds, epoch.expected ? epoch.expected.chosen : 0);
function expectation(epoch, most) {
  const bar = make("div", { class: "bar slim", style: "width:180px;position:relative" },
    make("div", { style: `width:${(100 * epoch.seconds) / most}%;background:var(${epoch.mode === "async" ? "--lane" : "--through"})` }));
  if (epoch.expected) bar.append(make("i", { style: `left:calc(${(100 * epoch.expected.chosen) / most}% - 2px)` }));
  return bar;
}

// The timeline --------------------------------------------------------------------------------------------------------

const kindColors = { write: "--write", "write through": "--through", read: "--read", pwrite: "--lane", "gap read": "--gap", "GPU copy": "--write" };
const kindWords = {
  write: "copies a write", "write through": "writes itself", read: "reads storage", pwrite: "lane writes to storage",
  "gap read": "lane reads to fill gaps", "GPU copy": "copies from or to a GPU", "wait": "waits elsewhere",
};
const isEpoch = (kind) => kind.startsWith("epoch");
const colorOf = (kind) => isEpoch(kind) ? "--faint" : kindColors[kind] || (kind.includes("wait") ? "--wait" : "--read");
const wordsFor = (kind) => kindWords[kind] || (kind.endsWith(" wait") ? `waits: ${kind.slice(0, -5)}` : kind);

class Timeline {
  constructor(data) {
    this.data = data;
    this.all = data.seconds * 1e6;
    this.from = 0;
    this.to = this.all;
    this.left = 128;
    this.canvas = $("canvas");
    this.rows = this.layOut();
    this.listen();
    this.draw();
  }
  /** Where each track is drawn; heads before the tracks of each process where there are several. */
  layOut() {
    const rows = [], several = new Set(this.data.tracks.map((track) => track.pid)).size > 1;
    let y = 8, pid = null;
    for (const track of this.data.tracks) {
      if (several && track.pid !== pid) {
        y += pid === null ? 0 : 8;
        rows.push({ head: track.rank >= 0 ? `rank ${track.rank}` : `process ${track.pid}`, y, height: 20 });
        y += 20;
      }
      pid = track.pid;
      const height = track.lane ? 18 : 26;
      rows.push({ track, y, height });
      y += height + 5;
    }
    for (const [key, title] of [["stored", "storage, per s"], ["waiting", "in memory"]]) {
      y += 10;
      rows.push({ curve: key, title, y, height: 44 });
      y += 44;
    }
    this.bottom = y + 6;
    this.height = y + 32;
    return rows;
  }
  color(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
  x(us) { return this.left + ((us - this.from) / (this.to - this.from)) * (this.width - this.left); }
  us(x) { return this.from + ((x - this.left) / (this.width - this.left)) * (this.to - this.from); }

  draw() {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.parentElement.clientWidth;
    this.canvas.style.height = `${this.height}px`;
    this.canvas.width = this.width * ratio;
    this.canvas.height = this.height * ratio;
    const g = (this.g = this.canvas.getContext("2d"));
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, this.width, this.height);
    this.colors = {};
    for (const name of ["--program", "--write", "--wait", "--through", "--read", "--lane", "--gap", "--ink", "--faint", "--line", "--soft"]) {
      this.colors[name] = this.color(name);
    }
    this.drawAxis();
    for (const row of this.rows) {
      if (row.head) this.label(row.head, row.y + 10, "--ink", "600 12px system-ui, sans-serif", true);
      else if (row.curve) this.drawCurve(row);
      else this.drawTrack(row);
    }
    if (this.selection) {
      g.fillStyle = this.colors["--ink"];
      g.globalAlpha = 0.12;
      g.fillRect(Math.min(...this.selection), 0, Math.abs(this.selection[1] - this.selection[0]), this.bottom);
      g.globalAlpha = 1;
    }
  }
  label(text, y, color = "--faint", font = "12px system-ui, sans-serif", left = false) {
    this.g.fillStyle = this.colors[color];
    this.g.font = font;
    this.g.textBaseline = "middle";
    this.g.textAlign = left ? "left" : "right";
    this.g.fillText(text, left ? 0 : this.left - 12, y);
  }
  drawAxis() {
    const g = this.g, span = (this.to - this.from) / 1e6;
    const rough = span / Math.max((this.width - this.left) / 110, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
    g.strokeStyle = this.colors["--line"];
    g.fillStyle = this.colors["--faint"];
    g.font = "12px system-ui, sans-serif";
    g.textBaseline = "top";
    for (let at = Math.ceil(this.from / 1e6 / step) * step; at <= this.to / 1e6 + 1e-12; at += step) {
      const x = Math.round(this.x(at * 1e6)) + 0.5;
      g.beginPath();
      g.moveTo(x, 0);
      g.lineTo(x, this.bottom);
      g.stroke();
      g.textAlign = x > this.width - 30 ? "right" : "center";
      g.fillText(at === 0 ? "0" : this.to < 1e4 ? `${(at * 1e6).toFixed(0)} µs` : this.to < 1e6 ? `${+(at * 1e3).toFixed(2)} ms` : `${+at.toFixed(5)} s`, x, this.bottom + 6);
    }
  }
  drawTrack({ track, y, height }) {
    const g = this.g;
    this.label(track.name, y + height / 2);
    g.fillStyle = this.colors[track.lane ? "--soft" : "--program"];
    g.fillRect(this.left, y, this.width - this.left, height);
    // Spans that share a pixel are drawn once: the later ones in the list win where they are longer.
    const spans = track.spans, kinds = this.data.kinds;
    for (let i = 0; i < spans.length; i += 5) {
      const begin = spans[i + 1], end = begin + spans[i + 2];
      if (end < this.from || begin > this.to) continue;
      if (isEpoch(kinds[spans[i]])) { this.drawEpoch(begin, end, y + height); continue; }
      const x = Math.max(this.x(begin), this.left);
      g.fillStyle = this.colors[colorOf(kinds[spans[i]])];
      g.fillRect(x, y, Math.max(Math.min(this.x(end), this.width) - x, 0.75), height);
    }
  }
  /** A bracket under the track: an I/O phase and the computation after it. */
  drawEpoch(begin, end, y) {
    const left = Math.max(this.x(begin), this.left) + 0.5, right = Math.min(this.x(end), this.width) - 1.5;
    if (right - left < 3) return;
    this.g.strokeStyle = this.colors["--faint"];
    this.g.beginPath();
    this.g.moveTo(left, y - 1);
    this.g.lineTo(left, y + 2.5);
    this.g.lineTo(right, y + 2.5);
    this.g.lineTo(right, y - 1);
    this.g.stroke();
  }
  drawCurve({ curve, title, y, height }) {
    const g = this.g, values = this.data[curve], most = Math.max(...values, 1), bin = this.all / values.length;
    const rate = curve === "stored" ? `${bytes((most / bin) * 1e6)}/s` : bytes(most);
    this.label(title, y + height / 2 - 8);
    this.label(`up to ${rate}`, y + height / 2 + 8);
    g.save();
    g.beginPath();
    g.rect(this.left, y, this.width - this.left, height + 1);
    g.clip();
    g.beginPath();
    g.moveTo(this.x(0), y + height);
    values.forEach((value, i) => {
      const top = y + height - (value / most) * (height - 2);
      g.lineTo(this.x(i * bin), top);
      g.lineTo(this.x((i + 1) * bin), top);
    });
    g.lineTo(this.x(this.all), y + height);
    g.closePath();
    g.fillStyle = this.colors[curve === "stored" ? "--lane" : "--write"];
    g.globalAlpha = 0.3;
    g.fill();
    g.globalAlpha = 1;
    g.restore();
    g.strokeStyle = this.colors["--line"];
    g.beginPath();
    g.moveTo(this.left, y + height + 0.5);
    g.lineTo(this.width, y + height + 0.5);
    g.stroke();
  }

  /** The span under the pointer, or nearest within three pixels. */
  at(x, y) {
    const row = this.rows.find((r) => y >= r.y && y < r.y + r.height);
    if (!row || !row.track || x < this.left) return row && row.curve ? { row } : null;
    const spans = row.track.spans, us = this.us(x), near = this.us(x + 3) - us;
    let best = null, distance = near;
    for (let i = 0; i < spans.length; i += 5) {
      if (isEpoch(this.data.kinds[spans[i]])) continue;
      const away = Math.max(spans[i + 1] - us, us - spans[i + 1] - spans[i + 2], 0);
      if (away < distance || (away === 0 && distance === 0)) { best = i; distance = away; }
    }
    return { row, span: best };
  }
  tipFor({ row, span }, x) {
    if (row.curve) {
      const values = this.data[row.curve], bin = this.all / values.length;
      const value = values[Math.min(Math.max(Math.floor(this.us(x) / bin), 0), values.length - 1)];
      return [row.curve === "stored" ? `${bytes((value / bin) * 1e6)}/s to storage` : `${bytes(value)} waiting in memory`, ""];
    }
    if (span === null) return [row.track.lane ? "idle" : "the program runs", row.track.name];
    const [kind, begin, duration, size, times] = row.track.spans.slice(span, span + 5);
    const what = times > 1 ? `${times} times in` : "for";
    return [wordsFor(this.data.kinds[kind]), `${what} ${seconds(duration / 1e6)} at ${(begin / 1e6).toFixed(4)} s` + (size ? `, ${bytes(size)}` : "")];
  }
  showTip(event) {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const found = this.at(x, y), tip = $("tip");
    tip.hidden = !found;
    if (!found) return;
    const [head, rest] = this.tipFor(found, x);
    tip.replaceChildren(make("b", {}, head), ...(rest ? [make("br"), rest] : []));
    tip.style.left = `${Math.min(x + 14, this.width - tip.offsetWidth - 4)}px`;
    tip.style.top = `${y + 16}px`;
  }
  look(from, to) {
    const least = Math.max(this.all / 1e6, 5);
    if (to - from < least) { const middle = (from + to) / 2; from = middle - least / 2; to = middle + least / 2; }
    this.from = Math.max(0, Math.min(from, this.all - least));
    this.to = Math.min(this.all, Math.max(to, this.from + least));
    this.draw();
  }
  zoom(factor, us) { this.look(us - (us - this.from) * factor, us + (this.to - us) * factor); }
  listen() {
    const canvas = this.canvas, xOf = (event) => Math.max(event.clientX - canvas.getBoundingClientRect().left, this.left);
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); this.selection = [xOf(event), xOf(event)]; });
    canvas.addEventListener("pointermove", (event) => {
      this.showTip(event);
      if (this.selection) { this.selection[1] = xOf(event); this.draw(); }
    });
    canvas.addEventListener("pointerup", () => {
      const selection = this.selection;
      this.selection = null;
      if (selection && Math.abs(selection[1] - selection[0]) > 4) this.look(this.us(Math.min(...selection)), this.us(Math.max(...selection)));
      else this.draw();
    });
    canvas.addEventListener("pointerleave", () => { $("tip").hidden = true; });
    canvas.addEventListener("dblclick", () => this.look(0, this.all));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.us(xOf(event)));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const step = (this.to - this.from) / 8, middle = (this.from + this.to) / 2;
      const moves = { ArrowLeft: [-step, -step], ArrowRight: [step, step] };
      if (moves[event.key]) this.look(this.from + moves[event.key][0], this.to + moves[event.key][1]);
      else if (event.key === "+" || event.key === "=") this.zoom(0.7, middle);
      else if (event.key === "-") this.zoom(1.4, middle);
      else if (event.key === "0" || event.key === "Escape") this.look(0, this.all);
    });
    window.addEventListener("resize", () => this.draw());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }
}
function legend(data) {
  const seen = new Map();
  if (data.tracks.some((track) => !track.lane)) seen.set("the program runs", "--program");
  for (const kind of data.kinds.filter((name) => !isEpoch(name))) seen.set(kind.includes("wait") ? "waits for Tidelane" : wordsFor(kind), colorOf(kind));
  $("legend").append(...[...seen].map(([words, color]) => make("span", { style: `--c:var(${color})` }, words)));
}

verdict();
problems();
cards();
timeSpent();
advice();
fallbacks();
predictions();
ranks();
settings();
counters();
let timeline = null;
if (run.timeline) {
  $("timeline").hidden = false;
  legend(run.timeline);
  $("canvas").setAttribute("aria-label", `Timeline of ${run.timeline.tracks.length} threads over ${seconds(run.timeline.seconds)}`);
  timeline = new Timeline(run.timeline);
}
$("theme").addEventListener("click", () => {
  const root = document.documentElement, dark = root.dataset.theme ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  if (timeline) timeline.draw();
});
