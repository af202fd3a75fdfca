'use strict';

// Lines are part of the core; heat maps and surfaces are added. Nothing else is bundled.
var Plotly = require('plotly.js/lib/core');
Plotly.register([require('plotly.js/lib/heatmap'), require('plotly.js/lib/surface')]);
module.exports = Plotly;
