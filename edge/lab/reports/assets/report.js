// Makes option objects for the drawing library of the charts that the page holds as data. It computes no figure.
(function () {
  'use strict';

  var charts = JSON.parse(document.getElementById('charts').textContent);
  var root = document.documentElement;
  var LIGHT = ['#0b62b8', '#d1600a', '#158463', '#a8327a', '#8a6d00', '#2f9fd6', '#7048b8', '#8c564b', '#5f6b76', '#c0392b', '#2e7d32'];
  var DARK = ['#6db1f2', '#f2a05c', '#5fd0a8', '#e58cc4', '#e0c24c', '#8fd6f7', '#b79cf0', '#d0a59a', '#aab4bf', '#f28b82', '#8fd694'];
  // The bar of tools lies over the legend: it comes only where a pointer can make it come and go.
  var CONFIG = {
    responsive: true, displaylogo: false, displayModeBar: matchMedia('(hover: hover)').matches ? 'hover' : false,
    modeBarButtonsToRemove: ['select2d', 'lasso2d', 'autoScale2d', 'sendDataToCloud', 'editInChartStudio']
  };
  var FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';

  function look() {
    var style = getComputedStyle(root);
    var dark = root.dataset.theme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches;
    var of = function (name) { return style.getPropertyValue('--' + name).trim(); };
    return { ink: of('ink'), quiet: of('quiet'), line: of('line'), page: of('page'), dark: dark, colours: dark ? DARK : LIGHT };
  }

  function duration(ns) {
    var units = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
    for (var i = 0; i < units.length; i++) {
      if (ns >= units[i][0] || i === 3) return Number((ns / units[i][0]).toPrecision(3)) + ' ' + units[i][1];
    }
  }

  function span(lists) {
    var low = Infinity, high = -Infinity;
    lists.forEach(function (list) {
      list.forEach(function (value) {
        if (value === null || value <= 0) return;
        low = Math.min(low, value);
        high = Math.max(high, value);
      });
    });
    return low <= high ? [low, high] : [1, 10];
  }

  // Ticks at 1, 10, 100, … and, where there are few powers, at 2 and 5 between them.
  function powers(range) {
    var decades = Math.log10(range[1] / range[0]);
    var steps = decades < 1.6 ? [1, 2, 5] : decades < 3.2 ? [1, 3] : [1];
    var found = [];
    for (var power = Math.floor(Math.log10(range[0])); power <= Math.ceil(Math.log10(range[1])); power++) {
      steps.forEach(function (step) { found.push(Number((step + 'e' + power))); });
    }
    return found;
  }

  function axis(of, values, theme, narrow) {
    var result = {
      title: { text: of.title, standoff: 12, font: { size: 12, color: theme.quiet } }, gridcolor: theme.line, linecolor: theme.line,
      zerolinecolor: theme.line, tickfont: { size: 11, color: theme.quiet }, automargin: true, hoverformat: '.4~s'
    };
    if (of.names) {
      result.tickvals = of.names.map(function (_, index) { return index; });
      // What tells neighbours apart stands at the end.
      var most = narrow ? 22 : 60;
      result.ticktext = of.names.map(function (name) { return name.length > most ? '…' + name.slice(2 - most) : name; });
      result.range = [of.names.length - 0.5, -0.5];
      result.showgrid = true;
    } else if (of.scale === 'linear') {
      result.rangemode = 'tozero';
    } else {
      result.type = 'log';
      var range = span(values);
      if (of.scale === 'log_time') {
        result.tickvals = powers(range);
        result.ticktext = result.tickvals.map(duration);
      } else if (of.scale === 'log2') {
        var seen = {};
        values.forEach(function (list) { list.forEach(function (value) { seen[value] = true; }); });
        var all = Object.keys(seen).map(Number).sort(function (one, other) { return one - other; });
        result.tickvals = all.filter(function (value) { return all.length < 14 && value === Math.round(value); });
        if (result.tickvals.length === 0) { delete result.tickvals; }
        else { result.ticktext = result.tickvals.map(String); }
      } else if (of.scale === 'ratio') {
        changes(result, range);
      } else {
        result.tickvals = [1, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9];
        result.ticktext = result.tickvals.map(function (share) { return Number((share * 100).toPrecision(1)).toFixed(Math.max(0, -Math.log10(share * 100) + 0.5 | 0)) + ' %'; });
      }
    }
    return result;
  }

  // Ticks of a ratio: half is as far from 1 as the double, and both are told in percent.
  function changes(axis, range) {
    var low = Math.min(range[0], 1) / 1.05, high = Math.max(range[1], 1) * 1.05, width = Math.log10(high / low);
    var steps = width > 4 ? [0.001, 0.01, 0.1, 1, 10, 100, 1000] : width > 0.6 ? [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50]
      : width > 0.15 ? [0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.4, 1.6, 1.8, 2] : [0.8, 0.85, 0.9, 0.95, 0.98, 1, 1.02, 1.05, 1.1, 1.15, 1.2];
    axis.range = [Math.log10(low), Math.log10(high)];
    axis.tickvals = steps;
    axis.ticktext = steps.map(change);
  }

  function change(ratio) {
    if (ratio >= 10) return Number(ratio.toPrecision(3)) + ' times';
    var percent = Number(((ratio - 1) * 100).toPrecision(3));
    return (percent > 0 ? '+' : '') + percent + ' %';
  }

  function layout(theme, more) {
    var base = {
      paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', font: { family: FONT, size: 12, color: theme.ink },
      margin: { l: 56, r: 12, t: 8, b: 40 }, height: 300, hovermode: 'closest', colorway: theme.colours, dragmode: 'zoom',
      hoverlabel: { bgcolor: theme.page, bordercolor: theme.line, font: { color: theme.ink, family: FONT, size: 12 } },
      modebar: { bgcolor: 'rgba(0,0,0,0)', color: theme.quiet, activecolor: theme.ink },
      legend: { orientation: 'h', x: 0, y: 1.02, yanchor: 'bottom', font: { size: 11.5 } }
    };
    Object.keys(more).forEach(function (key) { base[key] = more[key]; });
    return base;
  }

  function marks(list, theme, y, xs) {
    var range = xs.reduce(function (all, list) { return all.concat(list); }, []);
    var low = Math.min.apply(null, range), high = Math.max.apply(null, range);
    var middle = y ? Math.sqrt(low * high) : (low + high) / 2;
    return {
      shapes: list.map(function (mark) {
        return { type: 'line', xref: 'x', yref: 'paper', x0: mark.x, x1: mark.x, y0: 0, y1: 1, line: { color: theme.quiet, width: 1, dash: 'dot' } };
      }),
      annotations: list.filter(function (mark) { return mark.text; }).map(function (mark, index) {
        return {
          x: y ? Math.log10(mark.x) : mark.x, xref: 'x', yref: 'paper', y: 1 - 0.09 * (index % 6), text: mark.text.replace(/</g, '&lt;'),
          showarrow: false, xanchor: mark.x > middle ? 'right' : 'left', xshift: mark.x > middle ? -3 : 3, yanchor: 'top', font: { size: 11, color: theme.quiet }
        };
      })
    };
  }

  function bars(series, across) {
    if (!series.low) return undefined;
    var middle = across ? series.x : series.y;
    return {
      type: 'data', symmetric: false, thickness: 1.2, width: 4,
      array: series.high.map(function (high, index) { return high - middle[index]; }),
      arrayminus: series.low.map(function (low, index) { return middle[index] - low; })
    };
  }

  // How wide a place is, or will be on paper.
  function room(place) {
    return printing ? (place.closest('.wide') ? 660 : 318) : place.clientWidth;
  }

  function lines(chart, theme, place) {
    var named = Boolean(chart.y.names);
    var data = chart.series.map(function (series, index) {
      var both = series.style === 'both', points = series.style === 'points', time = chart.y.scale === 'log_time';
      var name = series.name.replace(/</g, '&lt;');
      return {
        type: 'scatter', name: name, x: series.x, y: series.y,
        mode: points ? 'markers' : both ? 'lines+markers' : 'lines',
        line: { width: series.style === 'dashed' ? 1.3 : 1.8, dash: series.style === 'dashed' ? 'dash' : 'solid' },
        marker: { size: points ? 8 : 6, color: points ? theme.colours[0] : undefined, opacity: points ? 0.75 : 1 },
        error_x: points ? bars(series, true) : undefined, error_y: points ? undefined : bars(series, false),
        customdata: time ? series.y.map(function (ns) { return ns === null ? '' : duration(ns); }) : undefined,
        text: chart.x.scale === 'log_time' ? series.x.map(duration) : chart.x.scale === 'ratio' ? series.x.map(change) : undefined,
        hovertemplate: (chart.x.scale === 'log_time' || chart.x.scale === 'ratio' ? '%{text}' : '%{x:,.4~r}') + ': ' + (named ? '%{y}' : time ? '%{customdata}' : '%{y:,.4~g}') + '<extra>' + name + '</extra>',
        showlegend: chart.series.length > 1
      };
    });
    var xs = chart.series.map(function (series) { return series.x; });
    var ys = chart.series.map(function (series) { return series.y; });
    if (chart.x.scale === 'ratio') chart.series.forEach(function (series) { xs.push(series.low || [], series.high || []); });
    var more = marks(chart.marks, theme, chart.x.scale !== 'linear', xs);
    more.xaxis = axis(chart.x, xs, theme);
    more.yaxis = axis(chart.y, ys, theme, room(place) < 500);
    if (chart.x.title === 'seconds') { more.xaxis.rangemode = 'normal'; more.xaxis.showgrid = false; }
    if (chart.y.title === 'share completed') { more.yaxis.range = [0, 1.02]; more.yaxis.tickformat = '.0%'; }
    // A long legend takes its room from below, not from the picture.
    if (chart.series.length > 5) {
      var longest = Math.max.apply(null, chart.series.map(function (series) { return series.name.length; }));
      var rows = Math.ceil(chart.series.length / Math.max(1, Math.floor(room(place) / (longest * 6.2 + 60))));
      more.height = 300 + 21 * rows;
      more.legend = { orientation: 'h', x: 0, y: -62 / 232, yanchor: 'top', font: { size: 11.5 } };
      more.margin = { l: 56, r: 12, t: 8, b: 60 + 21 * rows };
    }
    if (named) more.height = 90 + 26 * chart.y.names.length;
    return { data: data, layout: layout(theme, more) };
  }

  // Colour by the logarithm: rare I/Os show beside frequent ones.
  function logged(value) {
    return value === null || value === undefined || !(value > 0) ? null : Math.log10(value);
  }

  // On white, what is low must not vanish and what is high must not glare.
  var LIGHT_HEIGHTS = [[0, '#dfe7ef'], [0.12, '#a9cfe0'], [0.35, '#4f9fc8'], [0.6, '#1f6fb2'], [0.8, '#5b3fa0'], [1, '#a02070']];

  function count(value) {
    return value >= 1e6 ? value / 1e6 + ' M' : value >= 1e3 ? value / 1e3 + ' k' : String(value);
  }

  function colourBar(low, high, theme) {
    var values = [];
    for (var power = Math.ceil(low - 1e-9); power <= high; power++) values.push(power);
    var text = values.map(function (power) { return count(Number('1e' + power)); });
    return {
      title: { text: 'I/Os per s', side: 'right', font: { size: 11, color: theme.quiet } }, tickvals: values, ticktext: text,
      tickfont: { size: 11, color: theme.quiet }, thickness: 10, outlinewidth: 0, len: 1
    };
  }

  function heat(chart, theme) {
    var first = chart.x[0], count = Math.round((chart.x[chart.x.length - 1] - first) / chart.width) + 1;
    var x = [], columns = [], high = -Infinity, low = Infinity;
    for (var i = 0; i < count; i++) { x.push(first + (i + 0.5) * chart.width); columns.push(null); }
    chart.x.forEach(function (at, index) { columns[Math.round((at - first) / chart.width)] = chart.z[index]; });
    var z = chart.labels.map(function (_, bucket) {
      return columns.map(function (column) {
        var value = column ? logged(column[bucket]) : null;
        if (value !== null) { high = Math.max(high, value); low = Math.min(low, value); }
        return value;
      });
    });
    var y = chart.y.map(function (ns) { return Math.log10(ns); });
    var hover = z.map(function (row, bucket) {
      return row.map(function (value) { return chart.labels[bucket] + ': ' + (value === null ? 0 : Number(Math.pow(10, value).toPrecision(3))); });
    });
    low = Math.max(low, high - 5);
    var data = [{
      type: 'heatmap', x: x, y: y, z: z, zmin: low, zmax: high > low ? high : low + 1, colorscale: theme.dark ? 'Viridis' : 'YlGnBu', reversescale: !theme.dark,
      text: hover, hovertemplate: '%{x:.0f} s, %{text} I/Os per s<extra></extra>', colorbar: colourBar(low, high, theme), showlegend: false
    }];
    var dashes = ['solid', 'dash', 'dot'];
    chart.lines.forEach(function (line, index) {
      data.push({
        type: 'scatter', mode: 'lines', name: line.name, x: line.x.map(function (at) { return at + chart.width / 2; }), y: line.y.map(logged),
        line: { color: theme.dark ? '#ffffff' : '#d1340a', width: 1.3, dash: dashes[index % 3] },
        customdata: line.y.map(function (ns) { return ns === null ? '' : duration(ns); }), hovertemplate: '%{customdata}<extra>' + line.name + '</extra>'
      });
    });
    var ticks = powers([chart.y[0], chart.y[chart.y.length - 1]]);
    return {
      data: data,
      layout: layout(theme, {
        xaxis: { title: { text: 'seconds', font: { size: 12, color: theme.quiet } }, showgrid: false, zeroline: false, tickfont: { size: 11, color: theme.quiet } },
        yaxis: {
          title: { text: 'latency', standoff: 12, font: { size: 12, color: theme.quiet } }, tickvals: ticks.map(Math.log10), ticktext: ticks.map(duration), showgrid: false,
          zeroline: false, tickfont: { size: 11, color: theme.quiet }, automargin: true, range: [y[0] - 0.02, y[y.length - 1] + 0.06]
        }
      })
    };
  }

  function every(labels, most) {
    var step = Math.ceil(labels.length / most), found = [];
    for (var index = 0; index < labels.length; index += step) found.push(index);
    return found;
  }

  // Where one disk does a hundredth of another, only a logarithmic scale shows both.
  function heights(view) {
    var tops = view.panels.map(function (panel) {
      return panel.z.reduce(function (top, column) { return column.reduce(function (most, value) { return Math.max(most, value || 0); }, top); }, 0);
    }).filter(function (top) { return top > 0; });
    return tops.length > 1 && Math.max.apply(null, tops) > 8 * Math.min.apply(null, tops) ? 'logarithmic' : 'linear';
  }

  // How high a rate stands, and the ticks of that scale.
  function upwards(view, scale) {
    var top = view.top || 1;
    if (scale === 'linear') return { of: function (value) { return value; }, top: top, ticks: undefined };
    var least = Infinity;
    view.panels.forEach(function (panel) {
      panel.z.forEach(function (column) { column.forEach(function (value) { if (value > 0) least = Math.min(least, value); }); });
    });
    // What is seldom stands a little above the ground.
    var floor = Math.pow(10, Math.max(Math.ceil(Math.log10(Math.min(least, top))) - 1, Math.floor(Math.log10(top)) - 4));
    var of = function (value) { return value > floor ? Math.log10(value / floor) : 0; };
    var ticks = [];
    for (var value = floor * 10; value <= top * 1.0001; value *= 10) ticks.push(Number(value.toPrecision(1)));
    return { of: of, top: of(top), ticks: ticks };
  }

  // Disks behind one another: each has a lane of buckets, with an empty bucket on both sides.
  function surface(chart, view, theme, scale, place) {
    var lane = view.labels.length + 3, data = [], ticks = [], names = [], notes = [], right = -Infinity, left = Infinity;
    var up = upwards(view, scale), isNarrow = place.clientWidth < 600;
    view.panels.forEach(function (panel) {
      panel.x.forEach(function (at, index) { left = Math.min(left, at); right = Math.max(right, at + panel.seconds[index]); });
    });
    view.panels.forEach(function (panel, disk) {
      var front = (view.panels.length - 1 - disk) * lane, x = [], columns = [];
      panel.x.forEach(function (at, index) {
        var column = panel.z[index].length ? panel.z[index] : null;
        // One sample alone is as long as it lasted.
        if (panel.x.length === 1) { x.push(at); columns.push(column); x.push(at + panel.seconds[index]); columns.push(column); return; }
        x.push(at + panel.seconds[index] / 2);
        columns.push(column);
      });
      var name = chart.disks[disk].replace(/</g, '&lt;');
      var ground = columns.map(function (column) { return column ? 0 : null; }), silent = columns.map(function () { return ''; });
      var y = [front - 1], z = [ground], text = [silent];
      view.labels.forEach(function (label, bucket) {
        y.push(front + bucket);
        z.push(columns.map(function (column) { return column ? up.of(column[bucket]) : null; }));
        text.push(columns.map(function (column) { return column ? name + ', ' + label + ': ' + Number(column[bucket].toPrecision(3)) + ' I/Os per s' : ''; }));
      });
      y.push(front + view.labels.length);
      z.push(ground);
      text.push(silent);
      every(view.labels, Math.max(3, Math.floor((isNarrow ? 7 : 11) / view.panels.length))).forEach(function (bucket) {
        ticks.push(front + bucket);
        names.push(view.labels[bucket]);
      });
      notes.push({
        x: left, y: front + (view.labels.length - 1) / 2, z: up.top * 0.12, text: '<b>' + name + '</b>', showarrow: false, xanchor: 'left', xshift: 6,
        font: { size: 14, color: theme.ink }, bgcolor: theme.page, borderpad: 3, opacity: 0.92
      });
      if (x.length === 0) return;
      var bar = {
        title: { text: 'I/Os per s', side: 'right', font: { size: 11, color: theme.quiet } }, tickfont: { size: 11, color: theme.quiet }, thickness: 10, outlinewidth: 0,
        len: 0.7, x: 1, xanchor: 'right'
      };
      if (up.ticks) { bar.tickvals = up.ticks.map(up.of); bar.ticktext = up.ticks.map(count); }
      data.push({
        type: 'surface', x: x, y: y, z: z, text: text, cmin: 0, cmax: up.top, colorscale: theme.dark ? 'Viridis' : LIGHT_HEIGHTS, showscale: data.length === 0 && !isNarrow, name: name,
        hovertemplate: '%{text}<br>at %{x:.0f} s<extra></extra>', lighting: { ambient: 0.8, diffuse: 0.45, specular: 0.05, roughness: 0.9 },
        contours: { x: { highlight: false }, y: { highlight: true, highlightcolor: theme.ink, highlightwidth: 1 }, z: { highlight: false } }, colorbar: bar
      });
    });
    var plane = { gridcolor: theme.line, linecolor: theme.quiet, zerolinecolor: theme.line, showbackground: false, showspikes: false, tickfont: { size: 12, color: theme.ink } };
    var with_ = function (more) { return Object.assign({}, plane, more); };
    var title = function (text) { return { text: text, font: { size: 13, color: theme.quiet } }; };
    var depth = Math.min(2.4, 0.8 + 0.4 * view.panels.length);
    var far = isNarrow ? 1.3 : 1;
    var counts = { title: title('I/Os per s'), range: [0, up.top] };
    if (up.ticks) { counts.tickvals = up.ticks.map(up.of); counts.ticktext = up.ticks.map(count); } else { counts.nticks = 5; }
    return {
      data: data,
      layout: layout(theme, {
        height: isNarrow ? 360 : 580, margin: { l: 0, r: 0, t: 0, b: 0 },
        scene: {
          xaxis: with_({ title: title('seconds'), range: [left, right], nticks: isNarrow ? 5 : 10 }),
          yaxis: with_({ title: title(view.axis), tickvals: ticks, ticktext: names, range: [-1.5, view.panels.length * lane - 1.5] }),
          zaxis: with_(counts),
          aspectmode: 'manual', aspectratio: { x: isNarrow ? 1.5 : 1.9, y: depth, z: 0.7 },
          camera: { eye: { x: 0.95 * far, y: -2.05 * far, z: 1.35 * far }, center: { x: isNarrow ? -0.06 : 0.02, y: 0, z: isNarrow ? -0.1 : -0.2 } },
          annotations: notes
        }
      })
    };
  }

  function panels(chart, view, theme) {
    var data = [], high = Math.log10(view.top || 1), low = Infinity, count = view.panels.length;
    var more = { grid: { rows: count, columns: 1, pattern: 'coupled' }, height: 90 + count * Math.max(150, Math.min(260, 14 * view.labels.length)), annotations: [], margin: { l: 90, r: 12, t: 24, b: 40 } };
    view.panels.forEach(function (panel, disk) {
      // Edges of columns, so that each is as wide as it lasted.
      var x = panel.x.slice();
      if (x.length) x.push(panel.x[x.length - 1] + panel.seconds[x.length - 1]);
      var z = view.labels.map(function (_, bucket) {
        return panel.z.map(function (column) {
          var value = column.length ? logged(column[bucket]) : null;
          if (value !== null) low = Math.min(low, value);
          return value;
        });
      });
      var text = view.labels.map(function (label, bucket) {
        return panel.z.map(function (column) { return label + ': ' + (column.length ? column[bucket] : 'unknown'); });
      });
      var number = disk ? String(disk + 1) : '';
      data.push({
        type: 'heatmap', x: x, y: view.labels.map(function (_, index) { return index; }), z: z, text: text, xaxis: 'x', yaxis: 'y' + number, coloraxis: 'coloraxis',
        hovertemplate: '%{x:.0f} s, %{text} I/Os per s<extra></extra>'
      });
      var shown = every(view.labels, 10);
      more['yaxis' + number] = {
        tickvals: shown, ticktext: shown.map(function (bucket) { return view.labels[bucket]; }), showgrid: false, zeroline: false,
        tickfont: { size: 10.5, color: theme.quiet }, title: { text: view.axis, standoff: 10, font: { size: 11, color: theme.quiet } }, automargin: true,
        domain: [1 - (disk + 1) / count + (count > 1 ? 0.03 : 0), 1 - disk / count - (count > 1 ? 0.05 : 0)]
      };
      more.annotations.push({
        xref: 'paper', yref: 'paper', x: 0, y: 1 - disk / count - (count > 1 ? 0.05 : 0), xanchor: 'left', yanchor: 'bottom', showarrow: false, text: chart.disks[disk].replace(/</g, '&lt;'),
        font: { size: 12, color: theme.ink }
      });
    });
    delete more.grid;
    low = Math.max(low === Infinity ? high - 1 : low, high - 5);
    more.xaxis = { title: { text: 'seconds', font: { size: 12, color: theme.quiet } }, showgrid: false, zeroline: false, tickfont: { size: 11, color: theme.quiet }, anchor: 'y' + (count > 1 ? count : '') };
    more.coloraxis = { colorscale: theme.dark ? 'Viridis' : 'YlGnBu', reversescale: !theme.dark, cmin: low, cmax: high > low ? high : low + 1, colorbar: colourBar(low, high, theme) };
    return { data: data, layout: layout(theme, more) };
  }

  var drawn = [];

  // Paper is A4 with the margins of the style: widths in CSS pixels of a chart across the page, and of two beside one another.
  var printing = false;

  function show(place, figure) {
    // The library does not give its place the height that it draws.
    place.style.height = figure.layout.height + 'px';
    if (printing) {
      figure.layout.width = room(place);
      figure.layout.autosize = false;
    }
    // A page that is about to be printed has no later moment in which a scene could take another size: it is shrunk as a whole.
    var isScene = Boolean(figure.layout.scene);
    if (isScene) place.style.zoom = '';
    if (isScene && printing) {
      figure.layout.width = place.clientWidth;
      place.style.zoom = String(room(place) / place.clientWidth);
    }
    var done = Plotly.react(place, figure.data, figure.layout, CONFIG);
    var scene = place._fullLayout && place._fullLayout.scene;
    if (scene && scene._scene) still(scene._scene.glplot, printing);
    return done;
  }

  // Paper takes the last picture that was shown, in whatever colours: a copy of the one that was just drawn lies over it.
  function still(plot, isWanted) {
    var copy = plot.canvas.nextSibling;
    if (copy && copy.className === 'still') copy.remove();
    if (!isWanted) return;
    plot.redraw();
    copy = document.createElement('canvas');
    copy.className = 'still';
    copy.width = plot.canvas.width;
    copy.height = plot.canvas.height;
    copy.style.cssText = plot.canvas.style.cssText;
    var context = copy.getContext('2d');
    context.fillStyle = look().page;
    context.fillRect(0, 0, copy.width, copy.height);
    context.drawImage(plot.canvas, 0, 0);
    plot.canvas.parentNode.insertBefore(copy, plot.canvas.nextSibling);
  }

  function button(parent, text, pressed, act) {
    var made = document.createElement('button');
    made.type = 'button';
    made.textContent = text;
    made.setAttribute('aria-pressed', String(pressed));
    made.addEventListener('click', act);
    parent.appendChild(made);
  }

  // A choice of histograms and operations, the surfaces, and the same as heat maps.
  function explorer(place, chart) {
    var order = ['latency', 'outstanding', 'length', 'seek_distance'];
    var rank = function (kind) { var at = order.indexOf(kind); return at < 0 ? 9 : at; };
    var kinds = [], operations = [];
    chart.views.forEach(function (view) {
      if (kinds.indexOf(view.kind) < 0) kinds.push(view.kind);
      if (operations.indexOf(view.operations) < 0) operations.push(view.operations);
    });
    kinds.sort(function (one, other) { return rank(one) - rank(other); });
    var chosen = { kind: kinds[0], operations: operations[0] };
    var choices = document.createElement('div'), title = document.createElement('p'), solid = document.createElement('div'), flat = document.createElement('div');
    choices.className = 'choices';
    solid.className = 'solid';
    flat.className = 'flat';
    [choices, title, solid, flat].forEach(function (part) { place.appendChild(part); });
    var scale = null;
    function draw() {
      var theme = look();
      var found = function (operation) {
        return chart.views.find(function (view) { return view.kind === chosen.kind && view.operations === operation; });
      };
      var view = found(chosen.operations) || found('both') || chart.views.find(function (one) { return one.kind === chosen.kind; });
      choices.textContent = '';
      kinds.forEach(function (kind) {
        button(choices, kind.replace(/_/g, ' '), kind === chosen.kind, function () { chosen.kind = kind; draw(); });
      });
      var gap = document.createElement('span');
      gap.className = 'gap';
      choices.appendChild(gap);
      operations.forEach(function (operation) {
        button(choices, operation, operation === view.operations, function () { chosen.operations = operation; draw(); });
      });
      var shown = scale || heights(view);
      var apart = document.createElement('span');
      apart.className = 'gap';
      choices.appendChild(apart);
      ['linear', 'logarithmic'].forEach(function (name) {
        button(choices, name, name === shown, function () { scale = name; draw(); });
      });
      title.textContent = view.title + '; the highest bucket has ' + Number(view.top.toPrecision(3)) + ' I/Os per second. The height is ' + shown + '.';
      return Promise.all([show(solid, surface(chart, view, theme, shown, solid)), show(flat, panels(chart, view, theme))]);
    }
    return draw;
  }

  var makers = { lines: lines, heat: heat };

  function draw(place) {
    if (place.dataset.state) return;
    place.dataset.state = 'begun';
    var chart = charts[Number(place.dataset.chart)];
    place.textContent = '';
    var again = chart.shape === 'surfaces' ? explorer(place, chart) : function () { return show(place, makers[chart.shape](chart, look(), place)); };
    drawn.push(again);
    Promise.resolve().then(again).then(
      function () { place.dataset.state = 'drawn'; report(); },
      function (error) {
        place.dataset.state = 'failed';
        place.textContent = 'This chart could not be drawn here (' + error.message + '); the table below has its figures.';
        console.error(error);
        report();
      }
    );
  }

  var places = Array.prototype.slice.call(document.querySelectorAll('[data-chart]'));

  // What is folded has no size to draw in: it is drawn once it is opened.
  function isFolded(place) {
    return Boolean(place.closest('details.folded:not([open])'));
  }

  document.querySelectorAll('details.folded').forEach(function (folded) {
    folded.addEventListener('toggle', function () {
      if (folded.open) folded.querySelectorAll('[data-chart]').forEach(draw);
    });
  });

  // Who drives the page can see when all is drawn.
  function report() {
    var open = places.filter(function (place) { return !isFolded(place) && place.dataset.state !== 'drawn' && place.dataset.state !== 'failed'; });
    if (open.length === 0) root.dataset.charts = 'drawn';
  }

  function redraw() {
    drawn.forEach(function (again) { again(); });
  }

  // What is seen first; then, one at a time, all others: printing needs them.
  var watch = new IntersectionObserver(function (entries) {
    entries.forEach(function (entry) { if (entry.isIntersecting) { watch.unobserve(entry.target); draw(entry.target); } });
  }, { rootMargin: '300px' });
  places.forEach(function (place) { watch.observe(place); });
  (function next() {
    var open = places.find(function (place) { return !place.dataset.state && !isFolded(place); });
    if (open) { draw(open); setTimeout(next, 20); }
  })();

  // A chart by keyboard: left and right go from point to point, up and down from line to line. What is met is shown and spoken.
  function walk(place, chart) {
    var at = { line: 0, point: -1 };
    var spoken = place.parentNode.querySelector('.spoken');
    place.addEventListener('keydown', function (event) {
      var moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -Infinity], End: [0, Infinity] };
      var move = moves[event.key];
      if (!move || event.target !== place || chart.series.length === 0) return;
      event.preventDefault();
      at.line = Math.max(0, Math.min(chart.series.length - 1, at.line + move[0]));
      var series = chart.series[at.line];
      at.point = Math.max(0, Math.min(series.x.length - 1, at.point + move[1]));
      var told = function (axis, value) {
        if (value === null || value === undefined) return 'nothing';
        if (axis.names) return axis.names[value];
        return axis.scale === 'log_time' ? duration(value) : axis.scale === 'ratio' ? change(value) : Number(value.toPrecision(4)) + ' ' + axis.title;
      };
      spoken.textContent = series.name + ': ' + told(chart.x, series.x[at.point]) + ', ' + told(chart.y, series.y[at.point]);
      var drawnIn = place.querySelector('.js-plotly-plot') || place;
      if (drawnIn._fullLayout) Plotly.Fx.hover(drawnIn, [{ curveNumber: at.line, pointNumber: at.point }]);
    });
  }

  places.forEach(function (place) {
    var chart = charts[Number(place.dataset.chart)];
    if (chart.shape === 'lines') walk(place, chart);
  });

  // All points of a chart as CSV: a name, where, what.
  function csv(chart) {
    var quoted = function (text) { return '"' + String(text).replace(/"/g, '""') + '"'; };
    var rows = [];
    if (chart.shape === 'lines') {
      rows.push(['line', chart.x.title || 'position', chart.y.title || 'value']);
      var named = function (axis, value) { return axis.names ? axis.names[value] : value; };
      chart.series.forEach(function (series) {
        series.x.forEach(function (x, index) { rows.push([series.name, named(chart.x, x), named(chart.y, series.y[index])]); });
      });
    } else if (chart.shape === 'heat') {
      rows.push(['seconds', 'latency', 'I/Os per second']);
      chart.x.forEach(function (x, column) {
        chart.z[column].forEach(function (value, bucket) { if (value > 0) rows.push([x, chart.labels[bucket], value]); });
      });
    } else {
      rows.push(['histogram', 'operations', 'disk', 'seconds', 'bucket', 'I/Os per second']);
      chart.views.forEach(function (view) {
        view.panels.forEach(function (panel, disk) {
          panel.x.forEach(function (x, column) {
            panel.z[column].forEach(function (value, bucket) {
              if (value > 0) rows.push([view.kind, view.operations, chart.disks[disk], x, view.labels[bucket], value]);
            });
          });
        });
      });
    }
    return rows.map(function (row) {
      return row.map(function (value) { return typeof value === 'number' ? value : quoted(value === null || value === undefined ? '' : value); }).join(',');
    }).join('\r\n') + '\r\n';
  }

  document.querySelectorAll('[data-download]').forEach(function (button) {
    button.addEventListener('click', function () {
      var chart = charts[Number(button.dataset.download)];
      var link = document.createElement('a');
      link.href = URL.createObjectURL(new Blob([csv(chart)], { type: 'text/csv' }));
      link.download = chart.title.replace(/[^A-Za-z0-9]+/g, '-').toLowerCase() + '.csv';
      link.click();
      setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
    });
  });

  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  window.addEventListener('beforeprint', function () { root.dataset.theme = 'light'; printing = true; places.forEach(function (place) { if (!isFolded(place)) draw(place); }); redraw(); });
  window.addEventListener('afterprint', function () { delete root.dataset.theme; printing = false; redraw(); });
})();
