  /* ---- training ---- */
  const training = () => {
    const [scenario, arrivals] = place();
    const own = data.curves.filter((curve) => curve.scenario === scenario && (curve.arrivals === arrivals || curve.rate === null));
    by("training").hidden = own.length === 0;
    if (!own.length) return;
    const rates = unique(own.map((curve) => curve.rate)).sort((a, b) => a - b);
    const dashes = unique(own.map((curve) => curve.method)), kinds = ["solid", "dash", "dot", "dashdot", "longdash"];
    const scale = ["#440154", "#3b528b", "#21918c", "#5ec962", "#c7b70d"]; // viridis, light end darkened
    const shade = (rate) => scale[rates.length < 2 ? 2 : Math.round((4 * rates.indexOf(rate)) / (rates.length - 1))];
    const loadOf = (rate) => (rate === null ? "all loads" : `${rate} tasks/s`); // some are trained once for all
    draw("chart-training", own.map((curve) => ({
      name: plain(`${curve.method}, ${loadOf(curve.rate)}, seed ${curve.seed}`), mode: "lines", y: curve.reward, x: curve.reward.map((_, k) => k + 1),
      line: { color: shade(curve.rate), width: 1.3, dash: kinds[dashes.indexOf(curve.method) % kinds.length] },
      hovertemplate: `<b>${plain(curve.method)}</b>, ${loadOf(curve.rate)}, seed ${curve.seed}<br>episode %{x}: %{y:.0f}<extra></extra>`,
    })), { xaxis: { title: { text: "training episode" } }, yaxis: { title: { text: "reward, 5-episode mean" } } }, "training rewards of every run");
    by("training-note").textContent = `One line a run: ${rates.map(loadOf).join(", ")}${rates.length > 1 ? " (dark to light)" : ""}${dashes.length > 1 ? `; ${dashes.map((name, k) => `${kinds[k % kinds.length]}: ${name}`).join(", ")}` : ""}.`;
    tableViews.training = () => ({
      header: ["method", "tasks/s", "seed", "first", "last", "highest"],
      rows: own.map((curve) => [curve.method, curve.rate === null ? "all" : curve.rate, curve.seed, curve.reward[0], curve.reward[curve.reward.length - 1], Math.max(...curve.reward)]),
    });
  };
