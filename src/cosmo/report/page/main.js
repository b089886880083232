  /* ---- texts and tables ---- */
  const paperHeader = data.paper.length ? data.paper[0].header : [], paperRows = data.paper.flatMap((each) => each.rows);
  const paperTable = () => {
    const metric = by("paper-metric").value;
    const own = paperRows.filter((row) => metric === "all" || row[0] === metric);
    table(by("paper-table"), paperHeader, own.map(([name, ...cells]) => [titleOf(name), ...cells]));
  };
  const metricsOfPaper = ["all", ...unique(paperRows.map((row) => row[0]))];
  fill("paper-metric", metricsOfPaper, metricsOfPaper.map(titleOf));
  by("paper").hidden = paperRows.length === 0;
  by("tables").hidden = data.tables.length === 0;
  by("tables-body").replaceChildren(...data.tables.map((each, k) => {
    const box = scrolls(element("div", undefined, "scroll"), each.title), made = element("table");
    table(made, each.header, each.rows);
    box.append(made);
    const details = element("details");
    details.open = k === 0;
    details.append(element("summary", each.title), box);
    return details;
  }));
  window.addEventListener("beforeprint", () => { for (const each of by("tables-body").children) each.open = true; });
  by("subtitle").textContent = data.subtitle;
  by("about-body").replaceChildren(...data.about.map(([tag, text], k) => {
    const made = element(tag, text);
    return tag === "pre" ? scrolls(made, `text ${k}`) : made;
  }));
  paperTable();

  /* ---- all of it: words and numbers first, charts as soon as their library is unpacked ---- */
  const compared = rows.length > 0;
  if (compared) {
    const metrics = unique(rows.map((row) => row.metric));
    fill("metric", metrics, metrics.map(titleOf), "success_rate");
    const scenarios = unique(rows.map((row) => row.scenario));
    fill("scenario", scenarios, null, data.home);
    refill();
    by("compare").hidden = by("pareto").hidden = false;
    explain();
    chips();
    bars();
    sayVerdict();
  }
  const library = document.createElement("script");
  library.textContent = await unpacked("plotly");
  document.head.append(library);
  await startViewer();

  const charts = () => {
    if (compared) { load(); pareto(); training(); lightOnHover("chart-load", load); lightOnHover("chart-pareto", pareto); }
    engines();
    viewer();
    if (player) player.refresh();
    fillTables();
    document.body.dataset.drawn = `${window.innerWidth} ${theme()}`; // what the charts were drawn for
  };
  charts();
  if (episodes.length) { showMap(); begin(); }
  const sections = [...document.querySelectorAll("main section")].filter((section) => !section.hidden);
  document.querySelector("nav").replaceChildren(...sections.map((section) => {
    const link = element("a", section.dataset.title);
    link.href = `#${section.id}`;
    return link;
  }));
  const moved = () => { bars(); load(); pareto(); training(); fillTables(); };
  by("metric").addEventListener("change", () => { bars(); load(); fillTables(); });
  by("rate").addEventListener("change", moved);
  by("arrivals").addEventListener("change", () => { refill(); moved(); });
  by("scenario").addEventListener("change", () => { refill(); sayVerdict(); explain(); moved(); });
  by("paper-metric").addEventListener("change", paperTable);
  followTheme(() => { if (compared) chips(); charts(); });
  /* Labels, legends and tool bars depend on the width: drawn again once it stays. */
  let width = window.innerWidth, waiting = 0;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      if (window.innerWidth === width) return;
      width = window.innerWidth;
      charts();
    }, 100);
  });
  document.body.dataset.ready = "yes";
})();
