  /* ---- the comparison: standings at one load, a metric over all loads ---- */
  const rows = (() => {
    const columns = data.summary, names = Object.keys(columns);
    return names.length ? columns[names[0]].map((_, k) => Object.fromEntries(names.map((name) => [name, columns[name][k]]))) : [];
  })();
  const keyed = new Map(rows.map((row) => [JSON.stringify([row.scenario, row.arrivals, row.rate, row.method, row.metric]), row]));
  const methods = unique(rows.map((row) => row.method));
  const place = () => [by("scenario").value, by("arrivals").value, Number(by("rate").value)];
  const at = (scenario, arrivals, rate, method, metric) => keyed.get(JSON.stringify([scenario, arrivals, rate, method, metric]));
  const half = (row) => (row.runs === 2 ? row.std / Math.SQRT2 : row.ci95) || 0;
  const told = (row) => (row ? row.text : "–"); // as all tables have it
  const titleOf = (metric) => (data.metrics[metric] || { label: metric }).label;
  const ratesOf = (scenario, arrivals) =>
    unique(rows.filter((row) => row.scenario === scenario && row.arrivals === arrivals).map((row) => row.rate)).sort((a, b) => a - b);

  const refill = () => {
    const own = rows.filter((row) => row.scenario === by("scenario").value);
    const processes = unique(own.map((row) => row.arrivals));
    fill("arrivals", processes, null, by("arrivals").value || "poisson");
    const rates = ratesOf(by("scenario").value, by("arrivals").value);
    fill("rate", rates, rates.map((rate) => loadName(by("scenario").value, rate)), by("rate").value || rates[rates.length - 1]);
  };
  const pairOf = (scenario, arrivals, rate, method) => data.pairs.find((pair) =>
    pair.scenario === scenario && pair.arrivals === arrivals && pair.rate === rate && pair.method === method);

  const sayVerdict = () => {
    const told = data.verdicts.find((each) => each.scenario === by("scenario").value);
    by("verdict").textContent = told ? told.sentence : `${data.focus} has no results on ${by("scenario").value}: it failed or was not played. No verdict.`;
    by("verdict-where").textContent = told ? told.where : "";
    by("claims").replaceChildren(...(told ? told.claims : []).map((text) => element("p", text)));
  };

  /* The chosen metric of every method at one load, best first, with intervals; other numbers beside it. */
  const OTHERS = ["success_rate", "net_utility_per_task", "update_cost_rate", "status_rate"];
  const bars = () => {
    const [scenario, arrivals, rate] = place(), metric = by("metric").value, { better, is_share: isShare } = data.metrics[metric];
    const of = (method, name) => at(scenario, arrivals, rate, method, name);
    const here = methods.filter((method) => of(method, metric)), others = OTHERS.filter((name) => name !== metric && methods.some((method) => of(method, name)));
    const value = (method) => (of(method, metric).mean === null ? -Infinity : (better || 1) * of(method, metric).mean);
    const ranked = here.sort((a, b) => Number(looks.get(a).yardstick) - Number(looks.get(b).yardstick) || value(b) - value(a) || Number(b === data.focus) - Number(a === data.focus));
    const full = isShare ? 1 : Math.max(1e-9, ...here.map((method) => (of(method, metric).mean || 0) + half(of(method, metric))));
    const share = (number) => 100 * Math.min(1, Math.max(0, number / full));
    const leads = metric === "success_rate";
    const header = ["#", "method", titleOf(metric), ...(leads ? [`${short(data.focus, 24)} minus it (points)`] : []), ...others.map(titleOf)];
    const made = element("table", undefined, "bars");
    const head = element("tr", undefined, "head");
    head.append(...header.map((text) => element("th", text)));
    made.append(head);
    let yardstickSeen = false;
    ranked.forEach((method, k) => {
      const look = looks.get(method), row = element("tr"), pair = pairOf(scenario, arrivals, rate, method);
      if (method === data.focus) row.classList.add("focus");
      if (look.yardstick) {
        row.classList.add("yardstick");
        if (!yardstickSeen) row.classList.add("first-yardstick");
        yardstickSeen = true;
      }
      const own = of(method, metric), mean = own.mean || 0;
      const bar = element("td", undefined, "bar"), track = element("div"), fillOf = element("i"), interval = element("b");
      fillOf.style.width = `${share(mean)}%`;
      interval.style.left = `${share(mean - half(own))}%`;
      interval.style.width = `${share(mean + half(own)) - share(mean - half(own))}%`;
      track.append(fillOf, interval);
      bar.append(element("span", told(own)), track);
      const cells = [
        element("td", look.yardstick ? "" : k + 1), element("td", look.yardstick ? `${method} (yardstick)` : method), bar,
        ...(leads ? [element("td", pair ? pair.success : "–")] : []), ...others.map((name) => element("td", told(of(method, name)))),
      ];
      cells.forEach((cell, column) => { cell.dataset.label = header[column]; });
      row.append(...cells);
      row.dataset.method = method;
      made.append(row);
    });
    by("bars").replaceChildren(made);
    by("bars-title").textContent = `${scenario}, ${arrivals}, ${loadName(scenario, rate)}: ${better ? "best" : "highest"} ${titleOf(metric)} first`;
    by("metric-note").textContent = `${capital(data.metrics[metric].title)}: ${data.metrics[metric].meaning}.${better ? ` ${better > 0 ? "More" : "Less"} is better.` : ""}`;
    by("yardsticks").hidden = !yardstickSeen;
    by("yardsticks").textContent = data.yardstickNote;
  };

  /* From 0, unless all is far from it: then the differences matter. Intervals that are shown fit in. */
  const rangeOf = (traces) => {
    const values = traces.flatMap((trace) => trace.y.flatMap((value, k) => {
      const half = trace.error_y && trace.error_y.visible ? trace.error_y.array[k] : 0;
      return [value - half, value + half];
    }));
    if (!values.length) return [0, 1];
    const low = Math.min(...values), high = Math.max(...values), from = low > 0 && low < high / 2 ? 0 : low;
    const pad = 0.05 * (high - from) || 0.5;
    return [from === 0 ? 0 : from - pad, high + pad];
  };
  /* On a wide screen each line has its name at its right end; names that would touch move apart. */
  const lineNames = (traces, last, [low, high]) => {
    if (narrow()) return {};
    const span = high - low;
    const height = Math.max(150, by("chart-load").clientHeight - 79), lineHeight = 15;
    const ends = traces.filter((trace) => typeof trace.meta === "string" && trace.x[trace.x.length - 1] === last)
      .map((trace) => ({ method: trace.meta, value: trace.y[trace.y.length - 1] })).sort((a, b) => a.value - b.value);
    const natural = (end) => ((end.value - low) / span) * height; // pixels above the bottom
    let least = 0, most = height;
    for (const end of ends) { end.at = Math.max(natural(end), least); least = end.at + lineHeight; }
    for (const end of [...ends].reverse()) { end.at = Math.min(end.at, most); most = end.at - lineHeight; }
    return {
      margin: { l: 55, r: 15, t: 34, b: 45 }, // no name under the tool bar
      annotations: ends.map((end) => ({
        x: last, xanchor: "left", xshift: 10, y: end.value, yshift: end.at - natural(end), showarrow: false, text: plain(short(end.method, 26)),
        font: { size: 12, color: isLit(end.method) ? ownColour(end.method) : css("--quiet") },
      })),
    };
  };

  const PERCENT = { tickformat: ".4~p", exponentformat: "none" };
  const load = () => {
    const metric = by("metric").value, [scenario, arrivals] = place(), isShare = data.metrics[metric].is_share;
    const rates = ratesOf(scenario, arrivals);
    const order = [...methods].sort((a, b) => Number(isLit(a)) - Number(isLit(b)) || Number(a === data.focus) - Number(b === data.focus));
    const traces = [];
    for (const method of order) {
      const line = rates.map((rate) => at(scenario, arrivals, rate, method, metric)).filter((row) => row && row.mean !== null);
      if (!line.length) continue;
      traces.push({
        name: plain(method), meta: method, mode: "lines+markers", x: line.map((row) => row.rate), y: line.map((row) => row.mean),
        error_y: { array: line.map(half), thickness: 1, width: 3, visible: isLit(method) }, opacity: isLit(method) ? 1 : 0.7,
        line: { color: colour(method), width: method === data.focus ? 3 : 1.5, dash: looks.get(method).dash },
        marker: { color: colour(method), symbol: symbol(method), size: method === data.focus ? 11 : 7 },
        text: line.map((row) => plain(told(row))),
        hovertemplate: `<b>${plain(method)}</b><br>%{x} tasks/s: %{text}<extra></extra>`,
      });
      const paper = line.filter((row) => row.paper !== null);
      if (paper.length) traces.push({
        name: `${plain(method)} (paper)`, mode: "markers", x: paper.map((row) => row.rate), y: paper.map((row) => row.paper),
        marker: { color: colour(method), symbol: "x-thin", size: 9, line: { width: 2, color: colour(method) } },
        hovertemplate: `<b>${plain(method)}</b>, the paper<br>%{x} tasks/s: ${isShare ? "%{y:.1%}" : "%{y}"}<extra></extra>`,
      });
    }
    if (metric === "success_rate") {
      const bound = data.bounds.filter((row) => row.scenario === scenario && row.arrivals === arrivals).sort((a, b) => a.rate - b.rate);
      const known = bound.filter((row) => row.clairvoyant_bound !== null);
      if (known.length) traces.push({ name: "clairvoyant bound", mode: "markers", x: known.map((row) => row.rate), y: known.map((row) => row.clairvoyant_bound),
        marker: { color: css("--quiet"), symbol: "line-ew-open", size: 16 } });
      for (const [key, name, dash] of [["fluid_bound", "fluid bound", "dash"], ["mean_bound", "µ*/rate", "dot"]]) {
        traces.push({ name, mode: "lines", x: bound.map((row) => row.rate), y: bound.map((row) => row[key]), line: { color: css("--quiet"), dash, width: 1 } });
      }
    }
    const one = rates.length < 2; // one load: the standings say it all
    by("load-title").textContent = capital(`${titleOf(metric)} over the load, ${arrivals}`);
    const bounded = traces.some((trace) => trace.name === "fluid bound" && trace.x.length), notes = ["Means over runs with 95 % Student-t intervals; of two runs, their range."];
    if (arrivals === "trace") notes.push("Intervals of a trace are widened by what its resampled episodes have in common.");
    if (!one && traces.some((trace) => /\(paper\)$/.test(trace.name))) notes.push("Crosses are the paper's own numbers.");
    if (!one && bounded) notes.push("Dashed line: the fluid bound, what all nodes can serve if they take the smallest tasks first; dotted: µ*/rate, which the paper calls the upper bound.");
    by("load-note").textContent = notes.join(" ");
    for (const id of ["load-title", "chart-load", "methods"]) by(id).hidden = one;
    for (const each of [by("load-title").nextElementSibling, document.querySelector('[data-table="load"]')]) each.hidden = one;
    tableViews.load = () => ({
      header: [titleOf(metric), ...rates.map((rate) => loadName(scenario, rate))],
      rows: methods.map((method) => [method, ...rates.map((rate) => told(at(scenario, arrivals, rate, method, metric)))]),
    });
    if (one) return;
    draw("chart-load", traces, {
      xaxis: { title: { text: "tasks/s in each cell" }, tickvals: rates }, yaxis: { range: rangeOf(traces), ...(isShare ? PERCENT : {}) }, ...lineNames(traces, rates[rates.length - 1], rangeOf(traces)),
    }, `${titleOf(metric)} of every method over the load`);
  };

  const chips = () => {
    by("methods").replaceChildren(...methods.map((method) => {
      const chip = element("button", method);
      chip.type = "button";
      chip.dataset.method = method;
      const show = () => {
        chip.setAttribute("aria-pressed", String(isLit(method)));
        chip.style.borderColor = isLit(method) ? ownColour(method) : css("--line");
      };
      show();
      chip.disabled = method === data.focus;
      chip.addEventListener("click", () => {
        if (state.lit.has(method)) state.lit.delete(method); else state.lit.add(method);
        show();
        load();
        pareto();
      });
      return chip;
    }));
  };
  /* Pointing at a line lights it until the pointer leaves. */
  const lightOnHover = (id, redraw) => {
    const chart = by(id);
    if (!chart.on || chart.dataset.listens) return;
    chart.dataset.listens = "yes";
    const light = (method) => {
      if (state.hover === method) return;
      state.hover = method;
      requestAnimationFrame(redraw);
    };
    chart.on("plotly_hover", (event) => { const meta = event.points[0].data.meta; if (typeof meta === "string") light(meta); });
    chart.on("plotly_unhover", () => light(null));
  };
