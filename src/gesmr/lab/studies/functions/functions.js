(() => {
  "use strict";
  const { methods, variants } = JSON.parse(document.getElementById("data-curves").textContent);
  const element = (id) => document.getElementById(id);
  const choices = { function: element("choose-function"), dim: element("choose-dim"), std: element("choose-std") };
  const hidden = new Set();
  const wider = (a, b) => a.dim > b.dim || (a.dim === b.dim && a.function === b.function && a.std > b.std);
  let variant = variants[0];
  let row = variant.rows.reduce((widest, other) => (wider(other, widest) ? other : widest));

  const name = (text) => text[0].toUpperCase() + text.slice(1);
  const dark = () => document.documentElement.dataset.theme === "dark";
  const colour = (method) => (dark() ? method.dark : method.colour);
  const css = (variable) => getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
  const short = (value) => (value === 0 ? "0" : Number(value.toPrecision(3)).toString());

  const fill = (select, values, chosen, label = String) => {
    select.replaceChildren(...values.map((value) => new Option(label(value), value, false, value === chosen)));
  };
  const distinct = (key, rows) => [...new Set(rows.map((other) => other[key]))];
  const fillChoices = () => {
    const ofFunction = variant.rows.filter((other) => other.function === row.function);
    fill(choices.function, distinct("function", variant.rows), row.function, name);
    fill(choices.dim, distinct("dim", ofFunction), row.dim);
    fill(choices.std, distinct("std", ofFunction.filter((other) => other.dim === row.dim)), row.std);
  };
  // The row that agrees with the wish in the most important things: function, then d, then std
  const choose = (wish) => {
    const agrees = (other) =>
      4 * (other.function === wish.function) + 2 * (other.dim === wish.dim) + (other.std === wish.std);
    row = variant.rows.reduce((best, other) => (agrees(other) > agrees(best) ? other : best));
    fillChoices();
    draw();
  };

  const band = (method, x, low, high) => {
    const kept = x.flatMap((_, i) => (Number.isFinite(low[i]) && Number.isFinite(high[i]) ? [i] : []));
    const back = [...kept].reverse();
    return {
      x: [...kept, ...back].map((i) => x[i]),
      y: [...kept.map((i) => high[i]), ...back.map((i) => low[i])],
      name: `${method.name} band`,
      mode: "lines",
      line: { width: 0 },
      fill: "toself",
      fillcolor: `${colour(method)}26`,
      hoverinfo: "skip",
      visible: !hidden.has(method.name) && element("bands").checked,
    };
  };
  const line = (method, x, y, text) => ({
    x,
    y,
    customdata: text,
    name: method.name,
    mode: "lines",
    line: {
      color: colour(method),
      width: method.width,
      dash: method.dash.length ? method.dash.map((length) => `${length * method.width}px`).join(",") : "solid",
    },
    hovertemplate: `<b>${method.name}</b><br>generation %{x}<br>%{customdata}<extra></extra>`,
    visible: !hidden.has(method.name),
  });

  const traces = (limits) => {
    const x = row.generation;
    const present = methods.filter((method) => method.name in row.lines).sort((a, b) => a.above - b.above);
    const drawn = present.map((method) => ({ method, ...limits(row.lines[method.name]) }));
    return [
      ...drawn.map(({ method, low, high }) => band(method, x, low, high)),
      ...drawn.map(({ method, middle, text }) => line(method, x, middle, text)),
    ];
  };
  const values = (log) => (curve) => {
    const { value, value_error: error } = curve;
    const drawable = (v) => (v === null || (log && v <= 0) ? null : v);
    const less = (v, i) => (log ? Math.max(v - error[i], v / 10) : v - error[i]);
    const usable = (v, i) => drawable(v) !== null && error[i] !== null;
    return {
      middle: value.map(drawable),
      low: value.map((v, i) => (usable(v, i) ? less(v, i) : null)),
      high: value.map((v, i) => (usable(v, i) ? v + error[i] : null)),
      text: value.map((v, i) => (v === null ? "" : short(v) + (error[i] === null ? "" : ` ± ${short(error[i])}`))),
    };
  };
  const rates = (curve) => {
    const power = (v) => (v === null ? null : 10 ** v);
    const [low, middle, high] = [curve.rate_low, curve.rate, curve.rate_high].map((logs) => logs.map(power));
    const text = middle.map((v, i) => {
      if (v === null) return "";
      return short(v) + (low[i] === null ? "" : ` (${short(low[i])} to ${short(high[i])})`);
    });
    return { low, middle, high, text };
  };

  const layout = (logY, values) => {
    const axis = {
      gridcolor: css("--line"),
      zeroline: false,
      linecolor: css("--line-strong"),
      showline: true,
      ticks: "outside",
      tickcolor: css("--line-strong"),
      ticklen: 4,
      exponentformat: "power",
      showexponent: "all",
      tickfont: { size: 12 },
      fixedrange: coarse,
    };
    const plain = { exponentformat: "none", tickfont: axis.tickfont };
    const logX = element("log-generation").checked;
    return {
      margin: { l: 58, r: 24, t: coarse ? 8 : 30, b: 46 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: css("--sans"), size: 13, color: css("--ink") },
      showlegend: false,
      hovermode: "closest",
      hoverlabel: { bgcolor: css("--paper"), bordercolor: css("--line-strong"), font: { color: css("--ink") } },
      dragmode: coarse ? false : "zoom",
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--muted"), activecolor: css("--ink") },
      xaxis: { ...axis, ...scale(logX, row.generation), ...plain, title: { text: "Generation", standoff: 8 } },
      yaxis: { ...axis, ...scale(logY, values), automargin: true },
      uirevision: `${variant.name} ${row.label} ${logX} ${logY}`,
    };
  };
  // So many ticks that a log axis over two decades or more has whole powers of ten
  const scale = (log, values) => {
    if (!log) return { type: "linear" };
    const logs = values.filter((v) => v > 0).map(Math.log10);
    const decades = logs.length ? Math.max(...logs) - Math.min(...logs) : 0;
    if (decades < 2) return { type: "log", exponentformat: "e" };
    const minor = { ticks: "outside", ticklen: 2, tickcolor: css("--line-strong") };
    return { type: "log", nticks: Math.min(7, Math.floor(decades / 0.7)), minor, tickfont: { size: 11 } };
  };

  const coarse = matchMedia("(pointer: coarse)").matches;
  const config = {
    responsive: true,
    displaylogo: false,
    displayModeBar: coarse ? false : "hover",
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
    showSendToCloud: false,
    plotlyServerURL: "",
    toImageButtonOptions: { format: "svg", filename: "gesmr-curves" },
  };

  const draw = () => {
    const log = element("log-value");
    log.disabled = !row.bounded;
    element("log-value-reason").textContent = row.bounded
      ? ""
      : `${name(row.function)} has no minimum and its values are negative: there is no log scale for them.`;
    const logValue = log.checked && row.bounded;
    const logRate = element("log-rate").checked;
    element("row-label").textContent = row.label + (variants.length > 1 ? `, ${variant.name}` : "");
    const panels = [
      ["plot-value", traces(values(logValue)), logValue],
      ["plot-rate", traces(rates), logRate],
    ];
    for (const [id, data, logY] of panels) {
      const drawn = data.filter((trace) => trace.visible).flatMap((trace) => trace.y);
      Plotly.react(id, data, layout(logY, drawn), config);
    }
    for (const swatch of document.querySelectorAll("#methods line")) {
      swatch.setAttribute("stroke", colour(methods.find((method) => method.name === swatch.dataset.method)));
    }
  };

  // The legend: a box, a sample of the line and the name
  const svg = (tag, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const sample = (method) => {
    const picture = svg("svg", { width: 34, height: 10, "aria-hidden": "true" });
    const dashes = method.dash.map((length) => length * method.width).join(" ");
    const look = { "stroke-width": method.width, "stroke-dasharray": dashes, "data-method": method.name };
    picture.append(svg("line", { x1: 1, y1: 5, x2: 33, y2: 5, ...look }));
    return picture;
  };
  const show = (method, visible) => {
    hidden[visible ? "delete" : "add"](method.name);
    document.querySelector(`#methods input[value="${CSS.escape(method.name)}"]`).checked = visible;
  };
  for (const method of methods) {
    const label = document.createElement("label");
    const box = Object.assign(document.createElement("input"), { type: "checkbox", value: method.name, checked: true });
    label.className = "method" + (method.name === "GESMR" ? " main" : "");
    label.append(box, sample(method), method.name + (method.oracle ? "†" : ""));
    box.addEventListener("change", () => {
      show(method, box.checked);
      draw();
    });
    element("methods").append(label);
  }
  for (const button of document.querySelectorAll("[data-show]")) {
    button.addEventListener("click", () => {
      const kind = button.dataset.show;
      for (const method of methods) show(method, kind === "all" || (kind === "ranked" && !method.oracle));
      draw();
    });
  }

  for (const select of Object.values(choices)) {
    select.addEventListener("change", () => {
      choose({ function: choices.function.value, dim: Number(choices.dim.value), std: Number(choices.std.value) });
    });
  }
  for (const id of ["log-value", "log-rate", "log-generation", "bands"]) element(id).addEventListener("change", draw);
  for (const link of document.querySelectorAll("a[data-row]")) {
    const { function: of, d, std } = link.closest("tr").dataset;
    link.addEventListener("click", () => choose({ function: of, dim: Number(d), std: Number(std) }));
  }
  document.addEventListener("gesmr:theme", draw);
  document.addEventListener("gesmr:variant", (event) => {
    variant = variants.find((other) => other.name === event.detail);
    choose(row);
  });
  choose(row);
})();
