"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const by = (id) => document.getElementById(id);
  const unique = (list) => [...new Set(list)];
  const state = { off: new Set(data.hidden), span: 2000 };

  /* ---- light and dark ---- */
  const dark = window.matchMedia && matchMedia("(prefers-color-scheme: dark)").matches;
  const setTheme = (name) => { document.documentElement.dataset.theme = name; };
  setTheme(dark ? "dark" : "light");
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = (method) => {
    const own = data.colours[method] || "#888888";
    return own === "#202124" ? css("--ink") : own;
  };
  const layout = (more) => {
    const axis = { gridcolor: css("--line"), zerolinecolor: css("--line"), linecolor: css("--line"), automargin: true };
    const base = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest",
      font: { color: css("--ink"), family: "system-ui, sans-serif", size: 12 },
      margin: { l: 55, r: 15, t: 30, b: 45 }, legend: { orientation: "h", y: -0.2 }, showlegend: !narrow,
      hoverlabel: { align: "left" }, modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--quiet"), activecolor: css("--ink") },
    };
    const merged = { ...base, ...more };
    for (const key of Object.keys(merged)) {
      if (/^[xy]axis/.test(key)) merged[key] = { ...axis, ...merged[key] };
    }
    merged.xaxis = { ...axis, ...merged.xaxis };
    merged.yaxis = { ...axis, ...merged.yaxis };
    return merged;
  };
  const narrow = window.innerWidth < 700; // the chips are legend enough, and fingers need no buttons
  const options = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d"] };
  if (narrow) options.displayModeBar = false;
  const draw = (id, traces, more) => Plotly.react(by(id), traces, layout(more), options);

  /* ---- controls ---- */
  const fill = (id, items, titles, chosen) => {
    const select = by(id);
    select.replaceChildren(...items.map((item) => {
      const option = document.createElement("option");
      option.value = item;
      option.textContent = (titles && titles[item]) || item;
      return option;
    }));
    if (items.map(String).includes(String(chosen))) select.value = chosen;
  };
  const rows = data.summary;
  const methods = unique(rows.map((row) => row.method));
  fill("metric", unique(rows.map((row) => row.metric)), data.titles, "success_rate");
  fill("scenario", unique(rows.map((row) => row.scenario)));
  const here = (row) => row.scenario === by("scenario").value;
  const refill = () => {
    const own = rows.filter(here);
    fill("arrivals", unique(own.map((row) => row.arrivals)), null, by("arrivals").value || "poisson");
    const rates = unique(own.map((row) => row.rate)).sort((a, b) => a - b);
    fill("rate", rates, null, by("rate").value || rates[rates.length - 1]);
  };
  refill();
  by("methods").replaceChildren(...methods.map((method) => {
    const chip = document.createElement("button");
    chip.type = "button";
    chip.textContent = method;
    chip.dataset.method = method;
    chip.setAttribute("aria-pressed", String(!state.off.has(method)));
    chip.addEventListener("click", () => {
      if (state.off.has(method)) state.off.delete(method); else state.off.add(method);
      chip.setAttribute("aria-pressed", String(!state.off.has(method)));
      compare();
      pareto();
    });
    return chip;
  }));
  /* Plotly reads tags, entities and %{…} in texts: names must not have any. */
  const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/%/g, "&#37;");
  const number = (value, digits = 3) => (value === null || value === undefined ? "–" : value.toFixed(digits));

  /* ---- a metric over the load, and all methods at one load ---- */
  const compare = () => {
    for (const chip of by("methods").children) chip.style.borderColor = colour(chip.dataset.method);
    const metric = by("metric").value, arrivals = by("arrivals").value, rate = Number(by("rate").value);
    const own = rows.filter((row) => here(row) && row.arrivals === arrivals && row.metric === metric && row.mean !== null);
    const shown = methods.filter((method) => !state.off.has(method));
    const traces = [];
    for (const method of shown) {
      const line = own.filter((row) => row.method === method).sort((a, b) => a.rate - b.rate);
      if (!line.length) continue;
      traces.push({
        name: plain(method), mode: "lines+markers", x: line.map((row) => row.rate), y: line.map((row) => row.mean),
        error_y: { array: line.map((row) => row.ci95 || 0), thickness: 1, width: 3 },
        line: { color: colour(method) }, marker: { color: colour(method) },
        customdata: line.map((row) => [number(row.ci95), row.runs]),
        hovertemplate: `<b>${plain(method)}</b><br>%{x} tasks/s: %{y:.4g} ± %{customdata[0]}<br>%{customdata[1]} runs<extra></extra>`,
      });
      const paper = line.filter((row) => row.paper !== null);
      if (paper.length) traces.push({
        name: `${plain(method)} (paper)`, mode: "markers", showlegend: false, x: paper.map((row) => row.rate),
        y: paper.map((row) => row.paper), marker: { color: colour(method), symbol: "x", size: 10 },
        hovertemplate: `<b>${plain(method)}</b>, the paper<br>%{x} tasks/s: %{y}<extra></extra>`,
      });
    }
    if (metric === "success_rate") {
      const bound = data.bounds.filter((row) => here(row) && row.arrivals === arrivals).sort((a, b) => a.rate - b.rate);
      const known = bound.filter((row) => row.clairvoyant_bound !== null);
      if (known.length) {
        traces.push({ name: "clairvoyant bound", mode: "markers", x: known.map((row) => row.rate), y: known.map((row) => row.clairvoyant_bound),
          marker: { color: css("--quiet"), symbol: "line-ew-open", size: 16 } });
      }
      for (const [key, name, dash] of [["fluid_bound", "fluid bound", "dash"], ["mean_bound", "µ*/rate", "dot"]]) {
        traces.push({ name, mode: "lines", x: bound.map((row) => row.rate), y: bound.map((row) => row[key]),
          line: { color: css("--quiet"), dash, width: 1 } });
      }
    }
    const title = data.titles[metric] || metric;
    by("chart-load").hidden = by("rate").options.length < 2; // one load: the bars say it all
    draw("chart-load", traces, { title: { text: plain(`${title}, ${arrivals}`) }, xaxis: { title: { text: "tasks/s" } }, yaxis: { rangemode: "tozero" } });
    const bars = own.filter((row) => row.rate === rate && shown.includes(row.method)).sort((a, b) => a.mean - b.mean);
    draw("chart-bars", [{
      type: "bar", orientation: "h", x: bars.map((row) => row.mean), y: bars.map((row) => plain(row.method)),
      error_x: { array: bars.map((row) => row.ci95 || 0), thickness: 1, width: 3, color: css("--quiet") },
      marker: { color: bars.map((row) => colour(row.method)) },
      hovertemplate: "<b>%{y}</b>: %{x:.4g}<extra></extra>",
    }], { showlegend: false, title: { text: plain(`${title} at ${rate} tasks/s, ${arrivals}`) }, margin: { l: 160, r: 15, t: 30, b: 45 } });
  };

  const pareto = () => {
    const arrivals = by("arrivals").value;
    const own = rows.filter((row) => here(row) && row.arrivals === arrivals);
    const rates = unique(own.map((row) => row.rate)).sort((a, b) => a - b);
    const value = (method, rate, metric) => {
      const found = own.find((row) => row.method === method && row.rate === rate && row.metric === metric);
      return found ? found.mean : null;
    };
    draw("chart-pareto", methods.filter((method) => !state.off.has(method)).map((method) => {
      const known = rates.filter((rate) => value(method, rate, "success_rate") !== null);
      return {
        name: plain(method), mode: "lines+markers", x: known.map((rate) => 0.1 + value(method, rate, "update_cost_rate")),
        y: known.map((rate) => value(method, rate, "success_rate")), line: { color: colour(method), width: 1 },
        marker: { color: colour(method), size: known.map((rate) => 6 + 2 * rates.indexOf(rate)) },
        customdata: known.map((rate) => [rate, value(method, rate, "update_cost_rate")]),
        hovertemplate: `<b>${plain(method)}</b> at %{customdata[0]} tasks/s<br>success %{y:.3f}, cost %{customdata[1]:.1f}/s<extra></extra>`,
      };
    }), {
      xaxis: { type: "log", title: { text: "update cost (units/s), + 0.1" } }, yaxis: { title: { text: "success rate" } },
    });
  };

  /* ---- training ---- */
  const training = () => {
    const own = data.curves.filter((curve) => here(curve) && curve.arrivals === by("arrivals").value);
    by("training").hidden = data.curves.length === 0;
    const rates = unique(own.map((curve) => curve.rate)).sort((a, b) => a - b);
    const dashes = unique(own.map((curve) => curve.method));
    const shade = (rate) => `hsl(${rates.length < 2 ? 200 : 260 - (220 * rates.indexOf(rate)) / (rates.length - 1)}, 60%, 50%)`;
    draw("chart-training", own.map((curve) => ({
      name: plain(`${curve.method}, ${curve.rate}, seed ${curve.seed}`), mode: "lines", y: curve.reward,
      x: curve.reward.map((_, k) => k + 1), line: { color: shade(curve.rate), width: 1.3, dash: dashes.indexOf(curve.method) ? "dash" : "solid" },
      legendgroup: `${curve.method}-${curve.rate}`, showlegend: false,
      hovertemplate: `<b>${plain(curve.method)}</b>, ${curve.rate} tasks/s, seed ${curve.seed}<br>episode %{x}: %{y:.0f}<extra></extra>`,
    })), { xaxis: { title: { text: "training episode" } }, yaxis: { title: { text: "reward, 5-episode mean" } } });
    by("training-note").textContent = rates.length
      ? `One line a run at ${rates.join(", ")} tasks/s (blue to red)${dashes.length > 1 ? `; dashed: ${dashes[1]}` : ""}.` : "";
  };

  /* ---- one episode ---- */
  const shapes = { TP: "circle", FP: "x", TN: "square", FN: "diamond", undecided: "circle-open" };
  const tints = { TP: "#4f9d3a", FP: "#d1495b", TN: "#8a919c", FN: "#e3a008", undecided: "#5f6368" };
  const words = { TP: "accepted, on time", FP: "accepted, failed", TN: "rejected, rightly", FN: "rejected without need", undecided: "never decided" };
  fill("recording", data.recordings.map((_, k) => k), data.recordings.map((each) => each.title));
  by("viewer").hidden = data.recordings.length === 0;
  const current = () => data.recordings[Number(by("recording").value)];
  const actionName = (action, sns) => (action === 0 ? "local" : action > sns ? "reject" : sns > 1 ? `offload ${action}` : "offload");
  const describe = (recording, k) => {
    const t = recording.tasks, sns = recording.sns;
    const names = [...Array(sns + 2).keys()].map((action) => actionName(action, sns));
    const feasible = t.feasible[k].map((yes, route) => `${names[route]} ${yes ? "✓" : "✗"} (${number(t.delays[k][route], 1)} ms)`).join(", ");
    const told = t.semantic[k]
      ? `status (${t.semantic[k].map((value) => number(value)).join(", ")})`
      : t.believed[k] === null ? "no status yet"
      : `backlog believed ${number(t.believed[k], 1)} ms, idle slots believed ${t.idle_believed[k]}`;
    const seen = recording.status
      ? `SN: ${told}, ${number(t.age[k], 1)} ms old; true backlog ${number(t.true[k], 1)} ms, idle slots ${t.idle_true[k]}`
      : `SN: true backlog ${number(t.true[k], 1)} ms (this method has no status)`;
    const lines = [
      `task ${t.task[k]} at ${number(t.time[k], 1)} ms: ${names[t.action[k]]} → ${t.outcome[k]} (${words[t.outcome[k]]})`,
      `${(t.bytes[k] / 1000).toFixed(1)} kB, ${(t.cycles[k] / 1e6).toFixed(2)} Mcycles, ${number(t.deadline[k], 1)} ms to its deadline`,
      `EN: backlog ${number(t.en_backlog[k], 1)} ms, a local wait of ${number(t.local_wait[k], 1)} ms`, seen, `true delays: ${feasible}`,
    ];
    if (t.values[k]) lines.push(`action values: ${t.values[k].map((value, action) => `${names[action]} ${number(value)}`).join(", ")}`);
    return lines;
  };
  const viewer = () => {
    if (!data.recordings.length) return;
    const recording = current(), t = recording.tasks, sns = recording.sns;
    const traces = [{
      name: "true SN backlog", x: t.time, y: t.true, mode: "lines", line: { color: css("--ink"), width: 1.2, shape: "hv" },
      hovertemplate: "%{x:.1f} ms: true backlog %{y:.1f} ms<extra></extra>",
    }];
    if (recording.status) {
      const sent = recording.updates.time.filter((_, k) => recording.updates.send[k] && recording.updates.sn[k] === 0);
      traces.push(
        { name: "what the EN believes", x: t.time, y: t.believed, mode: "lines", line: { color: css("--accent"), width: 1.2, shape: "hv" },
          hovertemplate: "%{x:.1f} ms: believed %{y:.1f} ms<extra></extra>" },
        { name: "update sent", x: sent, y: sent.map(() => 0), mode: "markers", marker: { symbol: "triangle-up", size: 8, color: "#1f77b4" },
          hovertemplate: "update sent at %{x:.1f} ms<extra></extra>" },
        { name: "age of the belief", x: t.time, y: t.age, mode: "lines", yaxis: "y2", line: { color: "#1f77b4", width: 1.2 },
          hovertemplate: "%{x:.1f} ms: %{y:.1f} ms old<extra></extra>" });
    }
    traces.push(
      { name: "tasks in the EN", x: t.time, y: t.en_requests, mode: "lines", yaxis: "y3", line: { color: "#b08968", width: 1.2, shape: "hv" },
        hovertemplate: "%{x:.1f} ms: %{y} in the EN<extra></extra>" },
      { name: "tasks in the SN", x: t.time, y: t.sn_requests, mode: "lines", yaxis: "y3", line: { color: "#8e6bbf", width: 1.2, shape: "hv" },
        hovertemplate: "%{x:.1f} ms: %{y} in the SN<extra></extra>" });
    for (const outcome of Object.keys(shapes)) {
      const which = t.time.map((_, k) => k).filter((k) => t.outcome[k] === outcome);
      if (!which.length) continue;
      traces.push({
        name: `${outcome}: ${words[outcome]}`, x: which.map((k) => t.time[k]), yaxis: "y4", mode: "markers",
        y: which.map((k) => t.action[k] + 0.25 * Math.sin(7.3 * k)), customdata: which,
        text: which.map((k) => describe(recording, k).join("<br>")), hovertemplate: "%{text}<extra></extra>",
        marker: { symbol: shapes[outcome], color: tints[outcome], size: 7 },
      });
    }
    const ticks = [...Array(sns + 2).keys()];
    const start = recording.warmup_ms;
    const range = state.range || [start, state.span ? start + state.span : recording.window_ms];
    draw("chart-viewer", traces, {
      title: { text: plain(current().title) }, margin: { l: 70, r: 15, t: 30, b: 40 }, legend: { orientation: "h", y: -0.08 },
      xaxis: { title: { text: "time (ms)" }, range, anchor: "y4" },
      yaxis: { domain: [0.74, 1], title: { text: "SN backlog (ms)" }, rangemode: "tozero" },
      yaxis2: { domain: [0.55, 0.71], title: { text: "age (ms)" }, rangemode: "tozero" },
      yaxis3: { domain: [0.36, 0.52], title: { text: "tasks" }, rangemode: "tozero" },
      yaxis4: { domain: [0, 0.33], tickvals: ticks, ticktext: ticks.map((action) => actionName(action, sns)), range: [-0.6, sns + 1.6] },
    });
    if (!state.listening) {
      state.listening = true;
      const show = (event) => {
        const point = event.points[0];
        if (point && point.customdata !== undefined) by("task").textContent = describe(current(), point.customdata).join("\n");
      };
      by("chart-viewer").on("plotly_hover", show);
      by("chart-viewer").on("plotly_click", show);
      by("chart-viewer").on("plotly_relayout", (event) => {
        if (event["xaxis.range[0]"] !== undefined) state.range = [event["xaxis.range[0]"], event["xaxis.range[1]"]];
        else if (event["xaxis.autorange"]) state.range = [0, current().window_ms];
      });
    }
  };
  for (const button of document.querySelectorAll("[data-span]")) {
    button.addEventListener("click", () => {
      const span = Number(button.dataset.span), start = state.range ? state.range[0] : current().warmup_ms;
      state.range = span ? [start, start + span] : [0, current().window_ms];
      viewer();
    });
  }
  for (const button of document.querySelectorAll("[data-step]")) {
    button.addEventListener("click", () => {
      const [low, high] = state.range || [current().warmup_ms, current().warmup_ms + state.span];
      const step = 0.8 * (high - low) * Number(button.dataset.step);
      state.range = [low + step, high + step];
      viewer();
    });
  }

  /* ---- tables ---- */
  const table = (target, header, body) => {
    const line = (cells, tag) => {
      const row = document.createElement("tr");
      row.append(...cells.map((cell) => { const made = document.createElement(tag); made.textContent = cell; return made; }));
      return row;
    };
    target.replaceChildren(line(header, "th"), ...body.map((cells) => line(cells, "td")));
  };
  fill("paper-metric", ["all", ...unique(data.paper.map((row) => row.metric))], data.titles);
  by("paper").hidden = data.paper.length === 0;
  const paperTable = () => {
    const metric = by("paper-metric").value;
    const own = data.paper.filter((row) => metric === "all" || row.metric === metric);
    const digits = (row) => (/cost/.test(row.metric) ? 2 : 3);
    table(by("paper-table"), ["metric", "arrivals", "tasks/s", "method", "paper", "ours", "± 95 %", "difference"], own.map((row) => [
      data.titles[row.metric] || row.metric, row.arrivals, row.rate, row.method, number(row.paper, digits(row)), number(row.ours, digits(row)),
      number(row.ci95, digits(row)), (row.difference >= 0 ? "+" : "") + number(row.difference, digits(row)),
    ]));
  };
  by("tables-body").replaceChildren(...data.tables.flatMap((each) => {
    const title = document.createElement("h3"), box = document.createElement("div"), made = document.createElement("table");
    title.textContent = each.title;
    box.className = "scroll";
    table(made, each.header, each.rows);
    box.append(made);
    return [title, box];
  }));
  by("subtitle").textContent = data.subtitle;
  const about = by("about-body");
  for (const [tag, text] of data.about) {
    const made = document.createElement(tag);
    made.textContent = text;
    about.append(made);
  }

  const all = () => { compare(); pareto(); training(); viewer(); paperTable(); };
  for (const id of ["metric", "rate"]) by(id).addEventListener("change", compare);
  by("arrivals").addEventListener("change", () => { compare(); pareto(); training(); });
  by("scenario").addEventListener("change", () => { refill(); compare(); pareto(); training(); });
  by("recording").addEventListener("change", viewer);
  by("paper-metric").addEventListener("change", paperTable);
  by("theme").addEventListener("click", () => {
    setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    all();
  });
  all();
  document.body.dataset.ready = "yes";
})();
