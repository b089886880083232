  /* ---- what was studied, in plain words: the site as a drawing, the workload, terms, methods ---- */
  const siteOf = (scenario) => data.sites.find((each) => each.scenario === scenario);
  const cells = (scenario) => ((siteOf(scenario) || { ens: 1 }).ens > 1 ? " per cell" : "");
  const rateText = (rate) => String(rate < 10 ? rate : Math.round(10 * rate) / 10);
  const loadName = (scenario, rate) => `${rateText(rate)} tasks/s${cells(scenario)}`;

  const drawing = (site) => {
    const most = 6, rowHeight = 54, shown = (count) => Math.min(count, most);
    const rowsOf = (count) => shown(count) + (count > most ? 0.6 : 0), tallest = Math.max(rowsOf(site.ens), rowsOf(site.sns));
    const made = (tag, attributes, text) => {
      const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
      if (text !== undefined) node.textContent = text;
      return node;
    };
    const height = tallest * rowHeight + 34, y = (k, count) => 30 + ((tallest - rowsOf(count)) / 2 + k) * rowHeight + rowHeight / 2;
    const svg = made("svg", { viewBox: `0 0 560 ${height}`, role: "img", class: "site",
      "aria-label": `Devices send tasks to ${site.ens} edge node${site.ens > 1 ? "s" : ""}, which can pass them on to ${site.sns} service node${site.sns > 1 ? "s" : ""}` });
    for (const [x, text] of [[60, "devices"], [215, "edge nodes (EN)"], [460, "service nodes (SN)"]]) svg.append(made("text", { x, y: 14, class: "head" }, text));
    for (const [en, sn] of site.links) svg.append(made("line", { x1: 270, y1: y(en, site.ens), x2: 405, y2: y(sn, site.sns) }));
    const box = (x, middle, name, slots) => {
      svg.append(made("rect", { x: x - 55, y: middle - 20, width: 110, height: 40, rx: 6 }),
        made("text", { x, y: middle - 3 }, name), made("text", { x, y: middle + 13, class: "small" }, `${slots} slot${slots > 1 ? "s" : ""}`));
    };
    const more = (x, count) => { if (count > most) svg.append(made("text", { x, y: y(most - 0.2, count), class: "small" }, `and ${count - most} more`)); };
    for (let en = 0; en < shown(site.ens); en += 1) {
      const middle = y(en, site.ens), dots = Math.min(site.ues, 4);
      svg.append(made("line", { x1: 95, y1: middle, x2: 160, y2: middle }));
      for (let k = 0; k < dots; k += 1) svg.append(made("circle", { cx: 60 + 16 * (k - (dots - 1) / 2), cy: middle - 6, r: 5 }));
      svg.append(made("text", { x: 60, y: middle + 14, class: "small" }, `${site.ues} device${site.ues > 1 ? "s" : ""}`));
      box(215, middle, `EN ${en}`, site.enSlots[en]);
    }
    for (let sn = 0; sn < shown(site.sns); sn += 1) box(460, y(sn, site.sns), `SN ${sn}`, site.snSlots[sn]);
    more(215, site.ens);
    more(460, site.sns);
    return svg;
  };
  const paragraphs = (texts) => texts.map((text) => element("li", text));
  const explain = () => {
    const site = siteOf(by("scenario").value);
    by("explained").hidden = by("methods-told").hidden = !data.terms.length;
    if (site) {
      by("site-drawing").replaceChildren(drawing(site));
      by("site-words").replaceChildren(...paragraphs(site.site));
      by("workload-words").replaceChildren(...paragraphs(site.workload));
    }
    by("terms").replaceChildren(...data.terms.flatMap(([term, meaning]) => [element("dt", term), element("dd", meaning)]));
    by("tuning").textContent = data.tuning;
    by("methods-list").replaceChildren(...data.methods.flatMap((each) => {
      const name = element("dt", each.method), told = element("dd", `${each.summary} `);
      if (each.method === data.focus) name.className = "focus";
      told.append(element("span", `(${each.reference})`, "note"));
      return [name, told];
    }));
  };
