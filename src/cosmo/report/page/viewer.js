  /* ---- one episode ---- */
  const shapes = {
    TP: "circle", FP: "x", TN: "square", FN: "diamond", undecided: "circle-open",
    DONE: "circle", LATE: "x", EXPIRED: "x-open", REFUSED: "triangle-down", FAILED: "star", REJECTED: "square",
  };
  const tints = {
    TP: "#009e73", FP: "#d55e00", TN: "#8a919c", FN: "#e69f00", undecided: "#5f6368",
    DONE: "#009e73", LATE: "#d55e00", EXPIRED: "#d55e00", REFUSED: "#cc79a7", FAILED: "#d55e00", REJECTED: "#8a919c",
  };
  const words = {
    TP: "accepted, on time", FP: "accepted, failed", TN: "rejected, no route was feasible", FN: "rejected, a route was feasible", undecided: "never decided",
    DONE: "done in time", LATE: "done, but late", EXPIRED: "no result before the deadline", REFUSED: "refused, no room", FAILED: "failed", REJECTED: "rejected by the method",
  };
  let episodes = [];
  const current = () => episodes[Number(by("recording").value)];
  const nobody = -1;
  const several = (recording) => unique(recording.reach.flat()).filter((sn) => sn !== nobody).length > 1;
  const snName = (recording, sn) => (several(recording) ? `SN ${sn}` : "SN");
  /* An action k > 0 offloads to the k-th SN that the EN reaches; without an EN, to "its k-th". */
  const actionName = (action, recording, en) => {
    if (action < 0) return "not decided";
    if (action === 0) return "local";
    if (action > recording.sns) return "reject";
    if (!several(recording)) return "offload";
    return en === null ? `to its SN no. ${action}` : `to SN ${recording.reach[en][action - 1]}`;
  };
  const chosenEn = () => (by("viewer-en").value === "all" ? null : Number(by("viewer-en").value));
  /* SNs, by number, that the chosen EN reaches; and in which column a task has an SN. */
  const reachedSns = (recording) => unique(chosenEn() === null ? recording.reach.flat() : recording.reach[chosenEn()]).filter((sn) => sn !== nobody).sort((a, b) => a - b);
  const shownSns = (recording) => (by("viewer-sn").value === "all" ? reachedSns(recording) : [Number(by("viewer-sn").value)]);
  const cell = (recording, column, k, sn) => {
    const values = recording.tasks[column][k], place = recording.reach[recording.tasks.en[k]].indexOf(sn);
    return values && place >= 0 ? values[place] : null;
  };
  const inView = (recording, k) => by("viewer-en").value === "all" || recording.tasks.en[k] === Number(by("viewer-en").value);
  const visible = (recording) => {
    const [low, high] = state.range || [0, Infinity];
    return recording.tasks.time.map((_, k) => k).filter((k) => inView(recording, k) && recording.tasks.time[k] >= low && recording.tasks.time[k] <= high);
  };

  const describe = (recording, k) => {
    if (recording.live) return describeLive(recording, k);
    const t = recording.tasks, sns = recording.sns;
    const reach = recording.reach[t.en[k]];
    const names = [...Array(sns + 2).keys()].map((action) => actionName(action, recording, t.en[k]));
    const lines = [
      `task ${t.task[k]} at ${number(t.time[k], 1)} ms${recording.ens > 1 ? `, EN ${t.en[k]}` : ""}: ${names[t.action[k]]} → ${words[t.outcome[k]]}`,
      `${(t.bytes[k] / 1000).toFixed(1)} kB, ${(t.cycles[k] / 1e6).toFixed(2)} Mcycles, ${number(t.deadline[k], 1)} ms to its deadline`,
      `EN: backlog ${number(t.en_backlog[k], 1)} ms, a local wait of ${number(t.local_wait[k], 1)} ms`,
    ];
    for (const sn of reach.filter((each) => each !== nobody)) {
      const told = (column) => cell(recording, column, k, sn), numbers = told("semantic");
      const truth = `true backlog ${number(told("true"), 1)} ms, idle slots ${told("idle_true")}`;
      const heard = numbers ? `status (${numbers.map((value) => number(value)).join(", ")})`
        : t.believed[k] === null ? "no status yet" : `backlog believed ${number(told("believed"), 1)} ms, idle slots believed ${told("idle_believed")}`;
      const name = snName(recording, sn);
      lines.push(recording.status ? `${name}: ${heard}, ${number(told("age"), 1)} ms old; ${truth}` : `${name}: ${truth} (this method has no status)`);
    }
    const there = (route) => route === 0 || route > sns || reach[route - 1] !== nobody;
    // Feasible is room and time: what would be soon enough lacks room.
    const verdict = (route) => (t.feasible[k][route] ? "in time" : t.delays[k][route] <= t.deadline[k] ? "no room" : "too late");
    lines.push(`true delays: ${t.feasible[k].map((_, route) => (there(route) ? `${names[route]} ${verdict(route)} (${number(t.delays[k][route], 1)} ms)` : "")).filter((text) => text).join(", ")}`);
    if (t.values[k]) lines.push(`action values: ${t.values[k].map((value, action) => (there(action) ? `${names[action]} ${number(value)}` : "")).filter((text) => text).join(", ")}`);
    return lines;
  };
  /* Of a decision log: what the node knew of the task, and how it ended. */
  const describeLive = (recording, k) => {
    const t = recording.tasks, since = (time) => (time === null ? "–" : `${number(time - t.time[k], 1)} ms`);
    return [
      `task ${t.task[k]}${t.kind[k] ? ` (${t.kind[k]})` : ""} of UE ${t.ue[k]}, at ${number(t.time[k], 1)} ms: ${actionName(t.action[k], recording, 0)} → ${words[t.outcome[k]]}`,
      `${(t.bytes[k] / 1000).toFixed(1)} kB, ${(t.cycles[k] / 1e6).toFixed(2)} Mcycles, ${number(t.deadline[k], 1)} ms to its deadline`,
      `decided after ${since(t.decided[k])}, answered after ${since(t.finished[k])}${t.rerun[k] ? "; its SN vanished, and the EN took it up itself" : ""}`,
      `at that time ${t.en_requests[k]} tasks were in the EN${t.sn_requests[k].map((count, sn) => `, ${count} at ${snName(recording, sn)}`).join("")}`,
      ...(recording.status ? reachedSns(recording) : []).map((sn) => {
        const numbers = cell(recording, "semantic", k, sn);
        return `${snName(recording, sn)}: ${numbers ? `status (${numbers.map((value) => Number(value.toPrecision(4))).join(", ")}), ${number(cell(recording, "age", k, sn), 1)} ms old` : "no status yet"}`;
      }),
    ];
  };
  const showTask = (k, follow = true) => {
    state.task = k;
    if (follow && player && films.get(current())) { player.play(false); player.seek(films.get(current()).decided[k], k); return; } // comes back by the map
    by("task").textContent = describe(current(), k).join("\n");
    markTask();
  };
  const markTask = () => {
    const recording = current(), chart = by("chart-viewer"), k = state.task;
    if (!chart.data) return;
    const last = chart.data.length - 1, there = k !== null && k < recording.tasks.time.length;
    Plotly.restyle(chart, { x: [there ? [recording.tasks.time[k]] : []], y: [there ? [heightOf(recording, k)] : []] }, [last]);
  };
  const heightOf = (recording, k) => recording.tasks.action[k] + 0.25 * Math.sin(7.3 * k);

  const viewer = () => {
    if (!episodes.length) return;
    const recording = current(), t = recording.tasks, sns = recording.sns, here = shownSns(recording);
    const chosen = recording.live ? [] : here; // of a live node nobody knows what was true at SNs
    const kept = t.time.map((_, k) => k).filter((k) => inView(recording, k));
    const time = kept.map((k) => t.time[k]);
    const traces = [], axes = {}, titles = [];
    /* From the top: a panel an SN, ages, tasks in the nodes, decisions; in pixels, each with its title above it. */
    const heights = [...chosen.map(() => 110), ...(recording.status ? [65] : []), 75, 70 + 30 * (sns + 2)], head = 26;
    const sum = heights.reduce((a, b) => a + b + head, 0);
    let top = 1, panel = 0;
    const nextAxis = (title, more) => {
      const upper = top - head / sum, lower = Math.max(0, upper - heights[panel] / sum);
      axes[panel ? `yaxis${panel + 1}` : "yaxis"] = { domain: [lower, upper], rangemode: "tozero", nticks: 4, ...more };
      titles.push({ xref: "paper", x: 0, xanchor: "left", yref: "paper", y: upper, yanchor: "bottom", showarrow: false, text: `<b>${title}</b>`, font: { size: 12 } });
      top = lower;
      panel += 1;
      return panel > 1 ? `y${panel}` : "y";
    };
    const step = { width: 1.4, shape: "hv" };
    for (const sn of chosen) {
      const name = snName(recording, sn), own = { meta: name, showlegend: sn === chosen[0] }, axis = nextAxis(`${name}: backlog (ms)`);
      traces.push({ ...own, name: "true backlog", x: time, y: kept.map((k) => cell(recording, "true", k, sn)), yaxis: axis, mode: "lines", line: { color: css("--ink"), ...step },
        hovertemplate: "%{x:.1f} ms: true backlog %{y:.1f} ms<extra></extra>" });
      if (!recording.status) continue;
      if (kept.some((k) => t.believed[k])) traces.push({ ...own, name: "what the EN believes", x: time, y: kept.map((k) => cell(recording, "believed", k, sn)), yaxis: axis, mode: "lines",
        line: { color: css("--focus"), dash: "dash", ...step }, hovertemplate: "%{x:.1f} ms: believed %{y:.1f} ms<extra></extra>" });
      const sent = recording.updates.time.filter((_, k) => recording.updates.send[k] && recording.updates.sn[k] === sn);
      traces.push({ ...own, name: "update sent", x: sent, y: sent.map(() => 0), yaxis: axis, mode: "markers", marker: { symbol: "triangle-up", size: 8, color: "#0072b2" },
        hovertemplate: "update sent at %{x:.1f} ms<extra></extra>" });
    }
    /* Several SNs differ in dash and mark as well as in colour. */
    const hues = ["#0072b2", "#cc79a7", "#009e73", "#e69f00", "#56b4e9"], dashes = ["solid", "dash", "dot", "dashdot", "longdash"];
    const marks = ["circle", "square", "diamond", "triangle-up", "cross"];
    const lookOf = (sn) => ({ mode: here.length > 1 ? "lines+markers" : "lines", marker: { symbol: marks[sn % marks.length], size: 6, maxdisplayed: 12, color: hues[sn % hues.length] },
      line: { color: hues[sn % hues.length], dash: dashes[sn % dashes.length], width: 1.3 } });
    if (recording.status) {
      const axis = nextAxis("age of what the EN believes (ms)");
      for (const sn of here) traces.push({ name: `age${several(recording) ? ` of SN ${sn}'s status` : ""}`, x: time, y: kept.map((k) => cell(recording, "age", k, sn)), yaxis: axis, ...lookOf(sn), hovertemplate: "%{x:.1f} ms: %{y:.1f} ms old<extra></extra>" });
    }
    const inside = nextAxis("tasks in the nodes");
    traces.push({ name: "tasks in the EN", x: time, y: kept.map((k) => t.en_requests[k]), yaxis: inside, mode: "lines", line: { color: "#7a6a00", ...step },
      hovertemplate: "%{x:.1f} ms: %{y} in the EN<extra></extra>" });
    for (const sn of here) traces.push({ name: `tasks ${recording.live ? "at" : "in"} ${several(recording) ? `SN ${sn}` : "the SN"}`, x: time, y: kept.map((k) => cell(recording, "sn_requests", k, sn)), yaxis: inside, ...lookOf(sn), line: { ...lookOf(sn).line, ...step }, hovertemplate: "%{x:.1f} ms: %{y}<extra></extra>" });
    const ticks = [...(kept.some((k) => t.action[k] < 0) ? [-1] : []), ...Array(sns + 2).keys()].filter((action) => chosenEn() === null || action <= 0 || action > sns || recording.reach[chosenEn()][action - 1] !== nobody);
    const decided = nextAxis("decisions and outcomes", { tickvals: ticks, ticktext: ticks.map((action) => actionName(action, recording, chosenEn())), range: [kept.some((k) => t.action[k] < 0) ? -1.6 : -0.6, sns + 1.6], rangemode: "normal" });
    for (const outcome of Object.keys(shapes)) {
      const which = kept.filter((k) => t.outcome[k] === outcome);
      if (which.length) traces.push({
        name: words[outcome], x: which.map((k) => t.time[k]), y: which.map((k) => heightOf(recording, k)), yaxis: decided, mode: "markers",
        customdata: which, hoverinfo: "none", marker: { symbol: shapes[outcome], color: tints[outcome], size: 8 },
      });
    }
    traces.push({ name: "chosen task", x: [], y: [], yaxis: decided, mode: "markers", hoverinfo: "skip", showlegend: false,
      marker: { symbol: "circle-open", size: 18, color: css("--ink"), line: { width: 2 } } });
    const end = recording.until_ms || recording.window_ms, start = Math.min(recording.warmup_ms, Math.max(0, end - 500));
    if (!state.range) state.range = [start, Math.min(end, state.span ? start + state.span : end)];
    /* The legend is below, in as many rows as its names need. */
    const chart = by("chart-viewer"), listed = traces.filter((trace) => trace.showlegend !== false), longest = Math.max(...listed.map((trace) => trace.name.length)), letters = narrow() ? 5.6 : 6.6;
    const columns = Math.max(1, Math.floor((chart.clientWidth - 85) / (longest * letters + 45))), below = 60 + 19 * Math.ceil(listed.length / columns);
    chart.style.height = `${sum + below}px`;
    draw("chart-viewer", traces, {
      height: sum + below, margin: { l: 70, r: 15, t: 0, b: below }, showlegend: true, annotations: titles,
      legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0, font: { size: narrow() ? 10 : 12 } },
      xaxis: { title: { text: "time (ms)", standoff: 5 }, range: state.range, anchor: decided }, ...axes,
    }, "one episode: true and believed backlogs, ages, decisions");
    markTask();
    const count = (label) => kept.filter((k) => t.outcome[k] === label && t.time[k] >= recording.warmup_ms).length, m = recording.metrics;
    if (recording.live) by("viewer-note").textContent = `${kept.length} tasks of a live node, ${(100 * m.success_rate).toFixed(1)} % of them done in time. A task counts as in a node from its decision to its answer.`;
    else by("viewer-note").textContent = `${recording.until_ms ? `The first ${(end / 1000).toFixed(1)} s of the episode. ` : ""}`
      + `Success ${(100 * m.success_rate).toFixed(1)} %, net utility ${number(m.net_utility_per_task, 1)} per task, update cost ${number(m.update_cost_rate, 1)}/s in what is shown, after the warm-up. `
      + (kept.some((k) => t.outcome[k] === "FN") ? `${count("FN")} task${count("FN") === 1 ? " was" : "s were"} rejected after the warm-up although a route was feasible at that moment. The metric “needless rejections” (${(100 * m.fn_rate).toFixed(1)} %) counts `
      + "only those beyond the quota: where more work arrives than all nodes can do, somebody must be rejected, and that many rejections count as justified." : "");
    tableViews.viewer = () => (recording.live ? {
      header: ["task", "ms", "UE", "kind", "decision", "outcome", "ms to deadline", "answered after (ms)", ...(recording.status ? here.map((sn) => `age of ${snName(recording, sn)}'s status (ms)`) : [])],
      rows: visible(recording).slice(0, 400).map((k) => [t.task[k], number(t.time[k], 1), t.ue[k], t.kind[k], actionName(t.action[k], recording, 0), words[t.outcome[k]], number(t.deadline[k], 1),
        t.finished[k] === null ? "–" : number(t.finished[k] - t.time[k], 1), ...(recording.status ? here.map((sn) => number(cell(recording, "age", k, sn), 1)) : [])]),
    } : {
      header: ["task", "ms", "EN", "decision", "outcome", "ms to deadline", ...chosen.flatMap((sn) => [`SN ${sn} true (ms)`, "believed (ms)", "age (ms)"])],
      rows: visible(recording).slice(0, 400).map((k) => [t.task[k], number(t.time[k], 1), t.en[k], actionName(t.action[k], recording, t.en[k]), words[t.outcome[k]], number(t.deadline[k], 1),
        ...chosen.flatMap((sn) => ["true", "believed", "age"].map((column) => (recording.status || column === "true" ? number(cell(recording, column, k, sn), 1) : "–")))]),
    });
    if (chart.on && !chart.dataset.listens) {
      chart.dataset.listens = "yes";
      const show = (event) => { const point = event.points[0]; if (point && point.customdata !== undefined) showTask(point.customdata); };
      chart.on("plotly_hover", show);
      chart.on("plotly_click", show);
      chart.on("plotly_relayout", (event) => {
        if (event["xaxis.range[0]"] !== undefined) state.range = [event["xaxis.range[0]"], event["xaxis.range[1]"]];
        else if (event["xaxis.autorange"]) state.range = [0, current().until_ms || current().window_ms];
        fillTables();
      });
    }
  };
  /* The map of the recording, and of another one beside it; recordings without journeys have the charts alone. */
  let player = null;
  const films = new Map();
  const filmed = (recording) => {
    if (!recording.map) return null;
    if (!films.has(recording)) films.set(recording, filmOf(recording));
    return films.get(recording);
  };
  const followed = (k, playing) => {
    by("task").setAttribute("aria-live", playing ? "off" : "polite");
    if (playing) by("task").textContent = describe(current(), k).join("\n"); // charts wait until time stands still
    else showTask(k, false);
  };
  const showMap = () => {
    const recording = current(), film = filmed(recording);
    by("map").hidden = !film;
    if (!film) return;
    player = player || mapPlayer({ whose: chosenEn, decided: followed });
    if (!player.ready) { by("map").hidden = true; player = null; films.clear(); return; }
    const other = episodes[Number(by("map-beside").value)], second = by("map-beside").value !== "" && other !== recording ? other : null;
    const nameOf = (each) => each.method || each.title;
    player.show([recording, second].filter((each) => each).map((each) => ({ film: filmed(each), name: nameOf(each) })), worstMoments(recording, film));
    by("map").player = player;
  };
  const refillBeside = () => {
    const others = episodes.map((each, k) => k).filter((k) => k !== Number(by("recording").value) && episodes[k].map);
    const kept = by("map-beside").value;
    fill("map-beside", ["", ...others], ["nothing", ...others.map((k) => short(episodes[k].method || episodes[k].title, 40))], kept === "" && !by("map-beside").dataset.touched && !narrow() && others.length ? others[0] : kept);
  };
  const refillViewer = () => {
    const recording = current(), ens = [...Array(recording.ens).keys()];
    fill("viewer-en", recording.ens > 1 ? [...ens, "all"] : ens, [...ens.map((en) => `EN ${en}`), "all"], by("viewer-en").value);
    const sns = reachedSns(recording), all = sns.length > 1 && sns.length <= 4 ? ["all"] : [];
    fill("viewer-sn", [...all, ...sns], [...all, ...sns.map((sn) => `SN ${sn}`)], by("viewer-sn").value);
  };
  /* A task to begin with: one that went wrong, best one whose EN believed something false, else one that was offloaded. */
  const instructive = (recording) => {
    const t = recording.tasks, wrong = (k) => !["TP", "TN", "DONE"].includes(t.outcome[k]);
    const error = (k) => (recording.live || !t.believed[k] ? 0 : Math.max(0, ...t.believed[k].map((value, place) => Math.abs((value || 0) - ((t.true[k] || [])[place] || 0)))));
    const score = (k) => (wrong(k) ? 1e6 : 0) + (t.action[k] > 0 && t.action[k] <= recording.sns ? 1e3 : 0) + error(k);
    return visible(recording).reduce((best, k) => (best === null || score(k) > score(best) ? k : best), null);
  };
  const changed = () => { viewer(); fillTables(); };
  const begin = () => { const k = instructive(current()); if (k !== null) showTask(k); };
  const startViewer = async () => {
    const packed = JSON.parse(await unpacked("episodes"));
    if (!packed || !packed.recordings.length) return;
    episodes = packed.recordings.map((each) => ({ ...each, tasks: { ...packed.workload, ...each.tasks } }));
    by("recording").dataset.always = "";
    fill("recording", episodes.map((_, k) => k), episodes.map((each) => each.title));
    refillViewer();
    by("viewer").hidden = false;
    refillBeside();
    by("map-beside").addEventListener("change", () => { by("map-beside").dataset.touched = "yes"; showMap(); });
    const live = episodes.every((each) => each.live); // decision logs do not contain the true state
    const shown = live ? "The statuses that the EN held, what it decided, and how tasks ended. "
      : `${rows.length ? "One workload, played by every method: w" : "W"}hat the EN believes about each SN, what is true, and what it does. `;
    by("viewer-about").textContent = `${shown}Choose a task by pointing at its mark, or with the buttons; drag to zoom.${(data.leftOut || []).length ? ` Not shown: ${data.leftOut.join("; ")}.` : ""}`;
    if (live) by("task").textContent = "Choose a task to see what the EN knew, what it decided, and how the task ended.";
    by("recording").addEventListener("change", () => { state.task = null; refillViewer(); refillBeside(); changed(); showMap(); begin(); });
    by("viewer-sn").addEventListener("change", changed);
    by("viewer-en").addEventListener("change", () => { refillViewer(); changed(); if (player) player.paint(); begin(); });
    for (const button of document.querySelectorAll("[data-span]")) button.addEventListener("click", () => {
      const span = Number(button.dataset.span), end = current().until_ms || current().window_ms;
      state.range = span ? [state.range[0], state.range[0] + span] : [0, end];
      changed();
    });
    for (const button of document.querySelectorAll("[data-step]")) button.addEventListener("click", () => {
      const [low, high] = state.range, shift = 0.8 * (high - low) * Number(button.dataset.step);
      state.range = [low + shift, high + shift];
      changed();
    });
    for (const button of document.querySelectorAll("[data-task]")) button.addEventListener("click", () => {
      const those = visible(current());
      if (!those.length) return;
      const here = those.indexOf(state.task), next = here < 0 ? 0 : here + Number(button.dataset.task);
      showTask(those[Math.max(0, Math.min(those.length - 1, next))]);
    });
  };
