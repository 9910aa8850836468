// Keeps what the page fetches. What is kept is asked for no more: another version of the site takes another name.
const CACHE = 'site 1';

self.addEventListener('install', (event) => {
  self.skipWaiting();
  // The page itself came before there was a service worker; generate.mjs is loaded when it is first used, perhaps when
  // there is no network any more.
  const files = ['./', 'page.mjs', 'runtime/generate.mjs'];
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(files)));
});
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));

async function answer(request) {
  const cache = await caches.open(CACHE);
  const kept = await cache.match(request);
  if (kept) return kept;
  const response = await fetch(request);
  if (response.status === 200) await cache.put(request, response.clone());
  return response;
}

self.addEventListener('fetch', (event) => {
  if (event.request.method === 'GET') event.respondWith(answer(event.request));
});
