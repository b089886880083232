  /* ---- simulator against real nodes ---- */
  const live = () => {
    const own = data.live || [];
    by("live").hidden = own.length === 0;
    if (!own.length) return;
    const name = (row) => `${row.method}, ${row.load}`;
    const labels = own.map((row) => plain(short(name(row), 44)));
    const joined = own.flatMap((row, k) => [[row.simulated, labels[k]], [row.live, labels[k]], [null, labels[k]]]);
    const dots = (title, share, colour, symbol) => ({
      name: title, mode: "markers", x: own.map((row) => row[share]), y: labels,
      marker: { color: colour, symbol: own.map((row) => symbol + (row.valid ? "" : "-open")), size: 11 },
      text: own.map((row) => `${plain(name(row))}<br>${title} ${number(row[share])}${row.valid ? "" : ", no verdict"}`),
      hovertemplate: "%{text}<extra></extra>",
    });
    const height = 110 + 34 * own.length;
    by("chart-live").style.height = `${height}px`;
    draw("chart-live", [
      { mode: "lines", x: joined.map((pair) => pair[0]), y: joined.map((pair) => pair[1]), line: { color: css("--grey"), width: 2 }, hoverinfo: "skip" },
      dots("simulator", "simulated", css("--ink"), "diamond"),
      dots("live", "live", css("--focus"), "circle"),
    ], {
      height, xaxis: { title: { text: "share of tasks in time" } },
      yaxis: { autorange: "reversed", type: "category" },
    }, "share of tasks in time, simulator against live");
    tableViews.live = () => ({ header: data.liveHeader, rows: own.map((row) => row.cells) });
  };
