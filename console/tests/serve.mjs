// Serves the built pages as a host does, with the same headers, and hands /api on to a host: for tests and development.
//
//   node tests/serve.mjs --api unix:/run/drystone/api.sock --port 9411
//
// The headers are those of the server's listener for the console, so that what its policy refuses fails here, too.
import { createServer, request } from 'node:http';
import { createReadStream, existsSync, statSync } from 'node:fs';
import { extname, join, normalize } from 'node:path';
import { pathToFileURL } from 'node:url';

const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.json': 'application/json' };
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; " +
  "base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

function forward(api, incoming, outgoing) {
  const target = api.startsWith('unix:')
    ? { socketPath: api.slice('unix:'.length) }
    : { host: new URL(api).hostname, port: new URL(api).port };
  const headers = { ...incoming.headers, host: 'localhost' };
  const onward = request({ ...target, path: incoming.url, method: incoming.method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(outgoing);
  });
  onward.on('error', (error) => {
    outgoing.writeHead(502, { 'content-type': 'application/json' });
    outgoing.end(JSON.stringify({ code: 'unreachable', error: `the host does not answer: ${error.message}` }));
  });
  outgoing.on('close', () => onward.destroy());
  incoming.pipe(onward);
}

function page(url, outgoing) {
  const path = normalize(decodeURIComponent(url.split('?')[0]));
  let file = join('build', path);
  if (!existsSync(file) || !statSync(file).isFile()) file = 'build/index.html';
  outgoing.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream', 'content-security-policy': POLICY });
  createReadStream(file).pipe(outgoing);
}

/** Starts it; the port may be 0 for any that is free. */
export function serve(api, port) {
  const server = createServer((incoming, outgoing) => {
    if (incoming.url?.startsWith('/api/')) forward(api, incoming, outgoing);
    else page(incoming.url ?? '/', outgoing);
  });
  return new Promise((resolve) => server.listen(port, '127.0.0.1', () => resolve(server)));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const option = (name, fallback) => {
    const index = process.argv.indexOf(name);
    return index < 0 ? fallback : process.argv[index + 1];
  };
  const server = await serve(option('--api', process.env.DRYSTONE_API ?? 'unix:/run/drystone/api.sock'), Number(option('--port', '9411')));
  console.log(`http://127.0.0.1:${server.address().port}`);
}
