  /* ---- the same workloads on several engines ---- */
  const engines = () => {
    const { sentences, points: own } = data.engines;
    by("engines").hidden = own.length === 0;
    if (!own.length) return;
    by("engines-told").replaceChildren(...sentences.map((text) => element("p", text)));
    const labels = own.map((row) => plain(short(row.label, 44)));
    const joined = own.flatMap((row, k) => [...row.success.map((value) => [value, labels[k]]), [null, labels[k]]]);
    const dots = (title, side, colour, symbol) => ({
      name: title, mode: "markers", x: own.map((row) => row.success[side]), y: labels,
      marker: { color: colour, symbol, size: 11 },
      text: own.map((row) => `${plain(row.label)}<br>${row.engines[side]} ${number(row.success[side])}`),
      hovertemplate: "%{text}<extra></extra>",
    });
    const height = 110 + 34 * own.length;
    by("chart-engines").style.height = `${height}px`;
    draw("chart-engines", [
      { mode: "lines", x: joined.map((pair) => pair[0]), y: joined.map((pair) => pair[1]), line: { color: css("--grey"), width: 2 }, hoverinfo: "skip" },
      dots(unique(own.map((row) => row.engines[0])).join(", "), 0, css("--ink"), "diamond"),
      dots(unique(own.map((row) => row.engines[1])).join(", "), 1, css("--focus"), "circle"),
    ], {
      height, xaxis: { title: { text: "success rate" } },
      yaxis: { autorange: "reversed", type: "category" },
    }, "success rate on each engine");
    tableViews.engines = () => data.engines.table;
  };
