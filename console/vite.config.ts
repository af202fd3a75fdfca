import { sveltekit } from '@sveltejs/kit/vite';
import { defineConfig, type Plugin } from 'vite';

// Where the API answers during development: the address of `tests/serve.mjs`, or a host's own loopback listener.
const api = process.env.DRYSTONE_API ?? 'http://127.0.0.1:9411';

/** SvelteKit hides its announcer of pages by a style attribute, which the servers' policy refuses; app.css hides it. */
const withoutInlineStyle: Plugin = {
  name: 'without-inline-style',
  enforce: 'pre',
  transform(code, id) {
    if (!id.endsWith('generated/root.svelte')) return undefined;
    return { code: code.replace(/\sstyle="[^"]*"/g, ''), map: null };
  },
};

export default defineConfig({
  plugins: [withoutInlineStyle, sveltekit()],
  // A host believes requests that name its own loopback address alone, so the proxy sets that name.
  server: { fs: { allow: ['../edge/lab/reports/assets'] }, proxy: { '/api': { target: api, changeOrigin: true } } },
  // No file becomes a `data:` address in a style: the policy of the server allows images from it, and fonts not.
  build: { assetsInlineLimit: 0, target: 'es2022' },
});
