  /* ---- the map of a site, on a canvas ---- */
  const mapTints = ["#7d8590", "#009e73", "#d55e00", "#b05a8c", "#d7263d", "#8a919c", "#3f8fc4"];
  const mapShapes = ["circle", "circle", "diamond", "triangle", "cross", "square", "circle"];
  /* Marks differ in shape as well as in colour. */
  const traceMark = (pen, shape, x, y, r) => {
    if (shape === "circle") { pen.moveTo(x + r, y); pen.arc(x, y, r, 0, 7); }
    else if (shape === "square") pen.rect(x - r * 0.85, y - r * 0.85, r * 1.7, r * 1.7);
    else if (shape === "diamond") { const d = r * 1.3; pen.moveTo(x, y - d); pen.lineTo(x + d, y); pen.lineTo(x, y + d); pen.lineTo(x - d, y); pen.closePath(); }
    else if (shape === "triangle") { const d = r * 1.25; pen.moveTo(x, y + d); pen.lineTo(x + d, y - d * 0.8); pen.lineTo(x - d, y - d * 0.8); pen.closePath(); }
    else { const d = r * 1.1, w = r * 0.45; for (const [a, b] of [[1, 1], [1, -1]]) { pen.moveTo(x - d * a - w, y - d * b); pen.lineTo(x - d * a + w, y - d * b); pen.lineTo(x + d * a + w, y + d * b); pen.lineTo(x + d * a - w, y + d * b); pen.closePath(); } }
  };
  const mostEnRows = 30, mostSnRows = 20;
  /* A site that is larger is drawn in groups of neighbours; a group that is opened shows its nodes. */
  const grouped = (count, most, open) => {
    if (count <= most) return [...Array(count).keys()].map((node) => [node]);
    const size = Math.ceil(count / most), groups = Array.from({ length: Math.ceil(count / size) }, (_, g) => [...Array(Math.min(size, count - g * size)).keys()].map((k) => g * size + k));
    return groups.flatMap((group, g) => (g === open ? group.map((node) => [node]) : [group]));
  };
  const rowName = (kind, row, names) => (row.length > 1 ? `${kind} ${row[0]}–${row[row.length - 1]}` : names ? short(names[row[0]], 12) : `${kind} ${row[0]}`);

  const siteMap = (canvas) => {
    const pen = canvas.getContext("2d");
    let film = null, layout = null, still = null, tones = {}, open = { en: null, sn: null };
    const laidOut = () => {
      const width = Math.max(260, canvas.parentElement.clientWidth), enRows = grouped(film.ens, mostEnRows, open.en), snRows = grouped(film.sns, mostSnRows, open.sn);
      const most = Math.max(enRows.length, snRows.length), row = Math.max(21, Math.min(72, 470 / most)), height = Math.round(34 + row * most + 6);
      const small = width < 440, y = (k, rows) => 34 + (height - 40) * ((k + 0.5) / rows.length);
      const place = (rows) => { const found = []; rows.forEach((nodes, k) => nodes.forEach((node) => { found[node] = { row: k, y: y(k, rows) }; })); return found; };
      const x = { device: width * (small ? 0.055 : 0.06), en: width * (small ? 0.13 : 0.14), enEnd: width * (small ? 0.3 : 0.3), sn: width * (small ? 0.56 : 0.58), end: width - 4 };
      const namesOf = (kind) => (film.names || {})[kind], longest = [...enRows.map((nodes) => rowName("EN", nodes, namesOf("en"))), ...snRows.map((nodes) => rowName("SN", nodes, namesOf("sn")))];
      const name = small ? 34 : Math.max(40, ...longest.map((text) => 13 + 6.6 * text.length));
      const cell = Math.max(6, Math.min(15, row * 0.3)), group = Math.max(...snRows.map((nodes) => nodes.length));
      const unit = Math.min(cell + 8, (x.end - x.sn - name - 8) / (film.most * group + 1)), enGroup = Math.max(...enRows.map((nodes) => nodes.length));
      const enUnit = Math.min(cell + 3, (x.enEnd - x.en - name - 2) / (6 * enGroup));
      return { width, height, row, small, enRows, snRows, en: place(enRows), sn: place(snRows), x, name, cell, unit, enUnit };
    };
    const curve = (en, sn, s) => {
      const [x0, x1] = [layout.x.enEnd + 4, layout.x.sn - 6], [y0, y1] = [layout.en[en].y, layout.sn[sn].y], u = 1 - s, middle = (x0 + x1) / 2;
      return [x0 * u * u * u + 3 * middle * s * u * (u + s) + x1 * s * s * s, y0 * u * u * (u + 3 * s) + y1 * s * s * (s + 3 * u)];
    };
    const size = () => {
      const ratio = Math.min(2, window.devicePixelRatio || 1);
      canvas.width = Math.round(layout.width * ratio);
      canvas.height = Math.round(layout.height * ratio);
      canvas.style.height = `${layout.height}px`;
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    };
    const write = (target, text, x, y, ink, px, align = "left", bold = "") => {
      target.font = `${bold} ${px}px system-ui, sans-serif`;
      target.fillStyle = ink;
      target.textAlign = align;
      target.textBaseline = "middle";
      target.fillText(text, x, y);
    };
    /* What never moves is drawn once: names, cells, links. */
    const background = () => {
      still = document.createElement("canvas");
      still.width = canvas.width;
      still.height = canvas.height;
      const b = still.getContext("2d"), { x, small } = layout, { ink, quiet } = tones;
      b.setTransform(pen.getTransform());
      b.fillStyle = tones.card;
      b.fillRect(0, 0, layout.width, layout.height);
      const px = small ? 10 : 12;
      if (!small) write(b, "cells", x.device, 13, quiet, px, "center", "600");
      write(b, small ? "ENs" : "edge nodes (EN)", x.en, 13, quiet, px, "left", "600");
      write(b, small ? "SNs" : "service nodes (SN)", x.sn, 13, quiet, px, "left", "600");
      b.strokeStyle = tones.line;
      const links = film.reach.reduce((sum, each) => sum + each.length, 0);
      b.lineWidth = links > 100 ? 0.5 : 1.2;
      b.globalAlpha = links > 100 ? 0.7 : 1;
      const drawn = new Set();
      b.beginPath();
      film.reach.forEach((those, en) => those.filter((sn) => sn >= 0).forEach((sn) => {
        const key = `${layout.en[en].row} ${layout.sn[sn].row}`;
        if (drawn.has(key)) return;
        drawn.add(key);
        const [x0, y0] = curve(en, sn, 0), [x1, y1] = curve(en, sn, 1), middle = (x0 + x1) / 2;
        b.moveTo(x0, y0);
        b.bezierCurveTo(middle, y0, middle, y1, x1, y1);
      }));
      b.stroke();
      b.globalAlpha = 1;
      const namePx = Math.max(9, Math.min(13, layout.row * 0.42)), r = Math.min(layout.row * 0.4, x.device * 0.8, 26);
      layout.enRows.forEach((nodes) => {
        const { y } = layout.en[nodes[0]];
        b.beginPath();
        b.setLineDash([3, 3]);
        b.strokeStyle = quiet;
        b.lineWidth = 1;
        b.arc(x.device, y, r, 0, 7);
        b.stroke();
        b.setLineDash([]);
        b.fillStyle = quiet;
        for (let k = 0; k < 4; k += 1) { b.beginPath(); b.arc(x.device + 0.55 * r * Math.cos(1.57 * k + 0.8), y + 0.55 * r * Math.sin(1.57 * k + 0.8), Math.max(1.5, r * 0.12), 0, 7); b.fill(); }
        write(b, rowName("EN", nodes, (film.names || {}).en), x.en, y, ink, namePx, "left", "600");
      });
      layout.snRows.forEach((nodes) => write(b, rowName("SN", nodes, (film.names || {}).sn), x.sn, layout.sn[nodes[0]].y, ink, namePx, "left", "600"));
    };
    const snX = () => layout.x.sn + layout.name, enX = () => layout.x.en + layout.name;
    const amount = (value) => (Number.isNaN(value) ? "?" : film.unit ? `${value.toFixed(1)} ${film.unit}` : value);

    const stroke = (ink, width, trace) => {
      pen.strokeStyle = ink;
      pen.lineWidth = width;
      pen.beginPath();
      trace();
      pen.stroke();
    };

    /* Draws one moment; returns where the tasks are that were drawn. */
    const draw = (moment, more = {}) => {
      if (!film) return [];
      const { x, cell, unit, enUnit, row } = layout, places = [], { ink, focus } = tones, byFate = mapTints.map(() => []), hollow = [];
      pen.drawImage(still, 0, 0, layout.width, layout.height);
      const high = Math.min(cell, row * 0.42), dot = Math.max(2.8, Math.min(5, row * 0.11));
      const bar = (nodes, slots, left, y, step, kind) => {
        const width = Math.max(1, step - (step > 4 ? 1.5 : 0.3));
        let at = 0;
        const total = nodes.reduce((sum, node) => sum + slots[node], 0);
        for (let k = 0; k < total; k += 1) hollow.push([left + k * step, y - high / 2, width, high]);
        const level = nodes.reduce((sum, node) => sum + (moment[kind][node].level || 0), 0); // of live nodes only the work is known
        if (level) byFate[isOpen].push([left, y - high / 2, Math.min(level * step, (kind === "sn" ? x.end : x.enEnd) - left), high]);
        for (const stage of ["running", "waiting"]) {
          if (stage === "waiting") at = Math.max(at, total);
          for (const node of nodes) for (const k of moment[kind][node][stage]) {
            const spot = [left + at * step, y - high / 2, width, high];
            if (kind === "sn" || spot[0] < x.enEnd) byFate[film.fate(k)].push(spot);
            places.push({ task: k, stage: stage === "running" ? "run" : "wait", x: spot[0] + width / 2, y });
            at += 1;
          }
        }
      };
      layout.enRows.forEach((nodes) => bar(nodes, film.enSlots, enX(), layout.en[nodes[0]].y, enUnit, "en"));
      for (const en of moment.away || []) write(pen, "absent", enX(), layout.en[en].y, tones.alarm, 11, "left", "700");
      const told = [], inside = (node) => (node.level === undefined ? node.running.length + node.waiting.length : node.level);
      layout.snRows.forEach((nodes) => {
        const { y } = layout.sn[nodes[0]], lift = more.belief ? row * 0.13 : 0, count = nodes.reduce((sum, node) => sum + inside(moment.sn[node]), 0);
        bar(nodes, film.snSlots, snX(), y - lift, unit, "sn");
        if (nodes.every((node) => moment.down.has(node))) told.push({ y, down: true });
        else if (more.belief) {
          const known = nodes.map((node) => more.belief(node)), sum = known.reduce((all, each) => all + (each ? each.told : 0), 0);
          told.push({ y: y + row * 0.24, count, sum, known: known.some((each) => each), age: Math.max(0, ...known.map((each) => (each ? each.age : 0))), own: known.some((each) => each && each.own) });
        }
      });
      stroke(tones.grey, 1, () => { for (const spot of hollow) pen.rect(...spot); });
      byFate.forEach((spots, fate) => {
        if (!spots.length) return;
        pen.fillStyle = mapTints[fate];
        pen.beginPath();
        for (const spot of spots) pen.rect(...spot);
        pen.fill();
      });
      /* Belief beside truth: as many tasks as the last status was made with, older ones paler. */
      const px = Math.max(9, Math.min(11, row * 0.4)), thin = Math.max(2, Math.min(5, row * 0.12));
      for (const each of told) {
        if (each.down) { write(pen, film.unit ? "absent" : "down", snX(), each.y, tones.alarm, px + 1, "left", "700"); continue; }
        const left = snX();
        if (each.known) {
          const gap = Number.isNaN(each.count) ? 0 : (each.count || 0) - each.sum; // what nobody knows has no gap
          pen.globalAlpha = Math.max(0.35, 1 - each.age / 400);
          pen.fillStyle = focus;
          pen.fillRect(left, each.y - thin / 2, Math.max(1.5, each.sum * unit), thin);
          pen.globalAlpha = 1;
          if (gap) {
            pen.setLineDash([2, 2]);
            stroke(focus, 1, () => { pen.moveTo(left + each.sum * unit, each.y); pen.lineTo(left + (each.count || 0) * unit, each.y); });
            pen.setLineDash([]);
          }
          if (row > 34) write(pen, each.own ? `${each.sum} of its requests in flight; all else unknown` : `told ${amount(each.sum)}, ${each.age.toFixed(0)} ms ago; has ${amount(each.count)}`, left, each.y + thin + 7, tones.quiet, px);
        } else if (row > 34) write(pen, `told ${film.unit ? "?" : "nothing"}; has ${amount(each.count)}`, left, each.y + 3, tones.quiet, px);
        else write(pen, "?", left, each.y, tones.quiet, px);
      }
      const ring = moment.pulses.length > 60 ? 1.2 : row > 34 ? 4 : 2.6; // a burst of statuses must not hide the tasks
      stroke(tones.pulse, ring > 2 ? 1.6 : 1, () => {
        for (const pulse of moment.pulses) { const [px0, py0] = curve(pulse.en, pulse.sn, 1 - pulse.share); pen.moveTo(px0 + ring, py0); pen.arc(px0, py0, ring, 0, 7); }
      });
      const marks = mapTints.map(() => []);
      for (const each of moment.moving) {
        const en = film.en[each.k], sn = film.sn[each.k];
        let spot = [layout.x.enEnd, layout.en[en].y + each.share * row * 0.4];
        if (each.stage === "air") spot = [x.device + (x.en - 4 - x.device) * each.share, layout.en[en].y];
        else if (each.stage === "up") spot = curve(en, sn, each.share);
        else if (each.stage === "down") spot = curve(en, sn, 1 - each.share);
        else if (each.stage === "gone") spot = curve(en, sn, 1);
        marks[film.fate(each.k)].push([spot[0], spot[1], each.stage === "down" ? dot * 0.6 : dot]);
        places.push({ task: each.k, stage: each.stage, x: spot[0], y: spot[1] });
      }
      marks.forEach((spots, fate) => {
        if (!spots.length) return;
        pen.fillStyle = mapTints[fate];
        pen.strokeStyle = tones.card;
        pen.lineWidth = 0.8;
        pen.beginPath();
        for (const [mx, my, r] of spots) traceMark(pen, mapShapes[fate], mx, my, r);
        pen.fill();
        if (spots.length < 200) pen.stroke();
      });
      const chosen = more.task === undefined || more.task === null ? null : places.find((each) => each.task === more.task);
      if (chosen) stroke(ink, 2, () => pen.arc(chosen.x, chosen.y, dot + 5, 0, 7));
      return places;
    };
    const refresh = () => {
      tones = Object.fromEntries(["ink", "focus", "grey", "quiet", "card", "pulse", "line", "alarm"].map((name) => [name, css(`--${name}`)]));
      layout = laidOut();
      size();
      background();
    };
    return {
      ready: Boolean(pen), draw, refresh,
      keep: (shown) => { film = shown; }, // the same nodes and links: nothing is laid out anew
      show: (shown) => { film = shown; open = { en: null, sn: null }; refresh(); },
      anchors: () => ({ en: layout.en, sn: layout.sn, x: layout.x, unit: layout.unit, curve }),
      /* Shows the nodes of a group, or all groups again (null). */
      unfold: (kind, group) => { open = { ...open, [kind]: group }; refresh(); },
      groups: () => ({ en: grouped(film.ens, mostEnRows), sn: grouped(film.sns, mostSnRows) }),
    };
  };
