// Settings, and what the server computes of them.
(() => {
  "use strict";
  const find = (id) => document.getElementById(id);
  const form = find("settings");
  const { data } = Player;
  const [status, error, panels] = [find("status"), find("error"), find("panels")];
  const NUMBERS = ["dim", "std", "children", "groups", "generations", "seed"];
  const boxes = [...form.querySelectorAll('[name="method"]')];
  let latest = new AbortController(); // of what is asked for now; what was asked before is given up
  let shown = null; // what the player has: settings of its runs, and a place

  const ask = async (path, body, signal) => {
    const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });
    if (answer.ok) return answer;
    let message = `the server answered ${answer.status}`;
    try {
      message = (await answer.json()).error;
    } catch {
      // the number must do
    }
    throw new Error(message);
  };

  const common = () => {
    const values = Object.fromEntries(NUMBERS.map((name) => [name, form.elements[name].value && Number(form.elements[name].value)]));
    return { ...values, function: form.elements.function.value, moved: form.elements.moved.checked };
  };
  const methods = () => boxes.filter((box) => box.checked).map((box) => box.value);
  const limitMethods = () => {
    const full = methods().length >= data.most;
    for (const box of boxes) box.disabled = full && !box.checked;
    const grouped = methods().some((method) => method.startsWith("GESMR"));
    form.elements.groups.disabled = !grouped;
  };

  const fail = (message) => {
    error.hidden = !message;
    error.textContent = message;
    for (const name of NUMBERS) form.elements[name].setAttribute("aria-invalid", String(message.startsWith(`${name} `)));
  };
  // The seconds are not read aloud, which what is being done is
  const busy = (text, seconds = 0) => {
    if (find("doing").textContent !== text) find("doing").textContent = text;
    find("elapsed").textContent = seconds ? `${seconds} s` : "";
    status.classList.toggle("busy", Boolean(text));
    panels.classList.toggle("stale", Boolean(text));
  };

  // Ask for everything that is set; `playing` starts it, otherwise the generation stays
  const update = async ({ playing = false, keep = false } = {}) => {
    latest.abort();
    const { signal } = (latest = new AbortController());
    const chosen = methods();
    if (!chosen.length) {
      fail("methods must be one to four, got none");
      busy("");
      return;
    }
    const setting = common();
    const runs = chosen.map((method) => ({ method, ...setting }));
    const place = { function: setting.function, dim: setting.dim, std: setting.std, moved: setting.moved, zoom: Number(form.elements.zoom.value) };
    const began = performance.now();
    const found = [];
    let doing = "";
    const clock = setInterval(() => {
      if (!signal.aborted) busy(doing, Math.floor((performance.now() - began) / 1000));
    }, 250);
    try {
      doing = "Drawing the landscape …";
      const landscape = await (await ask("landscape", place, signal)).json();
      for (const [i, run] of runs.entries()) {
        doing = `Computing ${run.method} (${i + 1} of ${runs.length}); the first time it is compiled …`;
        found.push(await (await ask("run", run, signal)).json());
      }
      fail("");
      shown = { runs, place };
      const frame = keep ? Player.state.frame : 0;
      if (!keep) Player.pause();
      Player.show(found, landscape, frame);
      if (playing && !matchMedia("(prefers-reduced-motion: reduce)").matches) Player.start();
    } catch (problem) {
      const lost = problem instanceof TypeError;
      if (!signal.aborted) fail(lost ? "The server does not answer. Is the command still running?" : problem.message);
    } finally {
      clearInterval(clock);
      if (!signal.aborted) {
        busy("");
        find("export").disabled = !shown;
      }
    }
  };

  const choose = (preset) => {
    const setting = { ...data.defaults, ...preset.setting };
    for (const name of [...NUMBERS, "function"]) form.elements[name].value = setting[name];
    form.elements.moved.checked = setting.moved;
    form.elements.zoom.value = "1";
    for (const box of boxes) box.checked = preset.methods.includes(box.value);
    limitMethods();
    for (const button of find("presets").children) button.setAttribute("aria-pressed", String(button.dataset.name === preset.name));
    find("says").textContent = preset.says;
    update({ playing: true });
  };
  for (const preset of data.presets) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: preset.title });
    button.dataset.name = preset.name;
    button.addEventListener("click", () => choose(preset));
    find("presets").append(button);
  }
  for (const box of boxes) box.closest("label").style.setProperty("--own", data.looks[box.value].colour);

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", (event) => {
    limitMethods();
    const { name } = event.target;
    if (name !== "zoom" && name !== "method" && name !== "seed") {
      for (const button of find("presets").children) button.setAttribute("aria-pressed", "false");
      find("says").textContent = "";
    }
    update({ keep: name === "zoom" || name === "method", playing: name === "seed" });
  });
  const nextSeed = () => {
    form.elements.seed.value = Number(form.elements.seed.value) + 1;
    update({ playing: true });
  };
  find("next-seed").addEventListener("click", nextSeed);
  Player.keys.n = nextSeed;

  find("export").addEventListener("click", async () => {
    try {
      const theme = document.documentElement.dataset.theme;
      const page = await (await ask("export", { ...shown, frame: Player.state.frame, theme })).blob();
      const { function: name, dim, seed } = shown.runs[0];
      const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(page), download: `gesmr-${name}-${dim}d-seed${seed}.html` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    } catch (problem) {
      fail(problem instanceof TypeError ? "The server does not answer. Is the command still running?" : problem.message);
    }
  });
  find("export").disabled = true;
  choose(data.presets[0]);
})();
