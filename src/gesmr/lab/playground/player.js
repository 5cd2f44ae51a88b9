// What is shown, and which generation of it: play, pause, step, scrub; theme. The same live and exported.
const Player = (() => {
  "use strict";
  const find = (id) => document.getElementById(id);
  const root = document.documentElement;
  const data = JSON.parse(find("data").textContent);
  const [panels, scrub, play] = [find("panels"), find("scrub"), find("play")];
  const state = { runs: [], landscape: null, frame: 0, playing: null };

  const last = () => Math.max(0, ...state.runs.map((run) => run.frames - 1));
  const short = (value) => {
    if (value === null) return "–";
    const size = Math.abs(value);
    if (value === 0) return "0";
    return size < 0.001 || size >= 1e5 ? value.toExponential(1).replace("e+", "e") : Number(value.toPrecision(3)).toString();
  };
  const rateRange = () => {
    let [low, high] = [Infinity, -Infinity];
    for (const run of state.runs) {
      for (const rate of run.rates) {
        if (rate < low) low = rate;
        if (rate > high) high = rate;
      }
    }
    return [Math.max(low, -12) - 0.3, high + 0.3];
  };

  const element = (tag, attributes = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), attributes);
    made.append(...children);
    return made;
  };
  const build = () => {
    panels.style.setProperty("--columns", Math.max(1, state.runs.length));
    panels.className = `panels columns-${state.runs.length}`;
    panels.replaceChildren(
      ...state.runs.map((run) => {
        const map = element("canvas", { className: "map", role: "img" });
        const rates = element("canvas", { className: "rates", role: "img" });
        rates.setAttribute("aria-label", `Mutation rates of ${run.setting.method} over generations`);
        const readout = element("span", { className: "readout" });
        const title = element("h2", { textContent: run.setting.method });
        const outside = element("span", { className: "outside" });
        const panel = element("figure", { className: "panel" }, element("header", {}, title, readout), element("div", { className: "ground" }, map, outside), rates);
        panel.dataset.method = run.setting.method;
        panel.style.setProperty("--own", data.looks[run.setting.method].colour);
        return panel;
      }),
    );
    state.range = rateRange();
    describe();
  };
  const describe = () => {
    const { setting } = state.runs[0];
    const name = setting.function[0].toUpperCase() + setting.function.slice(1);
    find("slice").textContent =
      setting.dim > 2
        ? `The search has ${setting.dim} dimensions: the map is the slice through the optimum along the first two, and of every member you see these two coordinates, so that its height is not the map’s.`
        : "";
    const about = `${name}, ${setting.dim}-D, first population N(0, ${setting.std}²), N = ${setting.children}, ` +
      `K = ${setting.groups}, seed ${setting.seed}` + (setting.moved && setting.function !== "linear" ? ", optimum off-centre" : "");
    find("provenance").textContent = `${about}. Every point was computed by gesmr.evolve.`;
    if (!data.presets) find("says").textContent = about;
  };

  const draw = () => {
    if (!state.runs.length) return;
    for (const [i, panel] of [...panels.children].entries()) {
      const run = state.runs[i];
      const { method } = run.setting;
      const { colour } = data.looks[method];
      const frame = Math.min(state.frame, run.frames - 1);
      const [map, rates] = panel.querySelectorAll("canvas");
      const outside = Drawing.map(map, state.landscape, run, frame, colour);
      Drawing.rates(rates, run, frame, state.range, colour);
      const marked = run.width === 1 ? 0 : frame > 0 ? run.elites[0] : undefined; // before the first generation none did best
      const inUse = run.rates.subarray(frame * run.width, (frame + 1) * run.width);
      const ends = [Math.min(...inUse), Math.max(...inUse)].map((rate) => short(10 ** rate));
      const text = marked === undefined ? ends.join(" … ") : short(10 ** inUse[marked]);
      panel.querySelector(".readout").replaceChildren(
        "best ", element("b", { textContent: short(run.best[frame]) }), " · rate ", element("b", { textContent: text }),
      );
      panel.querySelector(".outside").textContent = outside ? `${outside} outside` : "";
      map.setAttribute("aria-label", `Population of ${method} at generation ${frame}: best value ${short(run.best[frame])}, mutation rate ${text}`);
    }
    const log = Drawing.values(find("values"), state.runs, state.frame, data.looks);
    find("values-scale").textContent = log ? "log scale" : "";
    scrub.value = state.frame;
    scrub.setAttribute("aria-valuetext", `generation ${state.frame} of ${last()}`);
    find("generation").textContent = `${state.frame} / ${last()}`;
  };
  let asked = false;
  const redraw = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  };

  const go = (frame) => {
    state.frame = Math.min(Math.max(0, frame), last());
    redraw();
  };
  const pause = () => {
    if (state.playing) cancelAnimationFrame(state.playing);
    state.playing = null;
    play.textContent = "▶\uFE0E";
    play.setAttribute("aria-label", "Play");
  };
  const start = () => {
    if (!state.runs.length) return;
    pause();
    if (state.frame >= last()) state.frame = 0;
    play.textContent = "❚❚";
    play.setAttribute("aria-label", "Pause");
    let [before, owed] = [performance.now(), 0];
    const tick = (now) => {
      owed += (Math.max(0, now - before) / 1000) * Number(find("speed").value); // the first frame may lie before now
      before = now;
      const whole = Math.floor(owed);
      owed -= whole;
      if (whole) {
        state.frame = Math.min(state.frame + whole, last());
        draw();
      }
      if (state.frame >= last()) pause();
      else state.playing = requestAnimationFrame(tick);
    };
    state.playing = requestAnimationFrame(tick);
  };
  const toggle = () => (state.playing ? pause() : start());
  const step = (by) => {
    pause();
    go(state.frame + by);
  };

  // Runs and a landscape, as they came. Playback goes on where it was if only the view changed.
  const show = (runs, landscape, frame = 0) => {
    state.runs = runs.map(Drawing.unpackRun);
    state.landscape = Drawing.unpackLandscape(landscape);
    scrub.max = last();
    state.frame = Math.min(frame, last());
    build();
    draw();
  };

  play.addEventListener("click", toggle);
  find("back").addEventListener("click", () => step(-1));
  find("forward").addEventListener("click", () => step(1));
  find("first").addEventListener("click", () => step(-Infinity));
  find("last").addEventListener("click", () => step(Infinity));
  scrub.addEventListener("input", () => {
    pause();
    go(Number(scrub.value));
  });

  const theme = find("theme");
  const setTheme = (chosen) => {
    root.dataset.theme = chosen;
    theme.title = `Change to the ${chosen === "dark" ? "light" : "dark"} theme (t)`;
    theme.setAttribute("aria-label", theme.title);
    theme.textContent = chosen === "dark" ? "Light" : "Dark";
    redraw();
  };
  const otherTheme = () => {
    const chosen = root.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("gesmr-theme", chosen);
    } catch {
      // it holds for this visit
    }
    setTheme(chosen);
  };
  theme.addEventListener("click", otherTheme);

  // Keys, unless they mean something where the focus is
  const keys = {
    " ": toggle, ArrowLeft: (event) => step(event.shiftKey ? -10 : -1), ArrowRight: (event) => step(event.shiftKey ? 10 : 1),
    Home: () => step(-Infinity), End: () => step(Infinity), t: otherTheme,
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const { target } = event;
    const typing = target.matches?.('select, textarea, input:not([type="range"], [type="checkbox"])');
    const pressed = event.key === " " && target.matches?.('button, a, input[type="checkbox"]');
    if (typing || pressed || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    if (!event.repeat || event.key.startsWith("Arrow")) keys[event.key](event);
  });
  new ResizeObserver(redraw).observe(panels);
  addEventListener("resize", redraw);

  setTheme(root.dataset.exported ?? root.dataset.theme);
  if (data.runs) show(data.runs, data.landscape, data.frame);
  return { data, state, show, start, pause, keys };
})();
