  /* ---- success against cost at one load: labelled points and the frontier ---- */
  const logged = (cost) => Math.log10(1 + Math.max(0, cost)); // nothing is at 0, and stays there
  const pareto = () => {
    const [scenario, arrivals, rate] = place();
    const loads = unique(rows.filter((row) => row.scenario === scenario).map((row) => `${row.arrivals} ${row.rate}`)).length;
    const points = methods.map((method) => {
      const success = at(scenario, arrivals, rate, method, "success_rate"), cost = at(scenario, arrivals, rate, method, "update_cost_rate");
      return success && cost && success.mean !== null && cost.mean !== null ? { method, x: cost.mean, y: success.mean, success, cost } : null;
    }).filter((point) => point);
    const deployable = points.filter((point) => !looks.get(point.method).yardstick);
    const beaten = (one) => deployable.some((other) => other.x <= one.x && other.y >= one.y && (other.x < one.x || other.y > one.y));
    const frontier = deployable.filter((point) => !beaten(point)).sort((a, b) => a.x - b.x);
    const onFrontier = new Set(frontier.map((point) => point.method));
    const largest = Math.max(1, ...points.map((point) => logged(point.x)));
    const xrange = [-0.06 * largest, 1.12 * largest], lows = points.map((point) => point.y);
    const low = Math.min(...lows), high = Math.max(...lows), pad = 0.12 * Math.max(high - low, 0.02), yrange = [low - pad, high + pad];

    /* Names: the nearest place beside its point that is free and inside of the chart; a line leads to one that is far. */
    const box = by("chart-pareto"), head = narrow() ? 10 : 34, width = Math.max(200, box.clientWidth - 80), height = Math.max(150, box.clientHeight - head - 50);
    const px = (point) => [((logged(point.x) - xrange[0]) / (xrange[1] - xrange[0])) * width, ((yrange[1] - point.y) / (yrange[1] - yrange[0])) * height];
    const taken = points.map((point) => { const [x, y] = px(point); return [x - 7, y - 7, x + 7, y + 7]; });
    frontier.forEach((point, k) => {
      const [x, y] = px(point), [right, below] = frontier[k + 1] ? px(frontier[k + 1]) : [width, y];
      taken.push([x, y - 2, right, y + 2], [right - 2, Math.min(y, below), right + 2, Math.max(y, below)]);
    });
    const free = (b) => b[0] >= 0 && b[2] <= width && b[1] >= 0 && b[3] <= height && !taken.some((t) => b[0] < t[2] && t[0] < b[2] && b[1] < t[3] && t[1] < b[3]);
    const wanted = [...points].sort((a, b) => Number(b.method === data.focus) - Number(a.method === data.focus)
      || Number(onFrontier.has(b.method)) - Number(onFrontier.has(a.method)) || b.y - a.y);
    /* Beside its own mark, and not nearer to another's; or with a line that says whose it is. */
    const gap = (point, b) => { const [x, y] = px(point); return Math.hypot(Math.max(b[0] - x, 0, x - b[2]), Math.max(b[1] - y, 0, y - b[3])); };
    const clear = (point, place) => place.far > near || points.every((other) => gap(other, place.box) >= gap(point, place.box));
    const names = [], near = 12;
    for (const point of wanted) {
      const text = short(point.method, narrow() ? 18 : 34), wide = 6.8 * text.length + 4, [x, y] = px(point);
      const found = [12, 24, 40, 60, 84].flatMap((far) => [[1, -0.4], [1, 0.4], [-1, -0.4], [-1, 0.4], [0, -1], [0, 1], [1, -1], [1, 1], [-1, -1], [-1, 1]]
        .map(([right, down]) => {
          const cx = x + right * (far + wide / 2), cy = y + down * (far + 4);
          return { far, cx, cy, box: [cx - wide / 2, cy - 8, cx + wide / 2, cy + 8] };
        })).find((place) => free(place.box) && clear(point, place));
      if (!found) continue; // its mark is there, and so is the table
      taken.push(found.box);
      names.push({
        x: logged(point.x), y: point.y, ax: found.cx - x, ay: found.cy - y, text: plain(text), standoff: 7, startstandoff: 0, borderpad: 1,
        arrowhead: 0, arrowwidth: 1, arrowcolor: found.far > near ? css("--grey") : "rgba(0,0,0,0)",
        font: { size: 12, color: isLit(point.method) ? ownColour(point.method) : onFrontier.has(point.method) ? css("--ink") : css("--quiet") },
      });
    }
    const traces = [{
      name: "frontier", mode: "lines", x: [...frontier.map((point) => logged(point.x)), xrange[1]], y: [...frontier, ...frontier.slice(-1)].map((point) => point.y),
      line: { color: css("--quiet"), width: 1.5, shape: "hv" }, hoverinfo: "skip",
    }];
    /* The focus is drawn last: what is at the same place stays visible around it, not over it. */
    for (const point of [...points].sort((a, b) => Number(a.method === data.focus) - Number(b.method === data.focus))) {
      const tint = isLit(point.method) ? ownColour(point.method) : onFrontier.has(point.method) ? css("--ink") : css("--grey");
      traces.push({
        name: plain(point.method), meta: point.method, mode: "markers", x: [logged(point.x)], y: [point.y], cliponaxis: false,
        error_x: { type: "data", symmetric: false, array: [logged(point.x + half(point.cost)) - logged(point.x)],
          arrayminus: [logged(point.x) - logged(point.x - half(point.cost))], thickness: 1, width: 3, color: tint },
        error_y: { type: "data", array: [half(point.success)], thickness: 1, width: 3, color: tint },
        marker: { color: tint, symbol: symbol(point.method), size: point.method === data.focus ? 16 : 10 },
        hovertemplate: `<b>${plain(point.method)}</b><br>success ${plain(told(point.success))}<br>cost ${plain(told(point.cost))} units/s<extra></extra>`,
      });
    }
    const ticks = (narrow() ? [0, 1, 10, 100, 1000, 10000] : [0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 30000]).filter((tick) => logged(tick) <= xrange[1]);
    by("pareto-title").textContent = `${scenario}, ${arrivals}, ${loadName(scenario, rate)}${loads > 1 ? " (choose other arrivals or another load above)" : ""}. Lines around a mark are 95 % intervals.`;
    draw("chart-pareto", traces, {
      xaxis: { title: { text: "update cost (units/s)" }, range: xrange, tickvals: ticks.map(logged), ticktext: ticks.map(String), zeroline: false },
      yaxis: { title: { text: "success rate" }, range: yrange, ...PERCENT }, annotations: names, margin: { l: 55, r: 15, t: head, b: 45 },
    }, "success rate against update cost of every method");
    tableViews.pareto = () => ({
      header: ["method", "success rate", "update cost (units/s)", "net utility per task", "note"],
      rows: [...points].sort((a, b) => b.y - a.y).map((point) => [
        point.method, told(point.success), told(point.cost), told(at(scenario, arrivals, rate, point.method, "net_utility_per_task")),
        looks.get(point.method).yardstick ? "yardstick" : onFrontier.has(point.method) ? "on the frontier" : "",
      ]),
    });
  };
