  /* Large parts are kept compressed; nothing is fetched. */
  const unpacked = async (id) => {
    const text = by(id).textContent;
    if (!text) return "null";
    const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  };
  const data = JSON.parse(await unpacked("data"));
  /* Plotly reads tags, entities and %{…} in texts: names must not have any. */
  const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/%/g, "&#37;");

  /* ---- how methods look: the focus strong, the others grey until they are lit ---- */
  const looks = new Map(data.looks.map((look) => [look.method, look]));
  const state = { lit: new Set(), hover: null, span: 2000, range: null, task: null };
  const ownColour = (method) => {
    const look = looks.get(method);
    if (!look) return css("--grey");
    if (method === data.focus) return css("--focus");
    return look.yardstick ? css("--ink") : look.colour;
  };
  const isLit = (method) => method === data.focus || state.lit.has(method) || state.hover === method;
  const colour = (method) => (isLit(method) ? ownColour(method) : css("--grey"));
  const symbol = (method) => {
    const look = looks.get(method);
    return look ? look.symbol + (look.yardstick ? "-open" : "") : "circle";
  };

  /* ---- charts ---- */
  const layout = (more) => {
    const axis = { gridcolor: css("--line"), zerolinecolor: css("--line"), linecolor: css("--line"), automargin: true };
    const merged = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest", showlegend: false,
      font: { color: css("--ink"), family: "system-ui, sans-serif", size: 12 }, margin: { l: 55, r: 15, t: 10, b: 45 },
      hoverlabel: { align: "left", namelength: -1 }, modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--quiet"), activecolor: css("--ink") },
      ...more,
    };
    for (const key of unique([...Object.keys(merged), "xaxis", "yaxis"])) {
      if (/^[xy]axis/.test(key)) merged[key] = { ...axis, ...merged[key] };
    }
    return merged;
  };
  const options = () => ({
    responsive: true, displaylogo: false, displayModeBar: narrow() ? false : "hover", showSendToCloud: false,
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
  });
  const draw = (id, traces, more, label) => {
    const place = by(id);
    place.setAttribute("aria-label", `${label}; the same numbers are in the table below`);
    return Plotly.react(place, traces, layout(more), options());
  };

  /* ---- tables: of everything that is drawn, made when somebody looks ---- */
  const table = (target, header, body) => {
    const line = (cells, tag) => {
      const row = element("tr");
      row.append(...cells.map((cell) => element(tag, cell)));
      return row;
    };
    target.replaceChildren(line(header, "th"), ...body.map((cells) => line(cells, "td")));
  };
  /* What is wider than the screen scrolls by itself, by keyboard as well. */
  const scrolls = (box, label) => {
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", label);
    return box;
  };
  const tableViews = {};
  const fillTables = () => {
    for (const details of document.querySelectorAll("details[data-table]")) {
      const view = tableViews[details.dataset.table];
      if (!details.open || !view) continue;
      const made = element("table"), box = details.querySelector(".scroll");
      const { header, rows } = view();
      table(made, header, rows);
      scrolls(box, details.querySelector("summary").textContent).replaceChildren(made);
    }
  };
  for (const details of document.querySelectorAll("details[data-table]")) details.addEventListener("toggle", fillTables);
