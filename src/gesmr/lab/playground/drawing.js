// Canvases: the map with a population on it, the strip of rates, the curves of values.
const Drawing = (() => {
  "use strict";
  const numbers = (text, Kind) => {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    return new Kind(bytes.buffer);
  };

  // A run as it came, with its arrays unpacked
  const unpackRun = (run) => {
    const [frames, members, rates] = run.shape;
    const unpacked = { ...run, frames, size: members, width: rates };
    unpacked.members = numbers(run.members, Float32Array);
    unpacked.parents = numbers(run.parents, Uint16Array);
    unpacked.rates = numbers(run.rates, Float32Array);
    return unpacked;
  };
  const unpackLandscape = (landscape) => ({ ...landscape, shades: numbers(landscape.shades, Uint8Array), drawn: new Map() });

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const dark = () => document.documentElement.dataset.theme === "dark";
  const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  // In the dark all colours are lightened by as much as makes the darkest of them legible
  const ink = (hex) => {
    if (!dark()) return hex;
    const mixed = rgb(hex).map((part) => Math.round(part + (255 - part) * 0.28));
    return `rgb(${mixed.join()})`;
  };

  // A canvas fitted to its element, in units of CSS pixels; null if it is not shown
  const fitted = (canvas) => {
    const { width, height } = canvas.getBoundingClientRect();
    if (!width || !height) return null;
    const ratio = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    return { context, width, height };
  };

  // The landscape as an image, once for every theme: bands of shade
  const BANDS = 14;
  const image = (landscape) => {
    const theme = dark() ? "dark" : "light";
    if (landscape.drawn.has(theme)) return landscape.drawn.get(theme);
    const { pixels, shades } = landscape;
    const [low, high] = [rgb(css("--map-low")), rgb(css("--map-high"))];
    const canvas = Object.assign(document.createElement("canvas"), { width: pixels, height: pixels });
    const context = canvas.getContext("2d");
    const data = context.createImageData(pixels, pixels);
    for (let i = 0; i < shades.length; i++) {
      const part = Math.floor((shades[i] / 256) * BANDS) / (BANDS - 1);
      for (let c = 0; c < 3; c++) data.data[4 * i + c] = low[c] + (high[c] - low[c]) * part;
      data.data[4 * i + 3] = 255;
    }
    context.putImageData(data, 0, 0);
    landscape.drawn.set(theme, canvas);
    return canvas;
  };

  const star = (context, x, y, radius) => {
    context.beginPath();
    for (let i = 0; i < 10; i++) {
      const [angle, r] = [(Math.PI * i) / 5 - Math.PI / 2, i % 2 ? radius * 0.45 : radius];
      context.lineTo(x + r * Math.cos(angle), y + r * Math.sin(angle));
    }
    context.closePath();
  };

  // The population of a frame on the landscape; returns how many members are outside of it
  const map = (canvas, landscape, run, frame, colour) => {
    const fit = fitted(canvas);
    if (!fit) return 0;
    const { context, width, height } = fit;
    context.imageSmoothingEnabled = true;
    context.imageSmoothingQuality = "high";
    context.drawImage(image(landscape), 0, 0, width, height);
    const { centre, half, optimum } = landscape;
    const px = (x) => ((x - centre[0]) / half + 1) * 0.5 * width;
    const py = (y) => (1 - (y - centre[1]) / half) * 0.5 * height;
    const { size, members, parents } = run;
    const at = (t, i) => [px(members[2 * (t * size + i)]), py(members[2 * (t * size + i) + 1])];
    const inside = ([x, y]) => x >= 0 && x <= width && y >= 0 && y <= height;
    const [own, halo] = [ink(colour), css("--halo")];
    const dot = Math.max(2.2, Math.min(3.6, width / 130));
    if (frame > 0) {
      context.strokeStyle = own;
      context.globalAlpha = 0.28;
      context.lineWidth = 1;
      context.beginPath();
      for (let i = 1; i < size; i++) {
        const [from, to] = [at(frame - 1, parents[(frame - 1) * size + i]), at(frame, i)];
        if (!inside(from) && !inside(to)) continue;
        context.moveTo(...from);
        context.lineTo(...to);
      }
      context.stroke();
      context.globalAlpha = 1;
    }
    const chosen = new Set(parents.subarray(frame * size, (frame + 1) * size));
    let outside = 0;
    for (const filled of [false, true]) {
      for (let i = 0; i < size; i++) {
        if (chosen.has(i) !== filled) continue;
        const [x, y] = at(frame, i);
        if (!inside([x, y])) {
          outside += 1;
          continue;
        }
        context.beginPath();
        context.arc(x, y, dot, 0, 2 * Math.PI);
        context.fillStyle = filled ? own : halo;
        context.globalAlpha = filled ? 0.95 : 0.7;
        context.fill();
        context.lineWidth = filled ? 0.8 : 1.2;
        context.strokeStyle = filled ? halo : own;
        context.stroke();
      }
    }
    context.globalAlpha = 1;
    if (optimum) {
      const [x, y] = [px(optimum[0]), py(optimum[1])];
      for (const [style, line] of [[halo, 4], [css("--optimum"), 1.6]]) {
        context.strokeStyle = style;
        context.lineWidth = line;
        context.beginPath();
        for (const turn of [1, -1]) {
          context.moveTo(x - 6, y - 6 * turn);
          context.lineTo(x + 6, y + 6 * turn);
        }
        context.stroke();
      }
    }
    const best = at(frame, parents[frame * size]);
    if (inside(best)) {
      star(context, ...best, 8);
      context.fillStyle = own;
      context.strokeStyle = halo;
      context.lineWidth = 3;
      context.lineJoin = "round";
      context.stroke();
      context.fill();
    }
    return outside;
  };

  const SUPERSCRIPTS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
  const power = (part, exponent) => {
    if (exponent >= -2 && exponent <= 3) return String(Number((part * 10 ** exponent).toPrecision(1)));
    return `${part > 1 ? `${part}·` : ""}10${[...String(exponent)].map((c) => SUPERSCRIPTS[c]).join("")}`;
  };
  // Powers of ten; within less than two decades also twice and five times each
  const decades = (low, high, most) => {
    const step = Math.max(1, Math.ceil((high - low) / most));
    const ticks = [];
    for (let e = Math.floor(low / step) * step; e <= high; e += step) {
      for (const part of high - low < 2 ? [1, 2, 5] : [1]) ticks.push([e + Math.log10(part), power(part, e)]);
    }
    return ticks.filter(([value]) => value >= low && value <= high);
  };
  const plain = (low, high, most) => {
    const raw = (high - low) / most;
    const size = 10 ** Math.floor(Math.log10(raw));
    const step = size * ([1, 2, 5, 10].find((s) => s * size >= raw) ?? 10);
    const ticks = [];
    for (let v = Math.ceil(low / step) * step; v <= high + step / 1e6; v += step) ticks.push([v, String(Number(v.toPrecision(6)))]);
    return ticks;
  };

  // Axes for generations 0 … last and y from low to high, under a title; x and y give pixels
  const LEFT = 40;
  const axes = (canvas, last, [low, high], ticks, title = "") => {
    const fit = fitted(canvas);
    if (!fit) return null;
    const { context, width, height } = fit;
    const box = { left: LEFT, right: width - 6, top: title ? 22 : 6, bottom: height - 20 };
    const x = (t) => box.left + ((box.right - box.left) * t) / Math.max(last, 1);
    const y = (v) => box.bottom - ((box.bottom - box.top) * (v - low)) / (high - low || 1);
    context.font = `11px ${css("--sans")}`;
    context.fillStyle = css("--muted");
    context.strokeStyle = css("--grid");
    context.lineWidth = 1;
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const [value, text] of ticks) {
      context.beginPath();
      context.moveTo(box.left, y(value));
      context.lineTo(box.right, y(value));
      context.stroke();
      context.fillText(text, box.left - 6, y(value));
    }
    context.textBaseline = "alphabetic";
    context.textAlign = "left";
    context.fillText(title, 0, 11);
    for (const [value, text] of plain(0, Math.max(last, 1), Math.max(2, Math.floor(width / 110)))) {
      if (value !== Math.round(value)) continue;
      context.textAlign = value === 0 ? "left" : x(value) > box.right - 12 ? "right" : "center";
      context.fillText(value === 0 ? "0 generation" : text, x(value), height - 5);
    }
    return { context, x, y, box };
  };
  const cursor = ({ context, x, box }, frame) => {
    context.strokeStyle = css("--ink");
    context.globalAlpha = 0.55;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x(frame), box.top);
    context.lineTo(x(frame), box.bottom);
    context.stroke();
    context.globalAlpha = 1;
  };
  // A line of points, bright up to the frame and faint after it
  const trail = ({ context, x, y }, points, frame, last, colour, { first = 0, dashes = [], thickness = 2.2 } = {}) => {
    context.setLineDash(dashes.map((length) => 1.6 * length));
    for (const [from, to, alpha] of [[first, frame, 1], [Math.max(first, frame), last, 0.25]]) {
      context.beginPath();
      for (let t = from; t <= to; t++) context.lineTo(x(t), y(points(t)));
      context.strokeStyle = colour;
      context.globalAlpha = alpha;
      context.lineWidth = thickness;
      context.lineJoin = "round";
      context.stroke();
    }
    context.setLineDash([]);
    context.globalAlpha = 1;
  };
  const disc = ({ context, x, y }, frame, value, colour) => {
    context.beginPath();
    context.arc(x(frame), y(value), 4, 0, 2 * Math.PI);
    context.fillStyle = colour;
    context.strokeStyle = css("--halo");
    context.lineWidth = 2;
    context.stroke();
    context.fill();
  };

  // Every rate as a dot; the elites among them, or the only one, as lines
  const rates = (canvas, run, frame, range, colour) => {
    const last = run.frames - 1;
    const plot = axes(canvas, last, range, decades(...range, 5), "mutation rate");
    if (!plot) return;
    const { context, x, y } = plot;
    const own = ink(colour);
    const lines = run.width === 1 ? [0] : run.elites;
    context.fillStyle = own;
    const radius = run.width > 30 ? 1 : 1.5;
    for (let t = 0; t < run.frames && run.width > 1; t++) {
      context.globalAlpha = (run.width > 30 ? 0.16 : 0.45) * (t <= frame ? 1 : 0.3);
      for (let i = 0; i < run.width; i++) {
        context.beginPath();
        context.arc(x(t), y(run.rates[t * run.width + i]), radius, 0, 2 * Math.PI);
        context.fill();
      }
    }
    context.globalAlpha = 1;
    cursor(plot, frame);
    const first = run.width === 1 ? 0 : 1; // before the first generation no rate has done best
    for (const [shade, thickness] of [[css("--paper"), 5], [own, 2.2]]) {
      for (const i of lines) trail(plot, (t) => run.rates[t * run.width + i], frame, last, shade, { first, thickness });
    }
    for (const i of frame < first ? [] : lines) disc(plot, frame, run.rates[frame * run.width + i], own);
  };

  // Names beside the discs, one below the other where these are too close
  const names = ({ context, x, y, box }, frame, named) => {
    const side = x(frame) < box.right - 90 ? 1 : -1;
    context.textAlign = side > 0 ? "left" : "right";
    context.textBaseline = "middle";
    context.font = `600 12px ${css("--sans")}`;
    context.strokeStyle = css("--paper");
    context.fillStyle = css("--ink");
    context.lineWidth = 4;
    const places = named.map(([value, name]) => [y(value), name]).sort(([one], [other]) => one - other);
    let above = -Infinity;
    for (const [i, [height, name]] of places.entries()) {
      above = Math.max(above + 14, Math.min(height, box.bottom - 14 * (places.length - 1 - i)));
      context.strokeText(name, x(frame) + 10 * side, above);
      context.fillText(name, x(frame) + 10 * side, above);
    }
  };

  // Best values of all runs in one plot; logs if there is nothing below zero
  const values = (canvas, runs, frame, looks) => {
    const found = runs.flatMap((run) => run.best).filter((value) => value !== null);
    const log = found.every((value) => value >= 0);
    const floor = Math.max(Math.min(...found.filter((value) => value > 0), 1), 1e-10);
    const scaled = (value) => (log ? Math.log10(Math.max(value ?? floor, floor)) : value ?? 0);
    const all = found.map(scaled);
    const [low, high] = [Math.min(...all), Math.max(...all)];
    const margin = (high - low || 1) * 0.06;
    const range = [low - margin, high + margin];
    const last = Math.max(...runs.map((run) => run.frames - 1));
    const plot = axes(canvas, last, range, log ? decades(...range, 6) : plain(...range, 5));
    if (!plot) return log;
    cursor(plot, frame);
    for (const run of runs) {
      const end = run.frames - 1;
      const at = Math.min(frame, end);
      const { colour, dashes } = looks[run.setting.method];
      trail(plot, (t) => scaled(run.best[t]), at, end, ink(colour), { dashes });
    }
    for (const run of runs) {
      const at = Math.min(frame, run.frames - 1);
      disc(plot, at, scaled(run.best[at]), ink(looks[run.setting.method].colour));
    }
    names(plot, frame, runs.map((run) => [scaled(run.best[Math.min(frame, run.frames - 1)]), run.setting.method]));
    return log;
  };

  return { unpackRun, unpackLandscape, map, rates, values };
})();
