import adapter from '@sveltejs/adapter-static';

/** @type {import('@sveltejs/kit').Config} */
export default {
  compilerOptions: { runes: true },
  kit: {
    // One page for all paths: the hosts' servers have no JavaScript, and answer with it wherever there is no file.
    adapter: adapter({ pages: 'build', assets: 'build', fallback: 'index.html' }),
    // Absolute addresses, since the same page answers at any depth.
    paths: { relative: false },
    // The program asks no server for another version of itself: what a host serves comes from one binary.
    version: { pollInterval: 0 },
  },
};
