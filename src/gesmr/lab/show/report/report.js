(() => {
  "use strict";
  const root = document.documentElement;
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];

  // Theme: the system's until the reader chooses
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const stored = () => {
    try {
      return localStorage.getItem("gesmr-theme");
    } catch {
      return null;
    }
  };
  const setTheme = (theme) => {
    root.dataset.theme = theme;
    button.querySelector(".label").textContent = theme === "dark" ? "Light" : "Dark";
    document.dispatchEvent(new CustomEvent("gesmr:theme"));
  };
  button.addEventListener("click", () => {
    const theme = root.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("gesmr-theme", theme);
    } catch {
      // it holds for this visit
    }
    setTheme(theme);
  });
  system.addEventListener("change", () => stored() || setTheme(system.matches ? "dark" : "light"));
  let beforePrint = null;
  addEventListener("beforeprint", () => {
    beforePrint = root.dataset.theme;
    setTheme("light");
  });
  addEventListener("afterprint", () => beforePrint && setTheme(beforePrint));
  setTheme(root.dataset.theme);

  // Tabs and sets of runs: one panel at a time
  const tabs = all('[role="tab"]');
  const shown = { table: tabs[0]?.dataset.table, variant: document.querySelector(".panel")?.dataset.variant };
  const showPanels = () => {
    for (const panel of all(".panel")) {
      panel.classList.toggle("away", panel.dataset.table !== shown.table || panel.dataset.variant !== shown.variant);
    }
    for (const tab of tabs) {
      const chosen = tab.dataset.table === shown.table;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
    }
    countRows();
    document.dispatchEvent(new CustomEvent("gesmr:panels"));
  };
  for (const [i, tab] of tabs.entries()) {
    tab.addEventListener("click", () => {
      shown.table = tab.dataset.table;
      showPanels();
    });
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = tabs[(i + step + tabs.length) % tabs.length];
      next.focus();
      next.click();
    });
  }
  for (const link of all('a[href^="#tab-"]')) {
    link.addEventListener("click", () => document.querySelector(link.hash)?.click());
  }
  for (const radio of all(".variant input")) {
    radio.addEventListener("change", () => {
      for (const other of all(".variant input")) other.checked = other.value === radio.value;
      shown.variant = radio.value;
      showPanels();
      document.dispatchEvent(new CustomEvent("gesmr:variant", { detail: radio.value }));
    });
  }

  // Filters
  const filters = all("[data-filter]");
  const countRows = () => {
    const rows = all(".panel:not(.away) tbody tr");
    const status = document.querySelector(".count-rows");
    if (status) status.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
  };
  const filterRows = () => {
    for (const row of all(".panel tbody tr")) {
      row.hidden = filters.some((select) => select.value && row.dataset[select.dataset.filter] !== select.value);
    }
    countRows();
  };
  for (const select of filters) select.addEventListener("change", filterRows);

  // Digits: three significant ones, or the paper's one decimal
  for (const radio of all('[name="digits"]')) {
    radio.addEventListener("change", () => {
      for (const table of all(".results")) table.classList.toggle("printed", radio.value === "printed");
      for (const cell of all(".results td[data-printed]")) {
        const parts = [cell.querySelector(".mean"), cell.querySelector("small")];
        cell.three ??= parts.map((part) => part.textContent);
        const texts = radio.value === "printed" ? cell.dataset.printed.split("|") : cell.three;
        for (const [i, part] of parts.entries()) part.textContent = texts[i];
      }
    });
  }

  // Sorting: ascending, descending, the paper's order; what is missing comes last
  const order = (table, column, direction) => {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    for (const [i, row] of rows.entries()) row.place ??= i;
    const text = table.tHead.rows[0].cells[column].dataset.type === "text";
    const compare = (a, b) => {
      const [x, y] = [a, b].map((row) => row.cells[column].dataset.value);
      if (x === "" || y === "") return (x === "") - (y === "") || a.place - b.place;
      return direction * (text ? x.localeCompare(y) : Number(x) - Number(y)) || a.place - b.place;
    };
    rows.sort(direction ? compare : (a, b) => a.place - b.place);
    body.append(...rows);
  };
  for (const table of all("[data-sortable]")) {
    const headings = [...table.tHead.rows[0].cells];
    for (const [column, heading] of headings.entries()) {
      heading.querySelector("button").addEventListener("click", () => {
        const next = { none: "ascending", ascending: "descending", descending: "none" };
        const sort = next[heading.getAttribute("aria-sort") ?? "none"];
        for (const other of headings) other.removeAttribute("aria-sort");
        if (sort !== "none") heading.setAttribute("aria-sort", sort);
        order(table, column, { none: 0, ascending: 1, descending: -1 }[sort]);
      });
    }
  }

  // Ranks: by function, until every row is asked for
  const every = document.getElementById("every-rank");
  const showRanks = () => {
    for (const line of all(".ranks tr.row")) line.hidden = !every.checked;
  };
  every?.addEventListener("change", showRanks);
  if (every) showRanks();

  // Wide tables: a cue while there is more to the right, and headings that stay in sight
  const bar = document.querySelector(".top");
  const follow = (box) => {
    const more = box.scrollWidth - box.clientWidth - box.scrollLeft > 2;
    box.classList.toggle("more", more);
    box.previousElementSibling?.querySelector(".cue")?.classList.toggle("shown", more);
    const [table, head] = [box.querySelector("table"), box.querySelector("thead")];
    if (!head) return;
    const { top, height } = table.getBoundingClientRect();
    const down = Math.min(Math.max(bar.offsetHeight - top, 0), Math.max(height - 2 * head.offsetHeight, 0));
    head.style.transform = down ? `translateY(${down}px)` : "";
  };
  const boxes = all(".scroll");
  const followAll = () => {
    for (const box of boxes) if (box.offsetParent) follow(box);
  };
  for (const box of boxes) box.addEventListener("scroll", () => follow(box), { passive: true });
  addEventListener("scroll", followAll, { passive: true });
  addEventListener("resize", followAll);
  document.addEventListener("gesmr:panels", followAll);

  // Figures: enlarged over the page
  const enlarged = document.getElementById("enlarged");
  const view = enlarged.querySelector(".view");
  const zoom = (factor) => {
    const image = view.firstElementChild;
    const wide = image.clientWidth * factor;
    const place = (view.scrollLeft + view.clientWidth / 2) / view.scrollWidth;
    image.style.width = `${Math.min(Math.max(wide, view.clientWidth), 4 * image.naturalWidth)}px`;
    view.scrollLeft = place * view.scrollWidth - view.clientWidth / 2;
  };
  for (const button of all(".enlarge")) {
    button.addEventListener("click", () => {
      const image = button.firstElementChild.cloneNode();
      view.replaceChildren(image);
      enlarged.showModal();
      image.style.width = `${Math.max(image.naturalWidth, view.clientWidth)}px`;
    });
  }
  for (const button of all("[data-zoom]", enlarged)) button.addEventListener("click", () => zoom(Number(button.dataset.zoom)));
  enlarged.querySelector("[data-close]").addEventListener("click", () => enlarged.close());
  enlarged.addEventListener("keydown", (event) => {
    if (event.key === "+" || event.key === "-") zoom(event.key === "+" ? 1.4 : 0.7);
  });

  showPanels();
})();
