// Makes charts.min.js: `npm ci --ignore-scripts && npm run build` (README.md).
'use strict';

const esbuild = require('esbuild');
const fs = require('fs');

esbuild
  .build({
    entryPoints: ['charts.js'],
    outfile: 'charts.min.js',
    bundle: true,
    minify: true,
    format: 'iife',
    globalName: 'Plotly',
    target: 'es2018',
    legalComments: 'none',
    // As in the library's own esbuild-config.js.
    alias: { regl: '@plotly/regl' },
    define: { global: 'window', 'define.amd': 'false', 'process.env.NODE_DEBUG': 'false' },
    // The style of the map component, which is not used.
    loader: { '.css': 'empty', '.glsl': 'text' },
  })
  .then(() => {
    fs.copyFileSync('node_modules/plotly.js/LICENSE', 'LICENSE.plotly.txt');
  });
