import { sveltekit } from '@sveltejs/kit/vite';
import { defineConfig, type Plugin, type Rollup } from 'vite';

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

/** The folder of pages, and what a page's own module is called there. */
const ROUTES = '/src/routes';
const PAGE = '/+page.svelte';

/** Pages, and what stands around them, that a module is part of; nothing for what is loaded when somebody looks. */
function pagesWith(id: string, moduleOf: Rollup.GetModuleInfo): Set<string> {
  const seen = new Set([id]);
  for (const one of seen) for (const importer of moduleOf(one)?.importers ?? []) seen.add(importer);
  return new Set([...seen].filter((one) => one.includes(`${ROUTES}/`) && one.endsWith('.svelte')));
}

/**
 * Which file a module goes into. A request costs a round trip, and browsers ask an unencrypted host for six files at a time: so all that several
 * pages have is one file, and each page has one of its own.
 */
function chunkOf(id: string, { getModuleInfo }: Rollup.ManualChunkMeta): string | undefined {
  return pagesWith(id, getModuleInfo).size > 1 ? 'shared' : undefined;
}

/**
 * Writes which files each page needs, a line a page: its path, and the files. A host names them with the document, so that they come with the
 * scripts that would ask for them (edge/console/build.rs).
 */
const filesOfPages: Plugin = {
  name: 'files-of-pages',
  apply: 'build',
  generateBundle(_, bundle) {
    if (this.environment.name !== 'client') return;
    const chunks = Object.values(bundle).filter((file) => file.type === 'chunk');
    const withImports = (name: string, found: Set<string>): Set<string> => {
      const chunk = bundle[name];
      if (found.has(name) || chunk?.type !== 'chunk') return found;
      found.add(name);
      for (const style of chunk.viteMetadata?.importedCss ?? []) found.add(style);
      for (const imported of chunk.imports) withImports(imported, found);
      return found;
    };
    const lines = chunks.flatMap((chunk) =>
      chunk.moduleIds
        .filter((id) => id.includes(ROUTES) && id.endsWith(PAGE))
        .map((id) => [id.slice(id.indexOf(ROUTES) + ROUTES.length, -PAGE.length) || '/', ...withImports(chunk.fileName, new Set())].join(' ')),
    );
    if (lines.length === 0) this.error('no page was found: are they in src/routes still?');
    this.emitFile({ type: 'asset', fileName: 'pages.txt', source: `${lines.sort().join('\n')}\n` });
  },
};

export default defineConfig(({ isSsrBuild }) => ({
  plugins: [withoutInlineStyle, filesOfPages, sveltekit()],
  // A host believes requests that name its own loopback address alone, so the proxy sets that name.
  server: { fs: { allow: ['../edge/lab/reports/assets'] }, proxy: { '/api': { target: api, changeOrigin: true } } },
  // No file becomes a `data:` address in a style: the policy of the server allows images from it, and fonts not.
  build: { assetsInlineLimit: 0, target: 'es2022', ...(isSsrBuild ? {} : { rollupOptions: { output: { manualChunks: chunkOf } } }) },
}));
