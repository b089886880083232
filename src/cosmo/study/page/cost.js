  /* ---- success against cost at one load: labelled points and the frontier ---- */
  const logged = (cost) => Math.log10(1 + Math.max(0, cost)); // nothing is at 0, and stays there
  const pareto = () => {
    const [scenario, arrivals, rate] = place();
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

    /* Labels: the first of four places beside its point that is free and inside of the chart. */
    const box = by("chart-pareto"), width = Math.max(200, box.clientWidth - 80), height = Math.max(150, box.clientHeight - 60);
    const px = (point) => [((logged(point.x) - xrange[0]) / (xrange[1] - xrange[0])) * width, ((yrange[1] - point.y) / (yrange[1] - yrange[0])) * height];
    const taken = points.map((point) => { const [x, y] = px(point); return [x - 6, y - 6, x + 6, y + 6]; });
    const free = (b) => b[0] >= 0 && b[2] <= width && b[1] >= 0 && b[3] <= height && !taken.some((t) => b[0] < t[2] && t[0] < b[2] && b[1] < t[3] && t[1] < b[3]);
    const wanted = [...points].sort((a, b) => Number(b.method === data.focus) - Number(a.method === data.focus)
      || Number(onFrontier.has(b.method)) - Number(onFrontier.has(a.method)) || b.y - a.y);
    const labels = new Map();
    for (const point of wanted) {
      const text = short(point.method, narrow() ? 18 : 34), wide = 6.6 * text.length + 6, [x, y] = px(point);
      const places = {
        "middle right": [x + 9, y - 8, x + 9 + wide, y + 8], "middle left": [x - 9 - wide, y - 8, x - 9, y + 8],
        "top center": [x - wide / 2, y - 25, x + wide / 2, y - 9], "bottom center": [x - wide / 2, y + 9, x + wide / 2, y + 25],
      };
      const chosen = Object.keys(places).find((name) => free(places[name]));
      if (chosen) { labels.set(point.method, [text, chosen]); taken.push(places[chosen]); }
    }
    const traces = [{
      name: "frontier", mode: "lines", x: [...frontier.map((point) => logged(point.x)), xrange[1]], y: [...frontier, ...frontier.slice(-1)].map((point) => point.y),
      line: { color: css("--quiet"), width: 1.5, shape: "hv" }, hoverinfo: "skip",
    }];
    for (const point of points) {
      const [text, position] = labels.get(point.method) || ["", "top center"], strong = isLit(point.method) || onFrontier.has(point.method);
      const tint = isLit(point.method) ? ownColour(point.method) : onFrontier.has(point.method) ? css("--ink") : css("--grey");
      traces.push({
        name: plain(point.method), meta: point.method, mode: "markers+text", x: [logged(point.x)], y: [point.y], text: [plain(text)], textposition: position,
        textfont: { color: strong ? tint : css("--quiet"), size: 12 }, cliponaxis: false,
        marker: { color: tint, symbol: symbol(point.method), size: point.method === data.focus ? 16 : 10 },
        hovertemplate: `<b>${plain(point.method)}</b><br>success ${plain(told(point.success, 3))}<br>cost ${plain(told(point.cost, 1))} units/s<extra></extra>`,
      });
    }
    const ticks = [0, 1, 3, 10, 30, 100, 300, 1000, 3000].filter((tick) => logged(tick) <= xrange[1]);
    by("pareto-title").textContent = `${scenario}, ${arrivals}, ${rate} tasks/s (choose another load above).`;
    draw("chart-pareto", traces, {
      xaxis: { title: { text: "update cost (units/s)" }, range: xrange, tickvals: ticks.map(logged), ticktext: ticks.map(String), zeroline: false },
      yaxis: { title: { text: "success rate" }, range: yrange },
    }, "success rate against update cost of every method");
    tableViews.pareto = () => ({
      header: ["method", "success rate", "update cost (units/s)", "net utility per task", ""],
      rows: [...points].sort((a, b) => b.y - a.y).map((point) => [
        point.method, told(point.success, 3), told(point.cost, 1), told(at(scenario, arrivals, rate, point.method, "net_utility_per_task"), 1),
        looks.get(point.method).yardstick ? "yardstick" : onFrontier.has(point.method) ? "on the frontier" : "",
      ]),
    });
  };
